"""Poison of every kind: judged alike by Python and Spark, and kept to the byte; it never stops a partition."""

from __future__ import annotations

from dataclasses import replace

import pytest

import headrace as hr
from headrace.clock import SECOND
from headrace.lake.layout import bronze_shape, silver_shape
from headrace.lake.location import Lake
from headrace.lake.table import LakeTable
from headrace.log import MemoryLog, Record
from headrace.meaning.verdict import DEAD, judge
from headrace.spark.dead_letter import present, walk
from tests.spark.test_replayed import frame
from tests.streams import BASE

READINGS = hr.stream(
    "readings",
    fields={
        "id": str,
        "n": int,
        "x": float | None,
        "price": hr.Decimal(20, 4) | None,
        "tags": list[str] | None,
        "at": hr.Timestamp("us"),
    },
    event_id="id",
    event_time="at",
    checks={"positive": "n > 0"},
)


def text(**members: str) -> bytes:
    held = {"id": '"a"', "n": "1", "at": str(BASE)} | members
    return ("{" + ",".join(f'"{name}":{value}' for name, value in held.items()) + "}").encode("utf-8", "surrogatepass")


DEEP = 100_000
POISON: dict[str, bytes | None] = {
    "good": text(),
    "not UTF-8": b'{"id":"\xff\xfe","n":1}',
    "UTF-16": text().decode().encode("utf-16"),
    "overlong UTF-8": text(id='"@"').replace(b"@", b"\xc0\xaf"),
    "a lone surrogate in bytes": text(id='"\ud800"'),
    "a lone surrogate escape": text(id=r'"\ud800"'),
    "a pair of surrogate escapes": text(id=r'"\ud83d\ude00"'),
    "deep arrays": b"[" * DEEP + b"]" * DEEP,
    "deep arrays in a field nobody reads": text(other="[" * DEEP + "]" * DEEP),
    "deep objects, never closed": b'{"a":' * DEEP,
    "a number beyond all floats": text(x="1e400"),
    "a number beyond all floats, negative": text(x="-1e400"),
    "a number of 5,000 digits": text(n="9" * 5_000),
    "a number of 5,000 digits in a float": text(x="9" * 5_000),
    "a number of 900 digits": text(n="9" * 900),
    "an exponent of many digits": text(x="1e" + "9" * 500),
    "a decimal with too many digits": text(price="1." + "1" * 200),
    "NaN": text(x="NaN"),
    "Infinity": text(x="Infinity"),
    "-Infinity": text(x="-Infinity"),
    "duplicate keys": b'{"id":"a","id":"b","n":1,"at":%d}' % BASE,
    "duplicate keys in a field nobody reads": text(other='{"a":1,"a":2}'),
    "empty": b"",
    "null": None,
    "the JSON null": b"null",
    "spaces": b"   ",
    "five megabytes": text(id='"' + "a" * 5_000_000 + '"'),
    "five megabytes of nothing": b" " * 5_000_000,
    "nine megabytes": text(id='"' + "a" * 9_000_000 + '"'),
    "NUL bytes": b"\x00" * 100,
    "a NUL byte after it": text() + b"\x00",
    "a NUL byte in a string": text(id='"a\x00b"'),
    "an escaped NUL": text(id=r'"a\u0000b"'),
    "a byte order mark": b"\xef\xbb\xbf" + text(),
    "trailing text": text() + b" {}",
    "single quotes": text().replace(b'"', b"'"),
    "a comment": text() + b"// so",
    "an array": b"[" + text() + b"]",
    "a check that is false": text(n="-1"),
    "a check on the least number": text(n=str(-(2**63))),
    "a time beyond the year 9999": text(at="9" * 18),
    "the last time there is": text(at="253402300799999999"),
    "the first time there is": text(at="-62135596800000000"),
    "a time of 19 digits": text(at="9223372036854775807"),
    "a list of nulls": text(tags="[null]"),
}
RECORDS = [
    Record("readings", number % 2, number // 2, BASE + SECOND, b"k\xff" if number % 3 else None, value, headers)
    for number, (value, headers) in enumerate(
        (value, (("trace", b"\x00\xff"), ("trace", b"")) if number % 4 else ())
        for number, value in enumerate(POISON.values())
    )
]


@pytest.fixture(scope="module")
def judged(spark):
    from headrace.spark import admission

    return admission.judged(frame(spark, RECORDS), READINGS).persist()


@pytest.mark.spark
def test_python_and_spark_judge_every_poison_alike(judged):
    from headrace.spark import admission

    names = (admission.PARTITION, admission.OFFSET, admission.VERDICT, admission.REASON)
    found = {(row[0], row[1]): (row[2], row[3]) for row in judged.select(*(f"`{name}`" for name in names)).collect()}
    told = {}
    for name, record in zip(POISON, RECORDS, strict=True):
        (mine,) = judge(READINGS, [record])
        verdict, reason = found[record.partition, record.offset]
        told[name] = verdict if verdict == mine.verdict else f"spark {verdict}, {reason}; python {mine.verdict}"
        if verdict not in ("malformed", "admitted") and reason != mine.reason:
            told[name] = f"spark {reason}; python {mine.reason}"
    assert {name: said for name, said in told.items() if said.startswith("spark")} == {}
    assert told["good"] == told["a pair of surrogate escapes"] == told["five megabytes"] == "admitted"
    assert {"malformed", "invalid", "future", "late", "admitted"} == set(told.values())


@pytest.mark.spark
def test_every_refused_record_becomes_a_letter_with_its_own_bytes_key_and_headers(spark, judged, tmp_path):
    from headrace.spark.archive.lake_writer import LakeWriter
    from headrace.spark.archive.refused_records import Refusals

    log = MemoryLog()
    log.create_topic("dead", compacted=True)
    lake = Lake(
        LakeTable(str(tmp_path / "bronze"), bronze_shape()),
        LakeTable(str(tmp_path / "silver"), silver_shape(READINGS)),
        str(tmp_path / "staging"),
    )
    writer = LakeWriter(READINGS, "readings", lake, spark)

    def archived():
        return writer.write(judged, "log", Refusals(READINGS, log, "dead", "late")).counts

    counts = archived()
    letters = present(walk(log, "dead"))
    expected = {f"{each.record.partition}/{each.record.offset}": each for each in judge(READINGS, RECORDS)}
    assert set(letters) == {name for name, each in expected.items() if each.verdict in DEAD}
    for name, letter in letters.items():
        record = expected[name].record
        assert (letter.value, letter.key, letter.headers) == (record.value, record.key, record.headers)
        assert (letter.verdict, letter.arrived_at) == (expected[name].verdict, expected[name].place[0])

    seen = counts.seen()
    assert counts.records == len(RECORDS)
    assert [each.read for each in seen] == [len([r for r in RECORDS if r.partition == p]) for p in (0, 1)]
    assert sum(each.late for each in seen) == sum(counts.verdicts[p, "late"] for p in (0, 1)) > 0
    assert {each[4:] for each in seen} == {(BASE + SECOND,) * 4}

    # The batch is run again by another process; in the meantime one letter was dropped and one is being replayed.
    first, second = list(letters.values())[:2]
    log.append_batch("dead", [first.done("dropped"), replace(second, replaying={0: 3}).message])
    archived()
    assert present(walk(log, "dead")).keys() == letters.keys() - {first.id}
    assert present(walk(log, "dead"))[second.id].replaying == {0: 3}
