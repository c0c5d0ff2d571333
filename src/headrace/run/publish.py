"""What leaves a micro-batch: tiles and progress to the changelog, dead letters and late records to their topics.

Both can be done twice without harm, because a batch that was cut off is run again: changelog rows are upserts under
their whole identity, dead letters are keyed by where the record came from. On the way the batch is counted, in all and
by partition, for the status and for its alarms (`headrace.watch`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, Observation, Row
from pyspark.sql import functions as F  # noqa: N812

from headrace.clock import Clock
from headrace.define.stream import Stream
from headrace.log.protocol import Log
from headrace.log.record import Message, Record
from headrace.plan.model import TileSet
from headrace.run.admit import APPENDED, ARRIVED, HEADERS, KEY, OFFSET, PARTITION, REASON, VALUE, VERDICT
from headrace.run.append import PART, messages
from headrace.run.letter import Letter, known, walk
from headrace.run.progress import as_of, batch_end
from headrace.run.tiles import Target
from headrace.run.verdict import DEAD, VERDICTS
from headrace.store.changelog import ProgressRow, encode
from headrace.watch import Seen

Batch = Callable[[DataFrame, int], None]

MOST_WATCHED = 64
"""Partitions that are counted each for itself; a stream with more is watched as a whole."""
PART_BYTES = 8 * 1024 * 1024
"""About the most bytes of letters in one append."""
SMALL, NEAR = 1_000, 50
"""Bytes of a record up to which Spark hands it over; how many larger ones are read from the log at once."""


@dataclass(frozen=True)
class Place:
    """Where a query reads and keeps its checkpoint, and the log it writes to."""

    log: Log
    clock: Clock
    source: str
    checkpoint: Path


def progress_message(
    tile_set: TileSet, target: Target, included: Mapping[int, int], moment: int, *, ordered: bool = False
) -> Message:
    """The changelog record that says how far the tiles have come, and whether rows after it come in order."""
    key, value = encode(ProgressRow(tile_set.fingerprint, target.run, included, moment, ordered))
    return Message(value, key)


def tiles_to_changelog(place: Place, tile_set: TileSet, target: Target, topic: str) -> Batch:
    """Append the changelog rows of a batch and its progress in one go: no reader sees one without the other."""

    def publish(batch: DataFrame, number: int) -> None:
        made = messages(batch.toArrow())
        included = batch_end(place.checkpoint, number)
        moment = as_of(place.log, place.source, included, place.clock)
        place.log.append_batch(topic, [*made, progress_message(tile_set, target, included, moment)])

    return publish


@dataclass(frozen=True)
class Outlet:
    """Where refused and late records of a stream go, and how many partitions it has."""

    dead: str
    late: str
    partitions: int


Told = Callable[[int, Mapping[str, int], list[Seen]], None]
"""Takes a batch's number, its counts by verdict, and what it saw of each partition."""


def refused_to_topics(place: Place, stream: Stream, outlet: Outlet, told: Told) -> Batch:
    """Append dead letters, and late records under the policy `side_output`; hand over what the batch saw."""
    sent = [*DEAD, *(["late"] if stream.late == "side_output" else [])]
    watched: list[int | None] = [None] if outlet.partitions > MOST_WATCHED else list(range(outlet.partitions))
    first = [True]

    def publish(batch: DataFrame, number: int) -> None:
        # One pass: the few records that are sent on, while Spark counts them all.
        counted = Observation()
        counters = [F.count_if(F.col(f"`{VERDICT}`") == verdict).alias(verdict) for verdict in VERDICTS]
        looks = [F.expr(text).alias(name) for where in watched for name, text in _looks(where).items()]
        chosen = batch.observe(counted, *counters, *looks).where(F.col(f"`{VERDICT}`").isin(*sent))
        rows = chosen.select(*(F.expr(text).alias(name) for name, text in COLUMNS.items())).collect()
        before: dict[str, int] | None = None
        for part in _parts(_letters(place.log, place.source, rows)):
            dead = [each for each in part if each.verdict != "late"]
            late = [each.message for each in part if each.verdict == "late"]
            if dead and before is None:
                # The first batch may have run before, and a letter may have been replayed or dropped since.
                before = known(walk(place.log, outlet.dead)) if first[0] else {}
            fresh = [each.message for each in dead if (before or {}).get(each.id) != each.arrived_at]
            for topic, given in ((outlet.dead, fresh), (outlet.late, late)):
                if given:
                    place.log.append_batch(topic, given)
        first[0] = False
        found = counted.get
        told(number, {verdict: found[verdict] for verdict in VERDICTS}, [_seen(found, where) for where in watched])

    return publish


