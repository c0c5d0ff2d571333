"""`headrace tail`: the records of a topic as they are in the log, for eyes and for pipes."""

from __future__ import annotations

import base64
import heapq
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.output import data
from headrace.errors import UsageError, shown
from headrace.safe_text import printable

if TYPE_CHECKING:
    from headrace.config.config import Names
    from headrace.log.protocol import Log
    from headrace.log.record import Record

LAST = 10
CHUNK = 1_000


@click.command("tail")
@click.argument("topic", metavar="STREAM|TOPIC")
@options.project_options
@click.option("--from", "start", metavar="WHERE", help="start, end, an offset, an RFC 3339 time, or an age such as 5m.")
@click.option("--partition", type=click.IntRange(0), metavar="P", help="This partition alone.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most so many records.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what arrives, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each record.")
def command(
    topic: str,
    path: Path | None,
    env: str | None,
    start: str | None,
    partition: int | None,
    limit: int | None,
    follow: bool,
    as_json: bool,
) -> None:
    """Show the records of a stream or topic.

    Without --from the last ten are shown or, with -f, what arrives from now on. A record is its partition and offset,
    its arrival, its key and its value. Records come in the order of their arrival.
    """
    from headrace.config import config
    from headrace.topics import open_log

    loaded = config.load(path, env=env)
    with open_log(loaded) as log:
        name = find_topic(log, config.names(loaded), topic)
        chosen = log.end_offsets(name) if partition is None else {partition: 0}
        for number in chosen:
            log.topics()[name].check_partition(number)
        for record in _records(log, name, chosen, start=start, limit=limit, follow=follow):
            data(json.dumps(as_object(record), ensure_ascii=False) if as_json else as_line(record))


def _records(
    log: Log, topic: str, chosen: dict[int, int], *, start: str | None, limit: int | None, follow: bool
) -> Iterator[Record]:
    from itertools import islice

    if start is None and not follow:
        return last(log, topic, chosen, limit or LAST)
    first = {number: offset for number, offset in positions(log, topic, start or "end").items() if number in chosen}
    return islice(_following(log, topic, first) if follow else _present(log, topic, first), limit)


def find_topic(log: Log, named: Names, name: str) -> str:
    """A topic by the name of its stream, or by its own."""
    known = log.topics()
    if named.topic(name) in known:
        return named.topic(name)
    if name in known:
        return name
    from headrace.log.topic import unknown

    raise unknown(name, list(known))


def positions(log: Log, topic: str, where: str) -> dict[int, int]:
    """Where to start in each partition: start, end, an offset, a time or an age.

    An offset outside a partition is brought to its nearest end.
    """
    from headrace.clock import SystemClock, duration, parse_timestamp
    from headrace.errors import DefinitionError

    starts, ends = log.start_offsets(topic), log.end_offsets(topic)
    if where in ("start", "end"):
        return starts if where == "start" else ends
    if re.fullmatch(r"[0-9]{1,18}", where):
        return {number: min(max(int(where), starts[number]), ends[number]) for number in ends}
    moment = parse_timestamp(where)
    if moment is None:
        try:
            moment = SystemClock().now() - duration(where)
        except DefinitionError:
            hint = "Say start, end, an offset, a time such as 2026-01-31T12:00:00Z, or an age such as 5m."
            raise UsageError("bad-usage", "--from cannot be read.", got=shown(where), hint=hint) from None
    return log.offset_at(topic, moment)


def last(log: Log, topic: str, chosen: dict[int, int], count: int) -> Iterator[Record]:
    """The records that arrived last, the oldest of them first."""
    starts, ends = log.start_offsets(topic), log.end_offsets(topic)
    found: list[Record] = []
    for number in chosen:
        reach = count
        # Compaction leaves gaps: reach further back until there are enough.
        while True:
            first = max(starts[number], ends[number] - reach)
            records = list(_present(log, topic, {number: first}))[-count:]
            if len(records) >= count or first == starts[number]:
                break
            reach *= 4
        found += records
    return iter(sorted(found, key=_order)[-count:])


def _order(record: Record) -> tuple[int, int, int]:
    return record.arrived_at, record.partition, record.offset


def _present(log: Log, topic: str, first: dict[int, int]) -> Iterator[Record]:
    """What is there now, by arrival."""
    ends = log.end_offsets(topic)
    return heapq.merge(*(_partition(log, topic, number, at, ends[number]) for number, at in first.items()), key=_order)


def _partition(log: Log, topic: str, number: int, at: int, end: int) -> Iterator[Record]:
    while at < end:
        records = log.read(topic, number, at, limit=CHUNK)
        yield from (record for record in records if record.offset < end)
        at = records[-1].offset + 1 if records else end


def _following(log: Log, topic: str, first: dict[int, int]) -> Iterator[Record]:
    from headrace.log.follow import follow

    for records in follow(log, topic, first):
        yield from records


def as_line(record: Record) -> str:
    """A record in one line.

    >>> from headrace.log.record import Record
    >>> as_line(Record("payments", 0, 7, 1767225600000000, b"42", b'{"id": "a"}'))
    '0/7  2026-01-01T00:00:00Z  42  {"id": "a"}'
    """
    from headrace.clock import show_time

    key, value = (_text(part) for part in (record.key, record.value))
    headers = "".join(f"  {name}={_text(value)}" for name, value in record.headers)
    return f"{record.partition}/{record.offset}  {show_time(record.arrived_at)}  {key}  {value}{headers}"


def _text(part: bytes | None) -> str:
    """Bytes as a line can show them: nothing in them moves the cursor or breaks the line."""
    if part is None:
        return "-"
    return printable(part.decode("utf-8", "backslashreplace"))


def as_object(record: Record) -> dict[str, Any]:
    """A record for programs; bytes that are not UTF-8 are under `..._base64`."""
    from headrace.clock import show_time

    made: dict[str, Any] = {
        "partition": record.partition,
        "offset": record.offset,
        "arrived_at": show_time(record.arrived_at),
    }
    for name, part in (("key", record.key), ("value", record.value)):
        made |= _member(name, part)
    if record.headers:
        made["headers"] = [{"name": name} | _member("value", value) for name, value in record.headers]
    return made


def _member(name: str, part: bytes | None) -> dict[str, str | None]:
    try:
        return {name: None if part is None else part.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(part or b"").decode()}
