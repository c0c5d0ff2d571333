"""Rows into a stream: JSON lines, CSV and Parquet, checked, paced, dated anew, and counted."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.clock import MINUTE, SECOND, micros, show_time
from headrace.codec.json.read import decoder
from headrace.errors import DataError, DiskFullError, UsageError
from headrace.ingest.files.columns import Columns
from headrace.ingest.files.rows import SourceRow, read_rows
from headrace.ingest.files.source import Source
from headrace.ingest.send.delivery import SendOptions, SendProgress, SendRate, send
from headrace.ingest.send.pipe import open_source
from headrace.log import MemoryLog
from headrace.testing import FakeClock
from headrace.types.field_types import Struct, schema_of

NOW = "2026-06-01T00:00:00Z"
FIELDS = {"id": str, "card": str, "amount": float, "note": str | None, "at": hr.Timestamp}
PAYMENTS = hr.stream("payments", fields=FIELDS, event_time="at", key="card", checks={"positive": "amount > 0"})
GOOD = [
    {"id": "p1", "card": "42", "amount": 10.5, "at": "2026-01-01T00:00:00Z"},
    {"id": "p2", "card": "7", "amount": 2, "note": "é", "at": "2026-01-01T00:01:00Z"},
]


def lines(*rows: object) -> Source:
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    return Source("p.jsonl", "jsonl", content="\n".join(texts).encode())


def table(text: str, **more: Any) -> Source:
    return Source("p.csv", "csv", content=text.encode(), **more)


def rows_of(given: Source, schema: Struct) -> list[SourceRow]:
    return list(read_rows(given, Columns(schema)))


class Trial:
    """A log with one topic, and what was sent to it."""

    def __init__(self, stream: hr.Stream = PAYMENTS) -> None:
        self.stream, self.log, self.clock = stream, MemoryLog(), FakeClock(NOW)
        self.log.create_topic(stream.name)

    def send(self, given: Source, *, pace: SendRate | None = None, **wishes: Any) -> SendProgress:
        return send(
            given, self.stream, self.log, self.stream.name, wish=SendOptions(**wishes), clock=self.clock, pace=pace
        )

    @property
    def values(self) -> list[bytes | None]:
        return [record.value for record in self.log.read(self.stream.name, 0, 0, limit=100_000)]

    @property
    def rows(self) -> list[dict[str, object]]:
        return [json.loads(value or b"") for value in self.values]


@pytest.fixture
def trial() -> Trial:
    return Trial()


def test_lines_are_sent_as_they_are_written_and_empty_ones_are_nothing(trial):
    first, second = '{"at":"2026-01-01T00:00:00Z","id":"p1","card":"4","amount":1.50,"more":1}', json.dumps(GOOD[1])
    assert trial.send(lines(first, "", second, "  ")) == SendProgress(sent=2)
    assert trial.values == [first.encode(), second.encode()]
    assert [record.key for record in trial.log.read("payments", 0, 0)] == [b"4", b"7"]


def test_the_first_bad_row_ends_it_with_its_place_and_what_was_sent(trial):
    with pytest.raises(DataError) as caught:
        trial.send(lines(GOOD[0], "", {**GOOD[1], "amount": "2"}, GOOD[1]))
    error = caught.value
    assert (error.code, error.where) == ("bad-record", "p.jsonl:3")
    assert error.message == "A row cannot be sent: amount must be a finite number."
    assert str(error.hint).startswith("1 event was sent before it. Use --keep-going")
    assert len(trial.values) == 1


def test_a_row_that_a_check_refuses_is_bad(trial):
    with pytest.raises(DataError, match="check positive is false"):
        trial.send(lines({**GOOD[0], "amount": -1}))


def test_bad_rows_are_left_out_and_counted_when_told_to_keep_going(trial):
    done = trial.send(lines("{", GOOD[0], *["[]"] * 20, GOOD[1]), keep_going=True)
    assert (done.sent, done.refused, len(done.faults)) == (2, 21, 10)
    assert done.faults[0].place == "p.jsonl:1"


def test_raw_lines_are_sent_unchecked_and_have_a_key_when_they_fit(trial):
    assert trial.send(lines("{", GOOD[0]), raw=True).sent == 2
    assert [(record.key, record.value) for record in trial.log.read("payments", 0, 0)] == [
        (None, b"{"),
        (b"42", json.dumps(GOOD[0]).encode()),
    ]


def test_a_stream_without_a_key_is_sent_without_one():
    trial = Trial(hr.stream("plain", fields=FIELDS, event_time="at"))
    trial.send(lines(GOOD[0]))
    assert trial.log.read("plain", 0, 0)[0].key is None


# Dates.


def test_rebasing_moves_the_last_event_to_now_and_keeps_the_spacing(trial):
    trial.send(lines(GOOD[1], GOOD[0], "nonsense"), rebase=True, keep_going=True)
    assert [row["at"] for row in trial.rows] == [show_time(micros(NOW)), show_time(micros(NOW) - MINUTE)]
    assert trial.rows[0]["note"] == "é"


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=50), st.sampled_from(["rfc3339", "us"]))
def test_rebasing_keeps_every_distance_between_events(times, unit):
    stream = hr.stream("s", fields={"at": hr.Timestamp(unit)}, event_time="at")
    trial = Trial(stream)
    trial.send(lines(*({"at": show_time(at) if unit == "rfc3339" else at} for at in times)), rebase=True)
    decode = decoder(stream.schema)
    moved = [(decode(value).row or {})["at"] for value in trial.values]
    assert max(moved) == micros(NOW)
    assert [after - before for before, after in zip(times, moved, strict=True)] == [moved[0] - times[0]] * len(times)


def test_rebasing_coarse_times_stays_on_whole_units():
    trial = Trial(hr.stream("s", fields={"at": hr.Timestamp("s")}, event_time="at"))
    trial.clock.advance("1500ms")
    trial.send(lines({"at": 0}, {"at": 7}), rebase=True)
    last = micros(NOW) // SECOND + 1
    assert [row["at"] for row in trial.rows] == [last - 7, last]


def test_rebasing_moves_a_declared_arrival_with_its_event():
    fields = {"at": hr.Timestamp, "seen": hr.Timestamp}
    trial = Trial(hr.stream("s", fields=fields, event_time="at", arrival="field:seen"))
    trial.send(lines({"at": "2026-01-01T00:00:00Z", "seen": "2026-01-01T00:00:05Z"}), rebase=True)
    assert trial.rows[0]["seen"] == show_time(micros(NOW) + 5 * SECOND)


def test_with_a_rate_every_event_happens_as_it_is_sent(trial):
    def nap(seconds: float) -> None:
        trial.clock.advance(f"{round(seconds * 1e6)}us")

    pace = SendRate(0.5, now=lambda: trial.clock.now() / SECOND, nap=nap)
    trial.send(lines(*GOOD, GOOD[0]), rebase=True, rate=0.5, pace=pace)
    assert [row["at"] for row in trial.rows] == [show_time(micros(NOW) + 2 * n * SECOND) for n in range(3)]


def test_a_stream_that_takes_its_arrival_from_a_header_gets_one():
    trial = Trial(hr.stream("s", fields={"at": hr.Timestamp}, event_time="at", arrival="header:seen"))
    trial.send(lines({"at": "2026-01-01T00:00:00Z"}))
    assert trial.log.read("s", 0, 0)[0].headers == (("seen", b"2026-06-01T00:00:00Z"),)


@given(st.floats(0.1, 50_000), st.lists(st.floats(0, 0.2), max_size=30))
def test_a_pace_gives_each_event_when_it_is_due_and_never_before(rate, delays):
    at = [0.0]
    pace = SendRate(rate, now=lambda: at[0], nap=lambda seconds: at.__setitem__(0, at[0] + seconds))
    given = 0
    for delay in delays:
        given += pace.due()
        assert given <= at[0] * rate + 1 + 1e-6
        at[0] += delay
    if delays and all(delay * rate < 900 for delay in delays):
        assert given + 1 >= (at[0] - delays[-1]) * rate


# CSV.


def test_csv_cells_become_what_their_fields_are(trial):
    text = (
        "at,amount,id,card,other,note\r\n"
        '2026-01-01T00:00:00Z,1.50,p1,"a ""b"", c",x,\r\n'
        "2026-01-01T00:00:00Z,2e1,p2,,y,n\r\n"
    )
    unknown: list[str] = []
    assert trial.send(table(text, report=unknown.append)).sent == 2
    assert trial.rows[0] == {
        "at": "2026-01-01T00:00:00Z",
        "amount": 1.5,
        "id": "p1",
        "card": 'a "b", c',
        "note": None,
    }
    assert (trial.rows[1]["card"], trial.rows[1]["note"], trial.rows[1]["amount"]) == ("", "n", 20.0)
    assert unknown == ["other"]


@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        (int, {"7": 7, "-1": -1}, ["1.0", "1_0", " 1", "+1", "007", "9223372036854775808", "x", "\uff11"]),
        (float, {"1.50": 1.5, "2": 2.0, "-1e3": -1000.0}, ["nan", "inf", "1e999", "1,5", ".5", "1_0", "0x1"]),
        (bool, {"true": True, "False": False}, ["1", "yes", "t"]),
        (hr.Decimal(5, 2), {"1.50": Decimal("1.50"), "2": Decimal("2.00")}, ["1.505", "1234.5", "1e2", "x"]),
        (hr.Timestamp, {"2026-01-01T00:00:00Z": micros("2026-01-01T00:00:00Z")}, ["2026-01-01", "0"]),
        (hr.Timestamp("ms"), {"5": 5_000}, ["5.0", "2026-01-01T00:00:00Z"]),
        (list[int], {"[1, 2]": [1, 2]}, ["[1", "1", '["1"]', '1],"x":[2']),
        ({"a": int}, {'{"a": 1}': {"a": 1}}, ["{}", '{"a": 1}, "b": {"a": 1}']),
        (str, {'"': '"', "a\nb": "a\nb", "\u2028": "\u2028"}, []),
    ],
)
def test_a_cell_is_read_strictly_by_its_type(annotation, good, bad):
    schema = schema_of({"value": annotation, "pad": int})
    read = decoder(schema)

    def cell(text: str) -> object:
        (row,) = rows_of(table('value,pad\n"' + text.replace('"', '""') + '",1\n'), schema)
        decoded = read(row.value) if row.fault is None else None
        return None if decoded is None or decoded.row is None else decoded.row["value"]

    assert {text: cell(text) for text in good} == good
    assert {text: cell(text) for text in bad} == dict.fromkeys(bad)
    assert cell("") == ("" if annotation is str else None)


def test_an_empty_cell_is_null_where_null_may_be():
    schema = schema_of({"a": int | None, "b": str | None, "c": str})
    (row,) = rows_of(table("a,b,c\n,,\n"), schema)
    assert decoder(schema)(row.value).row == {"a": None, "b": None, "c": ""}


def test_a_bad_cell_is_named_by_line_and_column(trial):
    text = 'id,card,amount,at\n"a\nb",4,1,2026-01-01T00:00:00Z\np2,4,lots,2026-01-01T00:00:00Z\n'
    with pytest.raises(DataError) as caught:
        trial.send(table(text))
    error = caught.value
    assert (error.where, error.got) == ("p.csv:4, column 'amount'", "'lots'")
    assert "amount must be a finite number" in error.message
    assert "--raw" not in str(error.hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "There is no column for the required field 'id'."),
        ("id,card,amuont,at\n", "There is no column for the required field 'amount'."),
        ("id,card,amount,at,id\n", "Two columns have one name."),
        ('id,card,amount,at\n"p1"x,4,1,2\n', "The file is not CSV"),
        ('id,card,amount,at\n"p1,4,1,2\n', "The file is not CSV"),
    ],
)
def test_a_file_that_is_no_such_csv_is_refused(trial, text, message):
    with pytest.raises(DataError) as caught:
        trial.send(table(text), keep_going=True)
    assert caught.value.code == "bad-file"
    assert message in caught.value.message


def test_a_row_with_too_few_cells_is_a_bad_row(trial):
    done = trial.send(table("id,card,amount,at\np1,4\n"), keep_going=True)
    assert done.faults[0].reason == "it has 2 cells and the header 4"


def test_a_file_in_another_encoding_is_refused(trial):
    with pytest.raises(DataError, match="not UTF-8"):
        trial.send(Source("p.csv", "csv", content="id,card,amount,at\né,4,1,2\n".encode("latin-1")))


# Parquet.


@pytest.fixture
def parquet(tmp_path):
    """A Parquet file of columns with Arrow types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def write(**columns: tuple[list[object], object]) -> Source:
        made = {name: pa.array(values, kind) for name, (values, kind) in columns.items()}
        pq.write_table(pa.table(made), tmp_path / "p.parquet")
        return open_source(str(tmp_path / "p.parquet"))

    return write


