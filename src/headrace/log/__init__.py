"""The append-only log: topics, partitions, offsets, and an arrival time given to every record on append.

The log is the truth; everything downstream is a fold of it. `protocol` says what a log does, `memory` and `embedded`
are two logs that do it, `follow` tails any of them. What a record's bytes mean is `schema`'s business; Spark reads
the embedded log through `run.source`.
"""

from __future__ import annotations

from headrace.log.embedded import EmbeddedLog
from headrace.log.follow import follow
from headrace.log.memory import MemoryLog
from headrace.log.protocol import Log
from headrace.log.record import Message, Position, Record
from headrace.log.topic import Retention, Topic

__all__ = ["EmbeddedLog", "Log", "MemoryLog", "Message", "Position", "Record", "Retention", "Topic", "follow"]
