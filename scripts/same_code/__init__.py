"""Whether two commits have the same Python code, but for modules that moved and names that a table renames.

    python -m scripts.same_code OLD NEW --table FILE.toml        NEW may be "." for the working tree

    [modules]                                    a package takes its modules along; the longest name counts
    "headrace.truth" = "headrace.labels"
    [names]                                      everywhere, or for what one module defines; one new name or a list
    Asked = "Question"
    "headrace.store.lmdb.store:LmdbStore.look" = "read_window"

Every file of OLD must have a counterpart in NEW, and the reverse; one without code needs none. Docstrings and the order
of imports are free. An imported name is compared by what is imported, and a name that is local to a function by a
one-to-one renaming in that function. Parameters and every other identifier follow the table. Attributes and keywords
follow any entry of it, because nothing says whose they are. A text may differ by the names of its modules, or when it
is a dotted name as a whole. Every difference is printed, and the exit code is 1 when there is one.

`table` has the renamings, `code` the files of a commit and what their names stand for, `comparison` walks two files.
What the tool cannot see: doctests, other files than Python's, and an attribute that is renamed in some places only.
"""
