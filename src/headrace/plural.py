"""Numbers in sentences: a noun agrees with its count."""

from __future__ import annotations


def show_count(count: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun; with a verb after it, the plural is given as well.

    >>> show_count(1, "event"), show_count(2_000, "event"), show_count(1, "row was", "rows were")
    ('1 event', '2,000 events', '1 row was')
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
