"""Imports: history in the lake once, with its own arrival, beside the archive, and whatever is killed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

import headrace as hr
from headrace.clock import MINUTE, SECOND, SystemClock, micros, show_time
from headrace.ingest.files.columns import parse_columns
from headrace.ingest.files.rows import read_rows
from headrace.ingest.files.source import find_source
from headrace.lake.imports import imports
from headrace.lake.layout import bronze_shape, silver_shape
from headrace.lake.location import Lake
from headrace.lake.table import LakeTable
from headrace.log.embedded.log import EmbeddedLog
from headrace.log.record import Record
from headrace.meaning.verdict import ARRIVED_AT, count_verdicts, judge

pytestmark = pytest.mark.spark

FIELDS = {"id": str, "card": str, "amount": float, "at": hr.Timestamp}
payments = hr.stream(
    "payments",
    fields=FIELDS,
    event_time="at",
    event_id="id",
    key="card",
    allowed_lateness="5m",
    max_clock_skew="1m",
    checks={"positive": "amount > 0"},
)
LONG_AGO = micros("2020-01-01T00:00:00Z")


class DiedError(Exception):
    """Stands for a kill."""


class Later(SystemClock):
    """A clock ahead of the log's, so that everything appended has arrived."""

    def now(self) -> int:
        return super().now() + MINUTE


def opened(folder, stream=payments):
    return Lake(
        LakeTable(str(folder / "bronze"), bronze_shape()),
        LakeTable(str(folder / "silver"), silver_shape(stream)),
        str(folder / "staging"),
    )


@pytest.fixture
def lake(tmp_path):
    return opened(tmp_path / "lake")


def line(number, *, delay=SECOND, seen=None, **other):
    """One row that happened long ago and arrived a delay later."""
    at = LONG_AGO + number * SECOND
    row = {"id": f"p{number}", "card": f"c{number % 3}", "amount": 1.5, "at": show_time(at)}
    return json.dumps(row | {"seen": show_time(at + delay) if seen is None else seen} | other)


def wish(file, lines, *, stream=payments, arrived_at="seen", delay=None, **other):
    from headrace.spark.imports.history_import import ImportRequest

    file.write_text("".join(f"{each}\n" for each in lines))
    given, read = find_source(str(file)), parse_columns(stream.schema, {}, arrived_at)
    return ImportRequest(
        given.fingerprint(), repr((arrived_at, delay)), lambda at: read_rows(given, read, at), delay, **other
    )


def writer(spark, lake, stream=payments):
    from headrace.spark.archive.lake_writer import LakeWriter

    return LakeWriter(stream, stream.name, lake, spark)


def bring(spark, lake, asked, folder, *, most=1_000, stream=payments):
    from headrace.spark.imports.history_import import bring as run

    return run(writer(spark, lake, stream), asked, folder, most=most, clock=SystemClock())


def rows(table):
    """The table as anybody finds it, in order of position."""
    found = LakeTable(table.uri, table.shape).delta.to_pyarrow_table().to_pylist()
    names = ("partition", "offset") if "partition" in table.shape.schema.names else ("_partition", "_offset")
    return sorted(found, key=lambda row: tuple(row[name] for name in names))


