"""Records of Kafka through Spark: slices by its connector, streams in step; the same columns, each record once."""

from __future__ import annotations

import itertools
import json
import os
from typing import Any

import pytest

from headrace.log import Message, follow
from headrace.log.kafka.log import KafkaLog
from headrace.spark.records import slice_of, stream_of
from headrace.spark.source import SCHEMA, register
from tests.processes.cluster import PASSWORD

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture
def log(kafka):
    """As somebody who needs a password."""
    with KafkaLog(kafka.guarded, kafka.login) as made:
        yield made


@pytest.fixture
def topic(log, request):
    name = f"{request.node.name[:150]}-{os.getpid()}"
    log.create_topic(name, partitions=3)
    return name


def fill(log: KafkaLog, topic: str, first: int, count: int) -> None:
    """Keys, tombstones, empty values and headers."""
    batch = [
        Message(
            None if i % 7 == 0 else b"" if i % 11 == 0 else b"value-%d" % i,
            key=None if i % 5 == 0 else b"key-%d" % (i % 20),
            headers=(("trace", b"%d" % i), ("empty", b"")) if i % 3 == 0 else (),
        )
        for i in range(first, first + count)
    ]
    for at in range(0, count, 25):
        log.append_batch(topic, batch[at : at + 25])


def in_log(log: KafkaLog, topic: str) -> list[Any]:
    return sorted(
        (r.partition, r.offset, r.arrived_at, r.key, r.value, r.headers)
        for records in follow(log, topic, log.start_offsets(topic), idle=0)
        for r in records
    )


def in_frame(frame: Any, topic: str) -> list[Any]:
    rows = (
        frame.where(frame.topic == topic)
        .selectExpr("partition", "offset", "unix_micros(arrived_at) at", "key", "value", "headers")
        .collect()
    )
    return sorted(
        (r.partition, r.offset, r.at, _bytes(r.key), _bytes(r.value), tuple((h.key, bytes(h.value)) for h in r.headers))
        for r in rows
    )


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def shape(frame: Any) -> list[tuple[str, Any]]:
    """Names and types; whether something may be null is the source's own business."""
    return [(field.name, field.dataType.simpleString()) for field in frame.schema]


def test_a_slice_is_what_the_log_holds_and_shows_no_password(spark, log, topic, capfd):
    fill(log, topic, 0, 200)
    end = log.end_offsets(topic)
    frame = slice_of(spark, log, topic, log.start_offsets(topic), end)
    assert in_frame(frame, topic) == in_log(log, topic)
    assert shape(frame) == shape(spark.createDataFrame([], SCHEMA))
    part = in_frame(slice_of(spark, log, topic, {0: 3, 1: 0, 2: end[2]}, {0: 9, 1: 0, 2: end[2]}), topic)
    assert [row[:2] for row in part] == [(0, offset) for offset in range(3, 9)]
    frame.explain(True)
    assert PASSWORD not in "".join(capfd.readouterr())


def test_a_large_range_of_one_partition_is_read_by_several_tasks(spark, log, topic, monkeypatch):
    monkeypatch.setattr("headrace.spark.records.RECORDS_PER_TASK", 20)
    log.append_batch(topic, [Message(b"%d" % i) for i in range(100)], partition=1)
    frame = slice_of(spark, log, topic, log.start_offsets(topic), log.end_offsets(topic))
    assert frame.rdd.getNumPartitions() == 5
    assert sorted(int(row.value) for row in frame.collect()) == list(range(100))


def test_a_stream_reads_everything_once_in_bounded_batches_in_step_over_restarts(spark, log, topic, tmp_path, capfd):
    register(spark)
    batches: list[list[Any]] = []

    def keep(frame: Any, _: int) -> None:
        batches.append(in_frame(frame, topic))

    def run() -> Any:
        frame = stream_of(spark, log, topic, 60)
        assert shape(frame) == shape(spark.createDataFrame([], SCHEMA))
        writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        query.explain(True)
        return query.lastProgress

    fill(log, topic, 0, 150)
    run()
    assert [len(batch) for batch in batches] == [60, 60, 30]
    fill(log, topic, 150, 70)
    told = run()
    assert [len(batch) for batch in batches[3:]] == [60, 10]
    assert sorted(row for batch in batches for row in batch) == in_log(log, topic)
    arrivals = [sorted(row[2] for row in batch) for batch in batches]
    assert all(before[-1] <= after[0] for before, after in itertools.pairwise(arrivals))
    assert json.loads(told.sources[0].endOffset) == {str(p): end for p, end in log.end_offsets(topic).items()}
    assert PASSWORD not in "".join(capfd.readouterr()) + str(told)
    written = [file.read_bytes() for file in (tmp_path / "checkpoint").rglob("*") if file.is_file()]
    assert written
    assert not any(PASSWORD.encode() in text for text in written)
