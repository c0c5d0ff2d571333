"""What `headrace send` does: rows of a file, checked against a stream, become events in its topic.

`source` opens a file and reads JSON lines, `csv_text` and `parquet` read the others; `check` holds every row to the
stream's schema and makes a message of it, and `deliver` appends messages to the log at the rate asked for.
"""

from __future__ import annotations
