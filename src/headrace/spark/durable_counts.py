"""Counts that survive restarts: each batch counts once, however often it is run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.files import write_atomically


class Tally:
    """Totals by name in a small file, together with the last batch in them and the totals before it.

    Batches come in order, and only the last one can come again.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tally = Tally(Path(folder) / "tally.json")
    ...     tally.add(0, {"late": 2})
    ...     tally.add(1, {"late": 3})
    ...     Tally(tally.file).add(1, {"late": 3})
    ...     Tally(tally.file).totals
    {'late': 5}
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        held: dict[str, Any] = {"batch": -1, "totals": {}, "before": {}}
        if file.is_file():
            held = json.loads(file.read_text("utf-8"))
        self.batch: int = held["batch"]
        self.totals: dict[str, int] = held["totals"]
        self._before: dict[str, int] = held["before"]

    def add(self, batch: int, counts: Mapping[str, int]) -> None:
        """Count a batch; in place of its earlier try if it was the last one counted."""
        if batch < self.batch:
            return
        base = self._before if batch == self.batch else self.totals
        self._before = dict(base)
        self.totals = {name: base.get(name, 0) + counts.get(name, 0) for name in {*base, *counts}}
        self.batch = batch
        self._write()

    def _write(self) -> None:
        write_atomically(self.file, json.dumps({"batch": self.batch, "totals": self.totals, "before": self._before}))
