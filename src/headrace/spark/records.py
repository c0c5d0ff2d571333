"""Records of a topic as a DataFrame, the same columns whichever log they are in.

`topic, partition, offset, arrived_at, key, value, headers`, as `spark.source` describes them. Slices of Kafka are read
by Spark's own connector, inside the JVM. Micro-batches with a watermark are read by `spark.source`, because partitions
must advance together by arrival: the connector gives each partition a share, and one that is far behind would be
overtaken by the watermark. Without a watermark, and event by event, the connector is the quicker way. What the bytes
mean is decided by `spark.admission`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.log.embedded.log import EmbeddedLog
from headrace.log.kafka.log import KafkaLog
from headrace.log.kafka.options import for_spark
from headrace.log.protocol import Log, Offsets
from headrace.spark.pipeline.kafka_pace import ONE_BY_ONE, KafkaPace
from headrace.spark.source import SCHEMA

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    Batches = Iterator[pa.RecordBatch]

RECORDS_PER_TASK = 50_000
# A record without headers has none, and a header without a value an empty one, as in the other logs.
_HEADERS = (
    "transform(coalesce(headers, array()), h -> named_struct('key', h.key, 'value', coalesce(h.value, X''))) AS headers"
)


def slice_of(session: SparkSession, log: Log, topic: str, start: Offsets, end: Offsets) -> DataFrame:
    """The records from `start` to `end`, which is fixed: reading it twice gives the same."""
    if isinstance(log, KafkaLog):
        return _connected(session, log, topic, start, end)
    if not isinstance(log, EmbeddedLog):
        raise TypeError(f"Spark cannot read a {type(log).__name__}")
    parts = [
        (partition, first, min(first + RECORDS_PER_TASK, end[partition]))
        for partition in sorted(end)
        for first in range(start[partition], end[partition], RECORDS_PER_TASK)
    ]
    # One task for each part. A data source would do the same, after starting three Python processes to be planned.
    tasks = session.range(0, len(parts), 1, max(1, len(parts)))
    return tasks.mapInArrow(_reader(str(log.folder), topic, parts), SCHEMA)


def _reader(folder: str, topic: str, parts: Sequence[tuple[int, int, int]]) -> Callable[[Batches], Batches]:
    """What a task does: read the parts whose numbers it is given. It runs in Spark's Python workers."""

    def read(given: Batches) -> Batches:
        from headrace.log.embedded.arrow import batches

        with EmbeddedLog(folder) as log:
            for numbers in given:
                for number in numbers.column(0).to_pylist():
                    partition, start, end = parts[number]
                    yield from batches(log, topic, partition, start=start, end=end)

    return read


def stream_of(
    session: SparkSession, log: Log, topic: str, most: int, begin: Mapping[int, int] | None = None
) -> DataFrame:
    """The records of a topic as they come, at most so many in a micro-batch; from its first, or from given offsets."""
    options = {**_log_options(log, topic), "maxOffsetsPerTrigger": str(most), "recordsPerSlice": str(RECORDS_PER_TASK)}
    if begin is not None:
        options["startingOffsets"] = _listed(begin)
    return session.readStream.format("headrace_log").options(**options).load()


def real_time_stream(
    session: SparkSession,
    log: KafkaLog,
    topic: str,
    begin: Mapping[int, int] | None = None,
    pace: KafkaPace = ONE_BY_ONE,
) -> DataFrame:
    """The records of a Kafka topic as they come, which Spark's own connector alone can do."""
    options = {
        **for_spark(log.options, log.spark_options),
        "kafka.bootstrap.servers": log.brokers,
        "kafka.isolation.level": "read_committed",
        **pace.source,
        "subscribe": topic,
        "startingOffsets": "earliest" if begin is None else f"{{{json.dumps(topic)}: {_listed(begin)}}}",
        "failOnDataLoss": "true",
        "includeHeaders": "true",
    }
    rows = session.readStream.format("kafka").options(**options).load()
    return rows.selectExpr("topic", "partition", "offset", "timestamp AS arrived_at", "key", "value", _HEADERS)


def sink_options(log: KafkaLog, topic: str) -> dict[str, str]:
    """What Spark's Kafka sink needs to append to a topic; how long it may wait is said by a `KafkaPace`."""
    return {
        **for_spark(log.options, log.spark_options),
        "kafka.bootstrap.servers": log.brokers,
        "topic": topic,
    }


def _log_options(log: Log, topic: str) -> dict[str, str]:
    if isinstance(log, KafkaLog):
        # Spark hides what is called a secret wherever it shows a plan.
        return {"brokers": log.brokers, "topic": topic, "secretOptions": json.dumps(dict(log.options))}
    if isinstance(log, EmbeddedLog):
        return {"path": str(log.folder), "topic": topic}
    raise TypeError(f"Spark cannot read a {type(log).__name__}")


def _connected(session: SparkSession, log: KafkaLog, topic: str, start: Offsets, end: Offsets) -> DataFrame:
    options = {
        **for_spark(log.options, log.spark_options),
        "kafka.bootstrap.servers": log.brokers,
        "kafka.isolation.level": "read_committed",
        "assign": json.dumps({topic: sorted(end)}),
        "startingOffsets": f"{{{json.dumps(topic)}: {_listed(start)}}}",
        "endingOffsets": f"{{{json.dumps(topic)}: {_listed(end)}}}",
        "failOnDataLoss": "true",
        "includeHeaders": "true",
        "maxRecordsPerPartition": str(RECORDS_PER_TASK),
    }
    rows = session.read.format("kafka").options(**options).load()
    return rows.selectExpr("topic", "partition", "offset", "timestamp AS arrived_at", "key", "value", _HEADERS)


def _listed(offsets: Offsets) -> str:
    return json.dumps({str(partition): offset for partition, offset in offsets.items()})