def test_imported_rows_get_the_verdicts_of_the_reference_by_their_own_arrival(spark, lake, tmp_path):
    lines = [
        line(0),
        line(1, delay=-30 * SECOND),
        line(2, delay=-61 * SECOND),
        line(3, delay=5 * MINUTE),
        line(4, delay=5 * MINUTE + 1),
        line(0, delay=2 * SECOND),
        line(4, delay=6 * MINUTE),
        line(5, amount=-1),
        line(6, amount="much"),
        line(7, seen=""),
        line(8, seen="yesterday"),
        "{",
        line(0, delay=3 * SECOND, amount=7.0),
    ]
    asked = wish(tmp_path / "old.jsonl", lines)
    done = bring(spark, lake, asked, tmp_path)

    arrivals = [row.arrival for row in asked.rows(0)]
    now = micros(datetime.now(UTC))
    by_arrival = sorted(zip(lines, arrivals, strict=True), key=lambda row: int(row[1]) if row[1].isdigit() else now)
    records = [
        Record("payments", -1, at, now, None, text.encode(), ((ARRIVED_AT, arrival.encode()),))
        for at, (text, arrival) in enumerate(by_arrival)
    ]
    judged = judge(payments, records)
    assert done.verdicts == count_verdicts(judged)
    assert all(done.verdicts.values()), "there must be rows of every verdict"
    assert sum(done.verdicts.values()) == done.rows == len(lines)
    assert (done.conflicts, done.late_copies) == (1, 1)
    kept = rows(lake.bronze)
    for each in judged:
        row = kept[each.record.offset]
        assert (row["partition"], row["offset"], row["arrival"]) == (-1, each.record.offset, "imported")
        assert row["verdict"] == each.verdict
        assert row["reason"] == each.reason or each.verdict == "malformed"
        assert row["value"] == each.record.value
        readable = each.event is not None
        assert row["key"] == (each.event.row["card"].encode() if readable else row["key"])
        assert not readable or micros(row["arrived_at"]) == each.place[0]
    counted = [each.record.offset for each in judged if each.contributes]
    assert [row["_offset"] for row in rows(lake.silver)] == sorted(counted)
    assert imports(LakeTable(lake.bronze.uri, bronze_shape()))[0].verdicts == done.verdicts


def test_a_delay_is_assumed_and_marked_so(spark, lake, tmp_path):
    asked = wish(tmp_path / "old.jsonl", [line(0), "{", line(1)], arrived_at=None, delay=3 * SECOND)
    done = bring(spark, lake, asked, tmp_path)
    assert (done.verdicts["admitted"], done.verdicts["malformed"]) == (2, 1)
    assert {row["arrival"] for row in rows(lake.bronze)} == {"assumed"}
    assert [micros(row["_arrived_at"]) for row in rows(lake.silver)] == [
        LONG_AGO + 3 * SECOND,
        LONG_AGO + SECOND + 3 * SECOND,
    ]


def test_the_same_history_is_imported_once_in_parts_and_anew_only_on_purpose(spark, lake, tmp_path):
    lines, file = [line(n) for n in range(25)], tmp_path / "old.jsonl"
    first = bring(spark, lake, wish(file, lines, limit=7), tmp_path, most=5)
    rest = bring(spark, lake, wish(file, lines), tmp_path, most=9)
    more = bring(spark, lake, wish(tmp_path / "a copy.jsonl", lines), tmp_path)
    assert [(done.before, done.rows, done.partition) for done in (first, rest, more)] == [
        (0, 7, -1),
        (7, 18, -1),
        (25, 0, -1),
    ]
    assert [(row["partition"], row["offset"]) for row in rows(lake.bronze)] == [(-1, at) for at in range(25)]
    with pytest.raises(hr.HeadraceError) as refused:
        bring(spark, lake, wish(file, lines, arrived_at=None, delay=SECOND), tmp_path)
    assert refused.value.code == "imported-otherwise"

    anew = bring(spark, lake, wish(file, lines, again=True), tmp_path)
    assert (anew.partition, anew.rows, anew.verdicts["duplicate"]) == (-2, 25, 25)
    assert len(rows(lake.silver)) == 25
    assert {(row["first_partition"], row["first_offset"]) for row in rows(lake.bronze) if row["partition"] == -2} == {
        (-1, at) for at in range(25)
    }


def test_an_import_that_dies_between_the_commits_is_made_up_for_and_goes_on(spark, lake, tmp_path, monkeypatch):
    lines, file = [line(n) for n in range(20)], tmp_path / "old.jsonl"
    real, calls = LakeTable.commit, []

    def dying(table, files, counters):
        calls.append(table.uri)
        if len(calls) == 4:
            raise DiedError
        real(table, files, counters)

    monkeypatch.setattr(LakeTable, "commit", dying)
    with pytest.raises(DiedError):
        bring(spark, lake, wish(file, lines), tmp_path, most=8)
    monkeypatch.undo()
    assert (len(rows(lake.bronze)), len(rows(lake.silver))) == (16, 8)

    fresh = opened(tmp_path / "lake")
    done = bring(spark, fresh, wish(file, lines), tmp_path, most=8)
    assert (done.before, done.rows) == (16, 4)
    for table in (lake.bronze, lake.silver):
        assert len(rows(table)) == 20
    assert [row["_event_id"] for row in rows(lake.silver)] == [f"p{n}" for n in range(20)]


