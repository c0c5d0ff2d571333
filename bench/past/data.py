"""Thirty days of payments whose cards follow Zipf's law, and a spine over them: the same for all contenders.

Payments arrive two seconds after they happened on average, one in a hundred up to an hour later. A row of the spine is
of a card drawn like the payments' and of a time in the last twenty days.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.past.features import payments
from headrace.clock import DAY, HOUR, MINUTE, SECOND
from headrace.lake.counters import BATCH, TURN
from headrace.lake.files import DayWriter
from headrace.lake.layout import silver_shape
from headrace.lake.table import LakeTable

BASE = 1_767_225_600 * SECOND
DAYS = 30
MOMENT = pa.timestamp("us", tz="UTC")
CHUNK = 1_000_000
SLICE, KEPT = 20, 7
"""One card in so many, by its number, which is its rank less one; the eighth of all is the busiest in the slice."""


@dataclass(frozen=True)
class History:
    """Where everything lies: the lake's silver table, and events and spine as Parquet."""

    folder: Path

    @property
    def silver(self) -> LakeTable:
        """The lake's table."""
        return LakeTable(str(self.folder / "silver"), silver_shape(payments))

    @property
    def events(self) -> Path:
        """The events as everybody reads them: card, amount, merchant, at, arrived_at."""
        return self.folder / "events.parquet"

    @property
    def spine(self) -> Path:
        """The rows: number, card, t."""
        return self.folder / "spine.parquet"


def made(folder: Path, events: int, rows: int, keys: int, seed: int = 7) -> History:
    """A history of so many events of so many keys, and a spine of so many rows."""
    chance = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    found = History(folder)
    share = 1 / np.arange(1, keys + 1)
    share /= share.sum()
    writer, silver = DayWriter(str(folder / "silver"), silver_shape(payments)), found.silver
    with pq.ParquetWriter(found.events, _EVENTS) as file:
        for first in range(0, events, CHUNK):
            batch = _events(chance, share, first, min(CHUNK, events - first), events)
            writer.add(batch)
            plain = [batch.column(name) for name in ("card", "amount", "merchant", "at", "_arrived_at")]
            file.write_table(pa.Table.from_arrays(plain, schema=_EVENTS))
    silver.commit(writer.close(), {TURN: 1, BATCH: 1})
    cards = chance.choice(keys, rows, p=share)
    t = BASE + chance.integers(10 * DAY, DAYS * DAY, rows)
    spine = {"row": np.arange(rows), "card": _cards(cards), "t": pa.array(t, MOMENT)}
    pq.write_table(pa.table(spine), found.spine)
    return found


def sliced(history: History, folder: Path) -> History:
    """The same history of one card in `SLICE`."""
    folder.mkdir(parents=True)
    found = History(folder)
    for name in ("events", "spine"):
        table = pq.read_table(getattr(history, name))
        numbers = pc.cast(pc.utf8_slice_codeunits(table.column("card"), len("card-")), pa.int64()).to_numpy()
        pq.write_table(table.filter(pa.array(numbers % SLICE == KEPT)), getattr(found, name))
    return found


_EVENTS = pa.schema(
    [("card", pa.string()), ("amount", pa.float64()), ("merchant", pa.string()), ("at", MOMENT), ("arrived_at", MOMENT)]
)


def _events(chance: Any, share: Any, first: int, count: int, whole: int) -> pa.RecordBatch:
    """Payments in the order of time."""
    numbers = np.arange(first, first + count)
    happened = BASE + (numbers * (DAYS * DAY / whole)).astype(np.int64)
    delay = (chance.exponential(2 * SECOND, count)).astype(np.int64)
    late = chance.random(count) < 0.01
    delay[late] += chance.integers(0, HOUR, int(late.sum()))
    ids = pa.array(numbers).cast(pa.string())
    columns = {
        "id": ids,
        "card": _cards(chance.choice(len(share), count, p=share)),
        "amount": pa.array(np.round(chance.lognormal(3, 1, count), 2)),
        "merchant": pa.array(chance.integers(0, 2_000, count)).cast(pa.string()),
        "at": pa.array(happened, MOMENT),
        "_partition": pa.array(np.zeros(count, dtype=np.int32)),
        "_offset": pa.array(numbers),
        "_arrived_at": pa.array(happened + delay, MOMENT),
        "_late": pa.array(delay > 2 * MINUTE),
        "_closed": pa.array(np.zeros(count, dtype=bool)),
        "_event_id": ids,
        "_identity": pa.array(numbers),
        "_payload": pa.array(numbers),
    }
    return pa.RecordBatch.from_pydict(columns).select(silver_shape(payments).schema.names)


def _cards(numbers: Any) -> pa.Array:
    return pa.array(np.char.add("card-", numbers.astype(str)))
