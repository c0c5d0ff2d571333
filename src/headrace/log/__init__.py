"""The append-only log: topics, partitions, offsets, and an arrival time given to every record on append.

The log is the truth; everything downstream is a fold of it. `protocol` says what a log does, `memory`, `embedded` and
`kafka` are logs that do it (the last is imported from its own module, because it needs a package of its own), `follow`
tails any of them. What a record's bytes mean is `schema`'s business; Spark reads logs through `spark.records`.
"""

from __future__ import annotations

from headrace.log.embedded.log import EmbeddedLog
from headrace.log.follow import follow
from headrace.log.memory import MemoryLog
from headrace.log.protocol import Log
from headrace.log.record import Message, Position, Record
from headrace.log.topic import Retention, Topic

__all__ = ["EmbeddedLog", "Log", "MemoryLog", "Message", "Position", "Record", "Retention", "Topic", "follow"]
