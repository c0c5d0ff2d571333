"""Text that no terminal obeys: what would move a cursor, set a colour or begin a new line is written as an escape.

Whatever somebody else has written goes through here before it is shown: records, keys, names, paths of requests. Logs
get it by their formatter, which `quote_logs` sets when a process starts.
"""

from __future__ import annotations

import logging


def printable(text: str, keep: str = "") -> str:
    r"""Text with an escape in the place of every character that is not printable, except those to keep.

    >>> print(printable("a\x1b[2Jb\n"))
    a\x1b[2Jb\n
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


class PrintableFormatter(logging.Formatter):
    r"""Formats a log record so that text from elsewhere is one line of its message and moves no cursor.

    >>> record = logging.LogRecord("x", logging.ERROR, "", 0, "GET %s", ("/a\n\x1b[2J",), None)
    >>> print(PrintableFormatter("%(message)s").format(record))
    GET /a\n\x1b[2J
    """

    def format(self, record: logging.LogRecord) -> str:
        """The text of a record; a traceback keeps its lines."""
        if isinstance(record.args, tuple):
            record = logging.makeLogRecord(vars(record) | {"args": tuple(map(_quoted, record.args))})
        return printable(super().format(record), "\n\t")


def _quoted(value: object) -> object:
    return printable(value) if isinstance(value, str) else value


def quote_logs() -> None:
    """Have this process's warnings and errors written so, where the user has set up no logging of his own."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(PrintableFormatter())
