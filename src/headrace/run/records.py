"""Records of a topic as a DataFrame, the same columns whichever log they are in.

`topic, partition, offset, arrived_at, key, value, headers`, as `run.source` describes them. What the bytes mean is
decided by `run.admit`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from headrace.log.embedded import EmbeddedLog
from headrace.log.protocol import Offsets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDS_PER_TASK = 50_000


def slice_of(session: SparkSession, log: EmbeddedLog, topic: str, start: Offsets, end: Offsets) -> DataFrame:
    """The records from `start` to `end`, which is fixed: reading it twice gives the same."""
    options = {
        "path": str(log.folder),
        "topic": topic,
        "startingOffsets": _listed(start),
        "endingOffsets": _listed(end),
        "recordsPerSlice": str(RECORDS_PER_TASK),
    }
    return session.read.format("headrace_log").options(**options).load()


def stream_of(session: SparkSession, log: EmbeddedLog, topic: str, most: int) -> DataFrame:
    """The records of a topic as they come, at most so many in a micro-batch."""
    options = {"path": str(log.folder), "topic": topic, "maxOffsetsPerTrigger": str(most)}
    return session.readStream.format("headrace_log").options(**options).load()


def _listed(offsets: Offsets) -> str:
    return json.dumps({str(partition): offset for partition, offset in offsets.items()})