@pytest.fixture
def archive(spark, lake, tmp_path):
    """An archive of three live payments, two of which an import has too."""
    from headrace.spark.archive.archive import StreamArchive

    with EmbeddedLog(tmp_path / "log") as log:
        log.create_topic("payments")
        arrivals = hr.stream(
            "payments", fields=FIELDS | {"seen": hr.Timestamp}, event_time="at", event_id="id", arrival="field:seen"
        )
        for number in (0, 1, 99):
            log.append("payments", line(number).encode())
        made = StreamArchive(arrivals, "payments", log, opened(tmp_path / "lake", arrivals), spark, Later())
        yield made, arrivals


def counts_once(lake, stream, tmp_path):
    """What is in a fresh look at both tables: every event once in silver, every record in bronze."""
    fresh = opened(tmp_path / "lake", stream)
    silver = [row["_event_id"] for row in rows(fresh.silver)]
    assert sorted(silver) == sorted(set(silver))
    return len(rows(fresh.bronze)), len(silver)


def test_of_an_import_and_an_archive_at_the_same_time_each_sees_what_the_other_wrote(archive, spark, lake, tmp_path):
    running, stream = archive
    asked = wish(tmp_path / "old.jsonl", [line(n) for n in range(3)], stream=stream)
    real, steps = running.write, list[Any]()

    def interrupted(*given):
        made = real(*given)
        if not steps:
            steps.append(bring(spark, opened(tmp_path / "lake", stream), asked, tmp_path, stream=stream))
        return made

    running.write = interrupted
    assert running.step().counts.verdicts[0, "duplicate"] == 2
    assert steps[0].verdicts["admitted"] == 3
    assert counts_once(lake, stream, tmp_path) == (6, 4)


def test_an_import_that_the_archive_overtakes_looks_for_copies_again(archive, spark, lake, tmp_path):
    from headrace.spark.imports import history_import as importing

    running, stream = archive
    asked = wish(tmp_path / "old.jsonl", [line(n) for n in range(3)], stream=stream)
    mine = writer(spark, opened(tmp_path / "lake", stream), stream)
    real, steps = mine.write, list[Any]()

    def interrupted(*given):
        made = real(*given)
        if not steps:
            steps.append(running.step())
        return made

    mine.write = interrupted
    done = importing.bring(mine, asked, tmp_path, most=100, clock=SystemClock())
    assert (done.rows, done.verdicts["duplicate"], done.verdicts["admitted"]) == (3, 2, 1)
    assert counts_once(lake, stream, tmp_path) == (6, 4)
    assert running.step() is None


def test_rows_for_an_avro_stream_are_kept_as_json_and_made_up_for_as_such(spark, tmp_path, monkeypatch):
    stream = hr.stream("clicks", fields={"n": int, "at": hr.Timestamp}, event_time="at", format="avro")
    lake = opened(tmp_path / "clicks", stream)
    lines = ['{"n": 1, "at": "2020-01-01T00:00:00Z"}', '{"n": "x", "at": "2020-01-01T00:00:00Z"}']
    asked = wish(tmp_path / "old.jsonl", lines, stream=stream, arrived_at=None, delay=0)
    real = LakeTable.commit

    def dying(table, files, counters):
        if table.uri.endswith("silver"):
            raise DiedError
        real(table, files, counters)

    monkeypatch.setattr(LakeTable, "commit", dying)
    with pytest.raises(DiedError):
        bring(spark, lake, asked, tmp_path, stream=stream)
    monkeypatch.undo()
    done = bring(spark, opened(tmp_path / "clicks", stream), asked, tmp_path, stream=stream)
    assert (done.before, done.rows) == (2, 0)
    assert [(row["value"], row["verdict"]) for row in rows(lake.bronze)] == [
        (lines[0].encode(), "admitted"),
        (lines[1].encode(), "invalid"),
    ]
    assert [(row["n"], row["_event_id"]) for row in rows(lake.silver)] == [(1, "clicks/-1/0")]