def _looks(where: int | None) -> dict[str, str]:
    """What is looked at in each partition, as aggregates: counts, and the first, last, least and greatest arrival."""
    here = "true" if where is None else f"`{PARTITION}` = {where}"
    arrived = f"CASE WHEN {here} THEN `{APPENDED}` END"
    offset = f"CASE WHEN {here} THEN `{OFFSET}` END"
    texts = {
        "read": f"count_if({here})",
        "late": f"count_if({here} AND `{VERDICT}` = 'late')",
        "future": f"count_if({here} AND `{VERDICT}` = 'future')",
        "first": f"min_by({arrived}, {offset})",
        "last": f"max_by({arrived}, {offset})",
        "least": f"min({arrived})",
        "greatest": f"max({arrived})",
    }
    return {f"{name} in {where}": text for name, text in texts.items()}


def _seen(found: Mapping[str, int | None], where: int | None) -> Seen:
    return Seen(where, *(found[f"{name} in {where}"] or 0 for name in Seen._fields[1:]))


def _parts(letters: Iterable[Letter]) -> Iterator[list[Letter]]:
    """Letters in parts of one append each: they may be megabytes each."""
    part: list[Letter] = []
    size = 0
    for letter in letters:
        part.append(letter)
        size += letter.size
        if size >= PART_BYTES or len(part) >= PART:
            yield part
            part, size = [], 0
    if part:
        yield part


_SIZE = (
    f"coalesce(octet_length(`{KEY}`), 0) + coalesce(octet_length(`{VALUE}`), 0)"
    f" + coalesce(aggregate(`{HEADERS}`, 0,"
    " (sum, h) -> sum + octet_length(h.key) + coalesce(octet_length(h.value), 0)), 0)"
)
COLUMNS: dict[str, str] = {
    **{name: f"`{name}`" for name in (PARTITION, OFFSET, ARRIVED, VERDICT, REASON)},
    "~own": f"CASE WHEN {_SIZE} <= {SMALL} THEN struct(`{KEY}` AS key, `{VALUE}` AS value, `{HEADERS}` AS headers) END",
}
"""What is collected of a record that is sent on; its own bytes are left out when they are many."""


def _letters(log: Log, source: str, rows: Sequence[Row]) -> Iterator[Letter]:
    """Records that are refused or late as their topics keep them, to the byte.

    A batch of nothing but large poison is more than the driver can hold, so large records are read from the log, a few
    at a time.
    """
    near: dict[tuple[int, int], Record] = {}
    for row in sorted(rows, key=lambda row: (row[PARTITION], row[OFFSET])):
        place, own = (row[PARTITION], row[OFFSET]), row["~own"]
        if own is None:
            if place not in near:
                near = {(each.partition, each.offset): each for each in log.read(source, *place, limit=NEAR)}
            key, value, headers = near[place].key, near[place].value, near[place].headers
        else:
            key, value = (None if part is None else bytes(part) for part in (own.key, own.value))
            headers = tuple((header.key, bytes(header.value or b"")) for header in own.headers or ())
        size = len(value or b"")
        yield Letter(*place, row[ARRIVED], row[VERDICT], row[REASON] or "", key, value, headers, size)
