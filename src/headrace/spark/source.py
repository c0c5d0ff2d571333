"""A log as a Spark data source, for batch reads and micro-batch streams.

    register(spark)
    spark.readStream.format("headrace_log").options(path=..., topic="payments", maxOffsetsPerTrigger=100_000).load()

| option | meaning | default |
|---|---|---|
| topic | which topic | needed |
| path | the folder of an embedded log | or brokers |
| brokers, secretOptions | a Kafka cluster, and as JSON the options of librdkafka to reach it | or path |
| startingOffsets | `earliest`, `latest` or JSON such as `{"0": 5, "1": 0}` | earliest |
| startingTime | RFC 3339 or microseconds: the first record that arrived then; instead of startingOffsets | |
| endingOffsets, endingTime | the same for the end of a batch read | latest |
| maxOffsetsPerTrigger | the most records in a micro-batch, taken by arrival time (see `log.read_slice`) | no bound |
| recordsPerSlice | the most records in one task; a partition's range is cut into slices of it | 200000 |

A stream that restarts goes on from its checkpoint; a checkpoint that retention has passed is an error, never a gap.
Records leave as Arrow batches. Meaning is put into the bytes by `spark.admission`; writing back to a log is not done
here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from headrace.clock import micros
from headrace.errors import ConfigError, did_you_mean, shown
from headrace.log import EmbeddedLog, Log
from headrace.log.read_slice import bounded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

SCHEMA = (
    "topic STRING, partition INT, offset BIGINT, arrived_at TIMESTAMP, key BINARY, value BINARY,"
    " headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
RECORDS_PER_SLICE = 200_000
# Spark hands options over case-insensitively, in lower case.
OPTIONS = (
    "path",
    "brokers",
    "secretOptions",
    "topic",
    "startingOffsets",
    "startingTime",
    "endingOffsets",
    "endingTime",
    "maxOffsetsPerTrigger",
    "recordsPerSlice",
)


def register(session: SparkSession) -> None:
    """Make `headrace_log` known to a session.

    The workers of a local session then run this very interpreter, the one that has Headrace: left alone, Spark takes
    whatever `python3` is on the path. PYSPARK_PYTHON, when set, is kept.
    """
    context = session.sparkContext
    if (context.master or "").startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    session.dataSource.register(LogSource)


class Slice(InputPartition):
    """What one task reads: the offsets [start, end) of one partition."""

    def __init__(self, partition: int, start: int, end: int) -> None:
        self.partition, self.start, self.end = partition, start, end


class LogSource(DataSource):
    """The data source `headrace_log`."""

    @classmethod
    def name(cls) -> str:
        """The format to name in `spark.read.format`."""
        return "headrace_log"

    def schema(self) -> str:
        """The columns, the same for every topic."""
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        """For `spark.read`."""
        return BatchReader(SourceOptions(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        """For `spark.readStream`."""
        return StreamReader(SourceOptions(self.options))


class SourceOptions:
    """The options, read and checked."""

    def __init__(self, options: Any) -> None:
        given = {name.lower(): value for name, value in options.items()}
        known = {name.lower(): name for name in OPTIONS}
        for name in sorted(set(given) - set(known)):
            raise _bad(
                "unknown-setting", "The source headrace_log has no such option.", name, did_you_mean(name, OPTIONS)
            )
        if not given.get("topic"):
            raise _bad("bad-setting", "The source headrace_log needs the option 'topic'.", given.get("topic"))
        self.topic = str(given["topic"])
        self.path, self.brokers = given.get("path"), given.get("brokers")
        if bool(self.path) == bool(self.brokers):
            got = (self.path, self.brokers)
            raise _bad("bad-setting", "The source headrace_log needs the option 'path' or 'brokers'.", got)
        self.secret = given.get("secretoptions") or "{}"
        self.start = (given.get("startingoffsets"), given.get("startingtime"))
        self.end = (given.get("endingoffsets"), given.get("endingtime"))
        self.most = _count("maxOffsetsPerTrigger", given.get("maxoffsetspertrigger"))
        self.slice = _count("recordsPerSlice", given.get("recordsperslice")) or RECORDS_PER_SLICE

    def open(self) -> Log:
        """The log."""
        if self.path:
            return EmbeddedLog(self.path)
        from headrace.log.kafka.log import KafkaLog

        return KafkaLog(str(self.brokers), msgspec.json.decode(self.secret, type=dict[str, str]))

    def offsets(self, log: Log, bound: tuple[str | None, str | None], otherwise: str) -> dict[int, int]:
        """The offsets that a pair of options (offsets, time) means now."""
        text, moment = bound
        if moment is not None:
            if text is not None:
                raise _bad("bad-setting", "Offsets and a time cannot both be given for one end.", (text, moment))
            return log.offset_at(self.topic, int(moment) if moment.lstrip("-").isdigit() else micros(moment))
        text = otherwise if text is None else text
        if text == "earliest":
            return log.start_offsets(self.topic)
        ends = log.end_offsets(self.topic)
        return ends if text == "latest" else _listed(text, ends)

    def slices(self, start: dict[int, int], end: dict[int, int]) -> list[Slice]:
        """The tasks that read from `start` to `end`."""
        return [
            Slice(partition, first, min(first + self.slice, end[partition]))
            for partition in sorted(end)
            for first in range(start[partition], end[partition], self.slice)
        ]

    def read(self, partition: InputPartition | Slice) -> Iterator[Any]:
        """The record batches of one task."""
        from headrace.log.embedded.arrow import batches

        if not isinstance(partition, Slice):
            return
        bounds = {"start": partition.start, "end": partition.end}
        if self.path:
            with EmbeddedLog(self.path) as log:
                yield from batches(log, self.topic, partition.partition, **bounds)
        else:
            from headrace.log.kafka.arrow import batches as fetched

            yield from fetched(_worker_connection(self), self.topic, partition.partition, **bounds)


class BatchReader(DataSourceReader):
    """Reads a range that is fixed when the query is planned."""

    def __init__(self, settings: SourceOptions) -> None:
        self.settings = settings

    def partitions(self) -> Sequence[InputPartition]:
        """See `DataSourceReader.partitions`. Spark gives an empty range one task, which reads nothing."""
        with self.settings.open() as log:
            end = self.settings.offsets(log, self.settings.end, "latest")
            return list(self.settings.slices(self.settings.offsets(log, self.settings.start, "earliest"), end))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """See `DataSourceReader.read`."""
        return self.settings.read(partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches. Spark's offsets are JSON objects from partition number to the next offset to read."""

    def __init__(self, settings: SourceOptions) -> None:
        if settings.end != (None, None):
            raise _bad("bad-setting", "A stream has no end: endingOffsets and endingTime are for batch.", settings.end)
        self.settings = settings
        self._log: Log | None = None
        self._target: dict[int, int] | None = None

    @property
    def log(self) -> Log:
        """The log, opened in the planning process only: a reader is pickled to its tasks before it is used."""
        if self._log is None:
            self._log = self.settings.open()
        return self._log

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Where a query without a checkpoint starts."""
        return _spark(self.settings.offsets(self.log, self.settings.start, "earliest"))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The bound of the option maxOffsetsPerTrigger."""
        return ReadAllAvailable() if self.settings.most is None else ReadMaxRows(self.settings.most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of this run."""
        self._target = self.log.end_offsets(self.settings.topic)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """The end of the next micro-batch."""
        first = _headrace(start)
        end = self.log.end_offsets(self.settings.topic) if self._target is None else self._target
        # After a replayed batch the checkpoint may be past the target of a run that was prepared before it.
        end = {partition: max(offset, first[partition]) for partition, offset in end.items()}
        if isinstance(limit, ReadMaxRows):
            end = bounded(self.log, self.settings.topic, first, end, most=limit.max_rows)
        return _spark(end)

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        """The end of the log, for the query's progress."""
        return _spark(self.log.end_offsets(self.settings.topic))

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The tasks of a micro-batch."""
        return self.settings.slices(_headrace(start), _headrace(end))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The record batches of one task."""
        return self.settings.read(partition)

    def stop(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()


_clusters: dict[tuple[str, str], Log] = {}


def _worker_connection(settings: SourceOptions) -> Log:
    """A worker's connection to Kafka: workers live on from task to task, and a new connection costs a batch's time."""
    place = (str(settings.brokers), settings.secret)
    if place not in _clusters:
        _clusters[place] = settings.open()
    return _clusters[place]


def _spark(offsets: dict[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in offsets.items()}


def _headrace(offsets: dict[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in offsets.items()}


def _listed(text: str, ends: dict[int, int]) -> dict[int, int]:
    try:
        listed = msgspec.json.decode(text, type=dict[int, int], strict=False)
    except msgspec.DecodeError:
        listed = {}
    if listed.keys() != ends.keys():
        hint = f"Write earliest, latest, or an offset for each partition from 0 to {len(ends) - 1}."
        raise _bad("bad-setting", "The offsets cannot be read.", text, hint)
    return listed


def _count(name: str, value: str | None) -> int | None:
    if value is None:
        return None
    if not value.isdigit() or int(value) < 1:
        raise _bad("bad-setting", f"The option {name!r} is a whole number from 1.", value)
    return int(value)


def _bad(code: str, message: str, got: Any, hint: str | None = None) -> ConfigError:
    return ConfigError(code, message, got=shown(got), hint=hint)
