"""Watching what is read: alarms on what a stream does that it usually does not.

Pure Python, no Spark, no clock: it is fed with counts of what was read, in the order of arrival. `rate` compares the
late and future rates of a partition with its own recent past, and `stream` adds arrival times that go back and keeps
all of one stream. Counting is `spark.archive.batch_counts`'s business, telling is `spark.archive.component`'s.
"""

from __future__ import annotations

from headrace.alarms.alarm import StreamAlarm
from headrace.alarms.stream import PartitionCounts, StreamWatch

__all__ = ["PartitionCounts", "StreamAlarm", "StreamWatch"]
