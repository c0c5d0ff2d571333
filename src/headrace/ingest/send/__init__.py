"""What `headrace send` does: rows of a file or pipe, checked against a stream, become events in its topic.

`pipe` opens what is sent, `ingest.files` reads its rows, `row_check` holds every row to the stream's schema and makes a
message of it, and `delivery` appends messages to the log at the rate asked for.
"""

from __future__ import annotations
