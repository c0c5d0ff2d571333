"""What a topic is: a name, a number of partitions, and how long its records are kept."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from headrace.clock import DAY, duration
from headrace.errors import ConfigError, DataError, did_you_mean, shown
from headrace.plural import show_count

NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
MOST_PARTITIONS = 1024
TOMBSTONE_AGE = DAY


class Retention(msgspec.Struct, frozen=True):
    """How long records stay. With neither limit they stay for ever.

    Parameters
    ----------
    age
        Microseconds since arrival after which `clean` removes a record.
    size
        Bytes per partition above which `clean` removes the oldest; the newest append always stays.
    tombstone_age
        Microseconds a compacted topic keeps the tombstone of a key, so that every reader can see it.

    Examples
    --------
    >>> Retention.of(age="7d").age
    604800000000
    """

    age: int | None = None
    size: int | None = None
    tombstone_age: int = TOMBSTONE_AGE

    def __post_init__(self) -> None:
        for name, value in (("age", self.age), ("size", self.size), ("tombstone_age", self.tombstone_age)):
            if value is not None and (type(value) is not int or value < 0):
                raise ConfigError("bad-argument", f"The retention's {name} is a whole number from 0.", got=shown(value))

    @classmethod
    def of(cls, *, age: Any = None, size: int | None = None, tombstone_age: Any = "1d") -> Retention:
        """A retention from durations as users write them."""
        return cls(
            age=None if age is None else duration(age, "a retention age"),
            size=size,
            tombstone_age=duration(tombstone_age, "a tombstone age", zero=True),
        )


FOREVER = Retention()


class Topic(msgspec.Struct, frozen=True):
    """A topic as it was created.

    `arrival` says whose clock gives arrival times: "log" or, in Kafka alone, "producer".

    >>> Topic("payments", 4).partitions
    4
    """

    name: str
    partitions: int
    compacted: bool = False
    retention: Retention = FOREVER
    arrival: str = "log"

    def __post_init__(self) -> None:
        check_name(self.name, "topic")
        if type(self.partitions) is not int or not 1 <= self.partitions <= MOST_PARTITIONS:
            message = f"A topic has between 1 and {MOST_PARTITIONS} partitions."
            raise ConfigError("bad-argument", message, got=shown(self.partitions))
        if self.compacted and self.retention.size is not None:
            hint = "Bound it by age, or leave the size out."
            message = "A compacted topic is bounded by its keys, not by a size."
            raise ConfigError("bad-argument", message, got=shown(self.retention.size), hint=hint)

    def check_partition(self, partition: int) -> None:
        """Refuse a partition the topic does not have."""
        if type(partition) is not int or not 0 <= partition < self.partitions:
            there = "partition 0 alone" if self.partitions == 1 else f"the partitions 0 to {self.partitions - 1}"
            raise DataError("unknown-partition", f"Topic {self.name!r} has {there}.", got=shown(partition))


def check_name(name: Any, what: str) -> None:
    """Refuse a name that is not safe as a file name here and as a topic name in Kafka."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        hint = "Use at most 200 letters, digits, '.', '_' and '-', not starting with a dot."
        raise ConfigError("bad-name", f"A {what} name cannot be used.", got=shown(name), hint=hint)


def agree(existing: Topic, asked: Topic) -> None:
    """Refuse to create a topic again with another number of partitions or another compaction."""
    if existing.partitions != asked.partitions:
        message = f"Topic {asked.name!r} already exists with {show_count(existing.partitions, 'partition')}."
        hint = "A key's partition would change: create a new topic and copy the records."
        raise ConfigError("topic-mismatch", message, got=show_count(asked.partitions, "partition"), hint=hint)
    if existing.compacted != asked.compacted:
        message = f"Topic {asked.name!r} already exists with compacted={existing.compacted}."
        raise ConfigError("topic-mismatch", message, got=f"compacted={asked.compacted}")


def unknown(name: Any, known: list[str]) -> DataError:
    """The error for a topic that does not exist."""
    return DataError(
        "unknown-topic",
        "There is no such topic.",
        got=shown(name),
        hint=did_you_mean(name, known) or "Create it first.",
    )


def check_limit(limit: Any) -> None:
    """Refuse a limit that would read nothing for ever."""
    if type(limit) is not int or limit < 1:
        raise DataError("bad-argument", "A limit is a whole number from 1.", got=shown(limit))


def check_offset(topic: Topic, partition: int, offset: int, *, start: int, end: int) -> None:
    """Refuse a position that is no longer, or not yet, in the log."""
    if start <= offset <= end:
        return
    where = f"{topic.name}/{partition}"
    if offset < start:
        message = f"The records before offset {start} have been removed by retention."
        hint = "Start at the start offset and account for the gap, or rebuild from the lake."
    else:
        message = f"The log ends at offset {end}."
        hint = "A position past the end means another log, or a log that was deleted and created again."
    raise DataError("offset-out-of-range", message, got=f"offset {offset}", hint=hint, where=where)
