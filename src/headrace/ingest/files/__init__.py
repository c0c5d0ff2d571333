"""Files and tables of rows: the one reader behind `headrace send`, `headrace import` and spines of training sets.

`source` finds out what lies at a place, `columns` says which column is which field, `text_rows` and `table_rows` read,
and `rows` is what the others call: each row as JSON text with its place, in bounded memory.
"""

from __future__ import annotations
