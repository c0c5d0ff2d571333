"""Existing history as rows that can be imported: a file or a table, its rows as JSON with their arrival.

`source` finds out what is given and tells two sources apart, `columns` says which column is which field, `text_rows`
and `table_rows` read, `scratch` lends a place on the disk. `spark.imports.history_import` puts the rows into the lake.
"""

from __future__ import annotations
