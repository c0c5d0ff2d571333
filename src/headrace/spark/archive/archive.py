"""The archive of one stream: every record of its topic into the lake, exactly once, with its verdict.

    log ──► slice by arrival ──► judge ──► copies? ──► files ──► letters ──► commit bronze ──► commit silver

Refused and late records go to their topics on the way (`spark.archive.refused_records`), and every verdict is counted;
nobody else does either. The lake itself is the checkpoint: how far the archive has come stands in the very commit that
adds the files, so a batch that was cut off anywhere has either happened or left nothing. Slices follow arrival over
all partitions, so the first copy of an event is met first. If silver is behind bronze after a crash, it is made up for
from bronze.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.alarms import StreamWatch
from headrace.clock import SECOND, Clock
from headrace.codec.writers import Writers
from headrace.define.stream import Stream
from headrace.errors import DataError
from headrace.lake.counters import BATCH, CONFLICTS, COUNT, EARLIER_COPIES, LATE_COPIES, LOST, OFFSET, position, totals
from headrace.lake.location import Lake
from headrace.log.protocol import Log
from headrace.log.read_slice import bounded, cut
from headrace.plural import show_count
from headrace.spark.admission import judged
from headrace.spark.archive.lake_writer import TURNS, LakeWriter
from headrace.spark.archive.refused_records import Refusals
from headrace.spark.archive.table_files import Deposit
from headrace.spark.records import slice_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GUARD = SECOND
"""How far behind the clock a cut is made: what arrived before it can be seen by then."""
MOST_PER_BATCH = 500_000


class StreamArchive(LakeWriter):
    """Archives one stream, batch by batch."""

    def __init__(
        self,
        stream: Stream,
        topic: str,
        log: Log,
        lake: Lake,
        session: SparkSession,
        clock: Clock,
        *,
        writers: Writers | None = None,
        refusals: Refusals | None = None,
    ) -> None:
        super().__init__(stream, topic, lake, session, writers=writers)
        self.log, self.clock, self.refusals = log, clock, refusals
        self.watch = StreamWatch(stream.name)

    def accept_loss(self) -> int:
        """Go on after records that retention removed before they were archived; says how many, and keeps count."""
        self.mend()
        first = self.log.start_offsets(self.topic)
        done = position(self.lake.bronze, len(first)) or {}
        gone = {p: first[p] - offset for p, offset in done.items() if offset < first[p]}
        if gone:
            moved = _moved((self.lake.bronze.counter(BATCH) or 0) + 1, {p: first[p] for p in gone})
            lost = totals(self.lake.bronze)[LOST] + sum(gone.values())
            self.commit(Deposit(), moved, {f"{COUNT}{LOST}": lost})
        return sum(gone.values())

    @property
    def start(self) -> dict[int, int]:
        """Where the next batch begins."""
        first = self.log.start_offsets(self.topic)
        done = position(self.lake.bronze, len(first)) or {}
        for partition, offset in done.items():
            if offset < first[partition]:
                message = "Retention has removed records of the log before they were archived."
                lost = show_count(first[partition] - offset, "record")
                got = f"{self.topic}, partition {partition}: {lost} from offset {offset}"
                hint = "Say `headrace run archive --accept-loss` to go on after them; the loss stays in the counts."
                raise DataError("offset-out-of-range", message, got=got, hint=hint)
        return first | done

    def _end(self, start: Mapping[int, int], most: int) -> dict[int, int]:
        """Where the next batch ends: at most so many records, in the order of arrival over all partitions."""
        ends = cut(self.log, self.topic, self.clock.now() - GUARD)
        ends = {partition: max(offset, start[partition]) for partition, offset in ends.items()}
        return bounded(self.log, self.topic, start, ends, most=most)

    def step(self, most: int = MOST_PER_BATCH) -> Deposit | None:
        """Archive one batch; None when nothing waits."""
        self.mend()
        start = self.start
        end = self._end(start, most)
        if end == start:
            return None
        records = slice_of(self.session, self.log, self.topic, start, end)
        return self.add(records, str(self.stream.arrival), end)

    def add(self, records: DataFrame, arrival: str, end: Mapping[int, int]) -> Deposit:
        """Archive records up to the offsets `end`; looked at again when an import had its turn meanwhile."""
        bronze = self.lake.bronze
        number, turns = bronze.counter(BATCH) or 0, TURNS
        while True:
            made = self.write(judged(records, self.stream, self.writers), arrival, self.refusals)
            try:
                self.commit(made, _moved(number + 1, end), self._counts(made))
            except DataError:
                turns -= 1
                if (bronze.counter(BATCH) or 0) != number or not turns:
                    raise
                self.mend()
            else:
                if self.refusals is not None:
                    self.refusals.committed()
                self.watch.batch(made.counts.seen())
                return made

    def _counts(self, made: Deposit) -> dict[str, int]:
        before, counts = totals(self.lake.bronze), made.counts
        copies = {LATE_COPIES: counts.late_copies, EARLIER_COPIES: counts.earlier_copies}
        added = dict.fromkeys(before, 0) | {CONFLICTS: counts.conflicts} | copies
        for (_, verdict), count in counts.verdicts.items():
            added[verdict] += count
        return {f"{COUNT}{name}": before[name] + added[name] for name in before}


def _moved(number: int, end: Mapping[int, int]) -> dict[str, int]:
    return {BATCH: number, **{f"{OFFSET}{partition}": offset for partition, offset in end.items()}}