def read_back(given: Source, schema: Struct) -> list[dict[str, object] | None]:
    decode = decoder(schema)
    return [decode(row.value).row if row.fault is None else None for row in rows_of(given, schema)]


def test_parquet_columns_become_what_their_fields_are(parquet):
    import pyarrow as pa

    moment = micros("2026-01-01T00:00:00.123456Z")
    given = parquet(
        at=([moment * 1_000 + 789], pa.timestamp("ns", "Europe/Berlin")),
        when=([moment // 1_000], pa.timestamp("ms", "UTC")),
        price=([Decimal("123456789012345678.50")], pa.decimal128(20, 2)),
        real=([Decimal("2.50")], pa.decimal128(10, 2)),
        n=([7], pa.int32()),
        tags=([["a", None]], pa.list_(pa.string())),
        inner=([{"x": True, "extra": 1}], None),
        other=(["left out"], None),
    )
    schema = schema_of(
        {
            "at": hr.Timestamp,
            "when": hr.Timestamp("s"),
            "price": hr.Decimal(20, 2),
            "real": float,
            "n": int,
            "tags": list[str | None],
            "inner": {"x": bool},
            "absent": str | None,
        }
    )
    assert read_back(given, schema) == [
        {
            "at": moment,
            "when": micros("2026-01-01T00:00:00Z"),
            "price": Decimal("123456789012345678.50"),
            "real": 2.5,
            "n": 7,
            "tags": ["a", None],
            "inner": {"x": True},
            "absent": None,
        }
    ]


def test_a_parquet_value_without_a_json_form_is_a_bad_row(parquet):
    given = parquet(a=([float("nan"), 1.0], None), b=([1, 2], None))
    schema = schema_of({"a": float, "b": int})
    first, second = rows_of(given, schema)
    assert first.fault is not None
    assert first.fault.place == "p.parquet, row 1"
    assert second.fault is None


def test_parquet_timestamps_without_a_time_zone_are_refused(parquet):
    import pyarrow as pa

    with pytest.raises(DataError, match="have no time zone"):
        rows_of(parquet(at=([0], pa.timestamp("us"))), schema_of({"at": hr.Timestamp}))


def test_a_parquet_file_without_a_required_column_is_refused(parquet):
    with pytest.raises(DataError, match="no column for the required field 'card'"):
        rows_of(parquet(crad=(["a"], None)), schema_of({"card": str}))


def test_bytes_that_are_not_parquet_are_refused():
    with pytest.raises(DataError, match="not Parquet"):
        rows_of(Source("p.parquet", "parquet", content=b"hello"), schema_of({"card": str}))


# Files.


@pytest.mark.parametrize(
    ("name", "format"),
    [("a.jsonl", "jsonl"), ("a.NDJSON", "jsonl"), ("a.json", "jsonl"), ("a.csv", "csv"), ("a.pq", "parquet")],
)
def test_the_ending_of_a_name_says_its_format(tmp_path, name, format):
    (tmp_path / name).touch()
    assert open_source(str(tmp_path / name)).format == format
    assert open_source(str(tmp_path / name), "csv").format == "csv"


def test_a_name_without_a_known_ending_is_refused(tmp_path):
    (tmp_path / "payments.txt").touch()
    with pytest.raises(UsageError, match="format of the file is not known"):
        open_source(str(tmp_path / "payments.txt"))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataError) as caught:
        rows_of(open_source(str(tmp_path / "none.jsonl")), PAYMENTS.schema)
    assert caught.value.code == "bad-file"


def test_a_full_disk_ends_it_and_says_how_much_is_in_the_log(monkeypatch):
    trial, appended = Trial(), list[int]()
    append = trial.log.append_batch

    def small(topic, messages):
        if appended:
            raise DiskFullError("log-full", "The log cannot grow.", hint="Free some space.")
        appended.append(len(messages))
        return append(topic, messages)

    monkeypatch.setattr(trial.log, "append_batch", small)
    rows = [GOOD[0] | {"id": f"p{number}"} for number in range(1_500)]
    with pytest.raises(DiskFullError) as ended:
        trial.send(lines(*rows))
    assert (len(trial.values), ended.value.exit_code) == (1_000, 4)
    assert ended.value.hint == "1,000 events were sent before it. Free some space, then send the rest."
