"""What became of the records of a batch, counted by the workers that write them and joined by whoever commits them.

Counts by partition and verdict, of copies that contradict, came late or arrived before the copy that counts, and what
each partition looked like, which its alarms are told by (`headrace.alarms`).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from headrace.alarms import PartitionCounts

if TYPE_CHECKING:
    import pyarrow as pa

    Look = list[int]
    """The first offset and its time, the last offset and its time, and the least and the greatest time."""


EARLIER = "_earlier"
"""The staged column that says whether a copy arrived before the one that counts. No table has it."""


class BatchCounts:
    """The counts of a batch, or of a part of it."""

    def __init__(self) -> None:
        self.verdicts: Counter[tuple[int, str]] = Counter()
        self.conflicts = self.late_copies = self.earlier_copies = 0
        self._looks: dict[int, Look] = {}

    @property
    def records(self) -> int:
        """How many records there were."""
        return self.verdicts.total()

    def seen(self) -> list[PartitionCounts]:
        """What there was of each partition."""
        count = self.verdicts
        return [
            PartitionCounts(
                partition,
                read=sum(each for (where, _), each in count.items() if where == partition),
                late=count[partition, "late"],
                future=count[partition, "future"],
                first=first,
                last=last,
                least=least,
                greatest=greatest,
            )
            for partition, (_, first, _, last, least, greatest) in sorted(self._looks.items())
        ]

    def add(self, batch: pa.RecordBatch) -> None:
        """Count marked rows."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        pairs = pa.table({"p": batch.column("partition"), "v": batch.column("verdict")})
        for pair in pairs.group_by(["p", "v"]).aggregate([([], "count_all")]).to_pylist():
            self.verdicts[pair["p"], pair["v"]] += pair["count_all"]
        self.conflicts += pc.sum(batch.column("conflict")).as_py() or 0
        late = pc.and_(pc.equal(batch.column("verdict"), "late"), pc.is_valid(batch.column("first_offset")))
        self.late_copies += pc.sum(late).as_py() or 0
        self.earlier_copies += pc.sum(batch.column(EARLIER)).as_py() or 0
        partitions, offsets = (batch.column(name).to_numpy() for name in ("partition", "offset"))
        times = batch.column("appended_at").cast(pa.int64()).to_numpy()
        for partition in np.unique(partitions):
            here = partitions == partition
            offset, time = offsets[here], times[here]
            first, last = offset.argmin(), offset.argmax()
            look = (offset[first], time[first], offset[last], time[last], time.min(), time.max())
            self._extend_range(int(partition), [int(each) for each in look])

    def _extend_range(self, partition: int, new: Look) -> None:
        old = self._looks.setdefault(partition, new)
        first, last = min(old[:2], new[:2]), max(old[2:4], new[2:4])
        self._looks[partition] = [*first, *last, min(old[4], new[4]), max(old[5], new[5])]

    def told(self) -> dict[str, Any]:
        """The counts as JSON, for `join`."""
        pairs = [[partition, verdict, count] for (partition, verdict), count in self.verdicts.items()]
        looks = [[partition, look] for partition, look in self._looks.items()]
        copies = {"late_copies": self.late_copies, "earlier_copies": self.earlier_copies}
        return {"verdicts": pairs, "conflicts": self.conflicts, **copies, "looks": looks}

    def join(self, told: dict[str, Any]) -> None:
        """Add what another part of the batch counted."""
        for partition, verdict, count in told["verdicts"]:
            self.verdicts[partition, verdict] += count
        self.conflicts += told["conflicts"]
        self.late_copies += told["late_copies"]
        self.earlier_copies += told["earlier_copies"]
        for partition, look in told["looks"]:
            self._extend_range(partition, look)
