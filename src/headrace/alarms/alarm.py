"""An alarm: what is wrong, where, since when, and how it reads in one sentence."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from headrace.clock import show_time
from headrace.disk import LEAST
from headrace.plural import show_count

WENT_BACK, DROPPED, HOT_KEY = "arrival_went_back", "dropped_by_watermark", "hot_key"
WAITS, DISK, CHECKPOINT = "waits", "disk_full", "checkpoint_damaged"


class AlarmStatus(Struct, kw_only=True):
    """An alarm in the status: rates are rounded, `since` is written as a time."""

    stream: str = ""
    partition: int | None = None
    kind: str = ""
    rate: float | None = None
    usual: float | None = None
    since: str = ""
    says: str = ""


@dataclass(frozen=True)
class StreamAlarm:
    """Something that a stream does and should not.

    Parameters
    ----------
    stream
        Whose it is.
    partition
        Where; None when it is the whole stream's.
    kind
        "late" or "future" (their rate has jumped), "arrival_went_back", "dropped_by_watermark", "hot_key", "waits",
        "checkpoint_damaged" (a run began anew), or "disk_full", which is no stream's.
    rate, usual
        The share of records now and before, for the rates; of a hot key its share of the events.
    since
        When it began, in microseconds.
    says
        All of it in a sentence.

    Examples
    --------
    >>> rate_alarm("payments", 1, "late", 0.125, 0.002, 0).says
    'Partition 1 of payments: 12.5 % of the records are late, usually 0.2 %.'
    """

    stream: str
    partition: int | None
    kind: str
    rate: float | None
    usual: float | None
    since: int
    says: str

    def status(self) -> AlarmStatus:
        """The alarm as the status has it."""
        return AlarmStatus(
            stream=self.stream,
            partition=self.partition,
            kind=self.kind,
            rate=None if self.rate is None else round(self.rate, 6),
            usual=None if self.usual is None else round(self.usual, 6),
            since=show_time(self.since),
            says=self.says,
        )


def rate_alarm(stream: str, partition: int, kind: str, rate: float, usual: float, since: int) -> StreamAlarm:
    """The rate of a verdict is far above what it usually is."""
    verdict = "from the future" if kind == "future" else kind
    says = f"Partition {partition} of {stream}: {rate:.1%} of the records are {verdict}, usually {usual:.1%}."
    return StreamAlarm(stream, partition, kind, rate, usual, since, says.replace("%", " %"))


def went_back_alarm(stream: str, partition: int, by: int, since: int) -> StreamAlarm:
    """Arrival times of a partition went back.

    >>> went_back_alarm("payments", 0, 1_500_000, 0).says
    'Partition 0 of payments: arrival times went back by 1.5 s.'
    """
    says = f"Partition {partition} of {stream}: arrival times went back by {by / 1_000_000:,.1f} s."
    return StreamAlarm(stream, partition, WENT_BACK, None, None, since, says)


def dropped_alarm(stream: str, tiles: str, rows: int, since: int) -> StreamAlarm:
    """Spark's watermark dropped rows: they are missing from the tiles, and only the lake has them.

    >>> dropped_alarm("payments", "payments.by_card", 3, 0).says
    'Tiles payments.by_card: 3 rows were dropped by the watermark; `headrace backfill` brings them back from the lake.'
    """
    dropped = show_count(rows, "row was", "rows were")
    back = f"`headrace backfill` brings {'it' if rows == 1 else 'them'} back from the lake"
    return StreamAlarm(
        stream, None, DROPPED, None, None, since, f"Tiles {tiles}: {dropped} dropped by the watermark; {back}."
    )


def hot_key_alarm(stream: str, tiles: str, key: str, share: float, since: int) -> StreamAlarm:
    """Much of what is read is of one key.

    >>> hot_key_alarm("payments", "payments.by_card", "card=42", 0.517, 0).says
    'Tiles payments.by_card: 51.7 % of the events are of one key, card=42.'
    """
    says = f"Tiles {tiles}: {100 * share:.1f} % of the events are of one key, {key}."
    return StreamAlarm(stream, None, HOT_KEY, share, None, since, says)


def waiting_alarm(stream: str, what: str, why: str, since: int) -> StreamAlarm:
    """Something of a stream waits for its lake.

    >>> waiting_alarm("payments", "The archive of payments", "The lake's table payments/bronze cannot be used.", 0).says
    "The archive of payments waits: The lake's table payments/bronze cannot be used."
    """
    return StreamAlarm(stream, None, WAITS, None, None, since, f"{what} waits: {why}")


def full_alarm(folder: str, free: int, since: int, least: int = 0) -> StreamAlarm:
    """The disk is full, or so nearly that no events are taken below `least` bytes.

    >>> full_alarm("data", 4_096, 0).says
    'The disk of data is full, 4,096 bytes are left: reads are answered, everything else waits for space.'
    >>> full_alarm("d", 60_000_000, 0, 1 << 9).says
    'The disk of d has 60,000,000 bytes left: below 512 bytes no events are taken over HTTP (serve.min_free_disk).'
    """
    if free < LEAST or not least:
        left = f"The disk of {folder} is full, {show_count(free, 'byte is', 'bytes are')} left"
        says = f"{left}: reads are answered, everything else waits for space."
    else:
        says = (
            f"The disk of {folder} has {show_count(free, 'byte')} left: "
            f"below {show_count(least, 'byte')} no events are taken over HTTP (serve.min_free_disk)."
        )
    return StreamAlarm("", None, DISK, None, None, since, says)
