"""The embedded log through Spark: the same records, each once, in bounded batches."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headrace.clock import SECOND
from headrace.errors import HeadraceError
from headrace.log import EmbeddedLog, Message, Retention, follow
from headrace.spark.source import SCHEMA, LogSource, SourceOptions, StreamReader, register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = 1_767_225_600 * SECOND


class HandClock:
    def __init__(self) -> None:
        self.time = START

    def now(self) -> int:
        self.time += 1
        return self.time


@pytest.fixture
def log(tmp_path: Path) -> EmbeddedLog:
    made = EmbeddedLog(tmp_path / "log", clock=HandClock())
    made.create_topic("t", partitions=3)
    return made


def fill(log: EmbeddedLog, first: int, count: int) -> None:
    """Keys, tombstones, empty values and headers, in batches and alone."""
    batch = [
        Message(
            None if i % 7 == 0 else b"" if i % 11 == 0 else b"value-%d" % i,
            key=None if i % 5 == 0 else b"key-%d" % (i % 20),
            headers=(("trace", b"%d" % i), ("empty", b"")) if i % 3 == 0 else (),
        )
        for i in range(first, first + count)
    ]
    log.append_batch("t", batch[: count // 2])
    log.append_batch("t", batch[count // 2 : -1])
    log.append("t", batch[-1].value, key=batch[-1].key, headers=batch[-1].headers)


def in_log(log: EmbeddedLog) -> list[Any]:
    return sorted(
        (r.partition, r.offset, r.arrived_at, r.key, r.value, r.headers)
        for records in follow(log, "t", log.start_offsets("t"), idle=0)
        for r in records
    )


def in_frame(frame: DataFrame) -> list[Any]:
    rows = (
        frame.where("topic = 't'")
        .selectExpr("partition", "offset", "unix_micros(arrived_at) at", "key", "value", "headers")
        .collect()
    )
    return sorted(
        (r.partition, r.offset, r.at, _bytes(r.key), _bytes(r.value), tuple((h.key, bytes(h.value)) for h in r.headers))
        for r in rows
    )


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def options(log: EmbeddedLog, **more: Any) -> dict[str, Any]:
    return {"path": str(log.folder), "topic": "t", **more}


@pytest.mark.spark
def test_a_batch_read_is_the_log(spark: SparkSession, log: EmbeddedLog) -> None:
    register(spark)
    fill(log, 0, 200)
    read = spark.read.format("headrace_log").options(**options(log, recordsPerSlice=50)).load()
    assert in_frame(read) == in_log(log)
    ranged = options(log, startingOffsets='{"0": 3, "1": 0, "2": 5}', endingOffsets='{"0": 9, "1": 0, "2": 6}')
    assert [row[:2] for row in in_frame(spark.read.format("headrace_log").options(**ranged).load())] == [
        *((0, offset) for offset in range(3, 9)),
        (2, 5),
    ]


@pytest.mark.spark
def test_a_stream_reads_everything_once_in_bounded_batches_over_restarts(
    spark: SparkSession, log: EmbeddedLog, tmp_path: Path
) -> None:
    register(spark)
    batches: list[list[Any]] = []

    def keep(frame: DataFrame, _: int) -> None:
        batches.append(in_frame(frame))

    def run() -> list[Any]:
        progress = (
            spark.readStream.format("headrace_log")
            .options(**options(log, maxOffsetsPerTrigger=60))
            .load()
            .writeStream.foreachBatch(keep)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert progress.awaitTermination(120)
        return list(progress.recentProgress)

    fill(log, 0, 150)
    run()
    assert [len(batch) for batch in batches] == [60, 60, 30]
    fill(log, 150, 70)
    last = run()[-1]
    assert [len(batch) for batch in batches[3:]] == [60, 10]
    assert sorted(row for batch in batches for row in batch) == in_log(log)
    arrivals = [sorted(row[2] for row in batch) for batch in batches]
    assert all(before[-1] <= after[0] for before, after in itertools.pairwise(arrivals))
    assert '"0"' in str(last.sources[0].latestOffset)


@pytest.mark.spark
def test_the_arrow_columns_are_those_that_spark_declares(spark: SparkSession) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    from headrace.log.embedded import arrow

    register(spark)
    assert to_arrow_schema(spark.createDataFrame([], SCHEMA).schema, timezone="UTC").equals(arrow.SCHEMA)


# planning, without Spark


def reader(log: EmbeddedLog, **more: Any) -> StreamReader:
    return StreamReader(SourceOptions(options(log, **more)))


def test_a_stream_starts_where_its_options_say(log: EmbeddedLog) -> None:
    for i in range(6):
        log.append("t", b"", partition=i % 3)
    assert reader(log).initialOffset() == {"0": 0, "1": 0, "2": 0}
    assert reader(log, startingOffsets="latest").initialOffset() == {"0": 2, "1": 2, "2": 2}
    assert reader(log, startingOffsets='{"0": 1, "1": 2, "2": 0}').initialOffset() == {"0": 1, "1": 2, "2": 0}
    assert reader(log, startingTime=str(START + 5)).initialOffset() == {"0": 2, "1": 1, "2": 1}
    assert reader(log, startingTime="2026-01-01T00:00:00.000005Z").initialOffset() == {"0": 2, "1": 1, "2": 1}


def test_available_now_ends_where_the_log_ended_when_it_began(log: EmbeddedLog) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    stream = reader(log)
    log.append("t", b"", partition=0)
    stream.prepareForTriggerAvailableNow()
    log.append("t", b"", partition=0)
    assert stream.latestOffset(stream.initialOffset(), ReadAllAvailable()) == {"0": 1, "1": 0, "2": 0}
    stream.stop()


def test_every_offset_is_in_one_slice(log: EmbeddedLog) -> None:
    slices = SourceOptions(options(log, recordsPerSlice="3")).slices({0: 1, 1: 4, 2: 0}, {0: 8, 1: 4, 2: 2})
    assert [(s.partition, s.start, s.end) for s in slices] == [(0, 1, 4), (0, 4, 7), (0, 7, 8), (2, 0, 2)]


def test_a_checkpoint_that_retention_has_passed_is_an_error_and_not_a_gap(log: EmbeddedLog) -> None:
    log.create_topic("t", partitions=3, retention=Retention(age=0))
    log.append("t", b"gone", partition=0)
    log.clean("t")
    log.append("t", b"there", partition=0)
    stream = reader(log)
    (piece,) = stream.partitions({"0": 0, "1": 0, "2": 0}, {"0": 2, "1": 0, "2": 0})
    with pytest.raises(HeadraceError) as caught:
        list(stream.read(piece))
    assert caught.value.code == "offset-out-of-range"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"startingOffset": "latest"}, "unknown-setting"),
        ({"topic": ""}, "bad-setting"),
        ({"startingOffsets": "first"}, "bad-setting"),
        ({"startingOffsets": '{"0": 1}'}, "bad-setting"),
        ({"startingOffsets": "latest", "startingTime": "5"}, "bad-setting"),
        ({"startingTime": "2026-01-01T00:00:00"}, "naive-timestamp"),
        ({"maxOffsetsPerTrigger": "0"}, "bad-setting"),
        ({"recordsPerSlice": "many"}, "bad-setting"),
        ({"endingOffsets": "latest"}, "bad-setting"),
        ({"topic": "u"}, "unknown-topic"),
        ({"path": os.devnull}, "unknown-topic"),
    ],
)
def test_an_option_that_means_nothing_is_refused(log: EmbeddedLog, given: dict[str, str], code: str) -> None:
    with pytest.raises(HeadraceError) as caught:
        reader(log, **given).initialOffset()
    assert caught.value.code == code


def test_spark_knows_the_source_by_its_name() -> None:
    assert LogSource.name() == "headrace_log"
