"""Dead letters, looked at and mended: what `headrace dead-letters` does.

`choose` says which letters are meant, `again` makes of a letter the record that would be appended and asks admission
what it says now, `replay` appends each exactly once, and `lock` lets one process at a time do so. What a letter is and
how its topic keeps it is `spark.dead_letter`'s business.
"""

from __future__ import annotations
