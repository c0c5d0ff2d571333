"""Refused and late records of a batch, to the byte: from the workers that judged them to the topics that keep them.

Workers put them down beside what they stage for the lake (`RefusedFile`), the archive appends them to their topics
before it commits the batch (`Refusals`). A batch that was cut off in between is run again and appends them again, which
changes nothing: a letter's key is where its record came from, and one that was replayed or dropped since stays so.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.define.stream import Stream
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.lake.files import filesystem
from headrace.log.protocol import Log
from headrace.meaning.verdict import DEAD
from headrace.spark.append import PART
from headrace.spark.dead_letter import PART_BYTES, DeadLetter, in_parts, read_arrivals, walk

if TYPE_CHECKING:
    import pyarrow as pa

LATE = "late"
COLUMNS = ("partition", "offset", "arrived_at", "verdict", "reason", "key", "value", "headers")


class RefusedFile:
    """Where a worker puts the records that are sent on; there is no file when there are none."""

    def __init__(self, files: Any, folder: str, verdicts: Sequence[str]) -> None:
        self.name = f"{uuid.uuid4().hex}.refused"
        self._files, self._path, self._verdicts = files, f"{folder}/{self.name}", verdicts
        self._sink: Any = None
        self._writer: Any = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Put down what is sent on of a batch."""
        import pyarrow as pa
        import pyarrow.compute as pc

        chosen = batch.filter(pc.is_in(batch.column("verdict"), pa.array(self._verdicts, pa.string())))
        if not chosen.num_rows:
            return
        held = chosen.select(list(COLUMNS))
        if self._writer is None:
            self._sink = self._files.open_output_stream(self._path)
            self._writer = pa.ipc.new_stream(self._sink, held.schema)
        step = max(1, held.num_rows * PART_BYTES // max(1, held.nbytes))
        for at in range(0, held.num_rows, step):
            self._writer.write_batch(held.slice(at, step))

    def close(self) -> list[str]:
        """The file's name, if there is one."""
        if self._writer is None:
            return []
        self._writer.close()
        self._sink.close()
        return [self.name]


def letters_in(root: str, names: Iterable[str], options: Mapping[str, str]) -> Iterator[DeadLetter]:
    """The records that workers put down under `root`, a piece of a file in memory at a time."""
    import pyarrow as pa

    files, folder = filesystem(root, options)
    for name in names:
        with files.open_input_stream(f"{folder}/{name}") as held:
            for piece in pa.ipc.open_stream(held):
                arrived = piece.column("arrived_at").cast(pa.int64()).to_pylist()
                for row, moment in zip(piece.to_pylist(), arrived, strict=True):
                    yield _letter_of(row, moment)


def _letter_of(row: Mapping[str, Any], arrived: int) -> DeadLetter:
    headers = tuple((header["key"], header["value"] or b"") for header in row["headers"] or ())
    place, value = (row["partition"], row["offset"]), row["value"]
    return DeadLetter(
        *place, arrived, row["verdict"], row["reason"] or "", row["key"], value, headers, len(value or b"")
    )


class Refusals:
    """The topics of a stream's dead letters and late records.

    Parameters
    ----------
    dead, late
        The topics; late records go to theirs under the policy `side_output`.
    faults
        Hears of every append; for tests.
    """

    def __init__(self, stream: Stream, log: Log, dead: str, late: str, faults: FaultPoints = NO_FAULTS) -> None:
        self.verdicts = (*DEAD, *([LATE] if stream.late == "side_output" else []))
        self._log, self._dead, self._late, self._faults = log, dead, late, faults
        self._again = True

    def take(self, letters: Iterable[DeadLetter]) -> None:
        """Append the records of a batch to their topics; those of a first try are known already."""
        before: dict[str, int] | None = None
        for part in in_parts(letters, PART):
            dead = [each for each in part if each.verdict != LATE]
            if dead and before is None:
                before = read_arrivals(walk(self._log, self._dead)) if self._again else {}
            fresh = [each.message for each in dead if (before or {}).get(each.id) != each.arrived_at]
            late = [each.message for each in part if each.verdict == LATE]
            if fresh:
                self._log.append_batch(self._dead, fresh)
                self._faults.reach("refused.dead.after")
            if late:
                self._log.append_batch(self._late, late)
                self._faults.reach("refused.late.after")
        self._again = True

    def committed(self) -> None:
        """The batch is done: what comes next has not been here before."""
        self._again = False
