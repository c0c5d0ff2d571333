"""The verdicts: every record gets exactly one. Who gives them is `meaning.verdict` and `spark.admission`."""

from __future__ import annotations

VERDICTS = ("malformed", "invalid", "future", "late", "duplicate", "admitted")
"""In the order in which they are tested."""
DEAD = ("malformed", "invalid", "future")
"""Those whose records become dead letters."""
