"""A world's payments and labels as JSON lines: history as an import takes it, labels as a spine is made of.

Records that are broken, mistyped or misdated are left out: a file of history holds what a bank has kept. Copies and
late payments are in it, each with its own `arrived_at`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from headrace.clock import show_time
from headrace_demo.world.labels import Label
from headrace_demo.world.stream import READABLE, Sent

KEPT = (*READABLE, "duplicate")


def write_payments(sent: Iterable[Sent], path: Path) -> int:
    """Write payments with their arrival, one on each line; gives how many.

    >>> import tempfile
    >>> from headrace.clock import DAY
    >>> from headrace_demo.world.stream import World, history
    >>> world = World(seed=7, start=20_000 * DAY, cards=100, days=2, payments=300)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_payments(history(world), Path(folder) / "payments.jsonl")
    296
    """
    rows = ({**each.event, "arrived_at": show_time(each.sent_at)} for each in sent if each.kind in KEPT)
    return _write(rows, path)


def write_labels(labels: Iterable[Label], path: Path) -> int:
    """Write labels, one on each line: `at`, `payment`, `card` and `fraud`; gives how many."""
    return _write(({**each._asdict(), "at": show_time(each.at)} for each in labels), path)


def _write(rows: Iterable[dict[str, object]], path: Path) -> int:
    encode, count = msgspec.json.Encoder().encode, 0
    with path.open("wb") as file:
        for row in rows:
            file.write(encode(row) + b"\n")
            count += 1
    return count
