"""Fills a store from the changelog: reads on from the store's own position, folds, and remembers, over and over.

Killed at any moment it goes on where the last whole batch ended. A record that cannot be read is counted, logged and
passed; everything else that fails ends the run with its error, for a supervisor to see.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from threading import Event

from headrace.clock import Clock, SystemClock
from headrace.errors import DataError, DiskFullError, HeadraceError
from headrace.log.protocol import Log, Offsets
from headrace.log.record import Record
from headrace.store.implied_progress import InOrder
from headrace.store.protocol import Store
from headrace.tiles.changelog import ProgressRow, Row, TileRow
from headrace.tiles.changelog_format import decode
from headrace.tiles.latency import Latency

BATCH = 5_000
"""Records folded in one transaction."""

BATCH_BYTES = 32 * 1024 * 1024
"""Of records folded in one transaction, about."""

PATIENCE = 0.25
"""Seconds between two looks at `stop` while nothing arrives."""

AWAY = 1.0
"""Seconds between two tries of a store that cannot be reached, and between two looks at where it is."""

EXPIRY = 600.0
"""Seconds between two looks at what has expired."""

_logger = logging.getLogger(__name__)


class Materialiser:
    """Tails changelog topics into a store.

    Parameters
    ----------
    log
        Where the changelog is.
    store
        Where the tiles go.
    topics
        The changelog topics; one that does not exist yet is waited for.

    Attributes
    ----------
    counts
        Records by what they were: `tiles`, `progress`, `gone`, `malformed`; and `gaps`, the times that records had
        been removed before they were read.
    applied_at
        When each topic's last batch was applied.
    latency
        How long events took to become servable, by topic.

    Examples
    --------
    >>> from headrace.log import MemoryLog
    >>> from headrace.tiles.changelog import encode
    >>> from headrace.store.memory import MemoryStore
    >>> log, store = MemoryLog(), MemoryStore()
    >>> _ = log.create_topic("changelog.x", compacted=True)
    >>> key, value = encode(ProgressRow("ab", "r", {0: 1}, as_of=7))
    >>> _ = log.append("changelog.x", value, key=key)
    >>> Materialiser(log, store, ["changelog.x"]).step()
    1
    >>> store.progress("ab")["r"].as_of
    7
    """

    def __init__(self, log: Log, store: Store, topics: Sequence[str], *, clock: Clock | None = None) -> None:
        self._log, self._store, self._clock = log, store, clock or SystemClock()
        self.topics = tuple(topics)
        self.counts: Counter[str] = Counter()
        self.applied_at: dict[str, int] = {}
        self.latency = {topic: Latency() for topic in self.topics}
        self._in_order = {topic: InOrder(store) for topic in self.topics}
        self._caught_up: set[str] = set()
        self._at: dict[str, dict[int, int]] = {}
        self._next_expiry = 0.0

    @property
    def caught_up(self) -> bool:
        """Whether every topic has been read to its end once."""
        return self._caught_up.issuperset(self.topics)

    def lag(self) -> int:
        """How many records of all topics are not in the store; those of compacted offsets count too."""
        behind = 0
        for topic in self._existing():
            at = self._store.position(topic)
            ends, starts = self._log.end_offsets(topic), self._log.start_offsets(topic)
            behind += sum(end - max(at.get(number, 0), starts[number]) for number, end in ends.items())
        return behind

    def run(self, stop: Event) -> None:
        """Fold what comes until told to stop; between records it waits, it does not spin.

        A store that cannot be reached, or whose disk is full, is waited for, and told of once; one that came back empty
        is filled again.
        """
        reached, looked = True, time.monotonic()
        come: Mapping[str, Offsets] | None = None
        while not stop.is_set():
            try:
                folded = self.step(come)
                worked = folded or self._store.compact() or self._expire()
                if time.monotonic() - looked > AWAY:
                    looked = time.monotonic()
                    self._store.check()
                    self._forget_where_the_store_is_not()
            except HeadraceError as error:
                if error.code != "store-unreachable" and not isinstance(error, DiskFullError):
                    raise
                if reached:
                    _logger.error("waiting for the store: %s", error)
                reached = False
                stop.wait(AWAY)
                continue
            if not reached:
                _logger.warning("the store takes tiles again")
            # While a store is filled there is always more; after that, whoever waits is told where something has come.
            reached, come = True, None
            if not worked or (folded and self.caught_up):
                come = self._wait(stop, looked + AWAY)

    def _expire(self) -> int:
        """Remove some of what nobody can ask for any more, now and then, once everything has been read."""
        if not self.caught_up or time.monotonic() < self._next_expiry:
            return 0
        looked = self._store.expire()
        if not looked:
            self._next_expiry = time.monotonic() + EXPIRY
        return looked

    def _forget_where_the_store_is_not(self) -> None:
        """Read on from the store's own position where it is another: it was emptied, or a replica has filled it."""
        for topic, at in list(self._at.items()):
            held = self._store.position(topic)
            if any(held.get(p, 0) != offset for p, offset in at.items()):
                self._at.pop(topic)
                self._in_order[topic] = InOrder(self._store)
                if not held and topic in self.applied_at:
                    _logger.warning("%s: the store was emptied, and is filled again", topic)

    def step(self, come: Mapping[str, Offsets] | None = None) -> int:
        """Fold the next batch of every topic, and make a few level rows; how many records they held.

        Parameters
        ----------
        come
            Where there is something to read, when that is known.
        """
        folded = sum(self._step(topic, None if come is None else come.get(topic, {})) for topic in self._existing())
        if folded:
            self._store.compact()
        return folded

    def _step(self, topic: str, come: Offsets | None) -> int:
        if topic not in self._at:
            self._at[topic] = self._start(topic)
        # Nobody waits for rows that come while a store is filled.
        limit = BATCH if topic in self._caught_up else BATCH * self._store.bulk
        at = self._at[topic]
        read: list[Record] = []
        reached = dict(at)
        for partition in at if come is None else come:
            came = self._log.read(topic, partition, at[partition], limit=limit, max_bytes=BATCH_BYTES)
            read += came
            if came:
                reached[partition] = came[-1].offset + 1
        if read:
            rows = [(row, record.arrived_at) for record in read if (row := self._row(record)) is not None]
            found = [row for row, _ in rows]
            try:
                self._store.apply([*found, *self._in_order[topic].told(found)], topic, reached)
            except BaseException as error:
                # What was not applied is to be read again.
                self._at.pop(topic)
                self._in_order[topic] = InOrder(self._store)
                if isinstance(error, HeadraceError) and error.code == "store-moved":
                    # A replica that fills the same store was first: go on at once where it left off.
                    return len(read)
                raise
            self._at[topic] = reached
            self._note(topic, rows)
        if topic not in self._caught_up and reached == self._log.end_offsets(topic):
            if self._caught_up.issuperset(set(self.topics) - {topic}):
                self._store.mark_filling(False)
            self._caught_up.add(topic)
        return len(read)

    def _start(self, topic: str) -> dict[int, int]:
        """Where to go on; a store that is further than the log belongs to another one."""
        known = self._store.position(topic)
        starts, ends = self._log.start_offsets(topic), self._log.end_offsets(topic)
        if not known and any(ends[partition] > start for partition, start in starts.items()):
            # Rows that a compacted log once held are gone where newer ones come later: half of it is no state at all.
            self._store.mark_filling(True)
            self._caught_up.discard(topic)
        at = {}
        for partition, start in starts.items():
            offset = known.get(partition, 0)
            if offset > ends[partition]:
                hint = "Delete the store's folder: it is filled again from the changelog."
                message = "The store was filled from another log than the one it follows."
                got = f"offset {offset}, but the log ends at {ends[partition]}"
                raise HeadraceError("store-ahead", message, got=got, hint=hint, where=f"{topic}/{partition}")
            if offset < start and partition in known:
                self.counts["gaps"] += 1
                _logger.warning("%s/%d: records %d to %d were removed unread", topic, partition, offset, start - 1)
            at[partition] = max(offset, start)
        return at

    def _row(self, record: Record) -> Row | None:
        try:
            return decode(record.key, record.value)
        except DataError as error:
            self.counts["malformed"] += 1
            _logger.error("%s/%d at %d: %s", record.topic, record.partition, record.offset, error.got)
            return None

    def _note(self, topic: str, rows: Sequence[tuple[Row, int]]) -> None:
        """Count rows, and how long events took; what a batch or the late lane writes has a time of its own."""
        now, latency = self._clock.now(), self.latency[topic]
        self.applied_at[topic] = now
        times = []
        for row, emitted in rows:
            if isinstance(row, TileRow):
                self.counts["tiles"] += 1
                counts = row.run == latency.run and row.lane == "on_time"
                if counts and row.max_event_time is not None and row.max_arrived_at is not None:
                    times.append((row.max_event_time, row.max_arrived_at, emitted))
            else:
                self.counts["progress" if isinstance(row, ProgressRow) else "gone"] += 1
        latency.add(times, now)

    def _existing(self) -> list[str]:
        """The topics that are there; once seen, a topic stays."""
        if len(self._at) < len(self.topics):
            known = self._log.topics()
            return [topic for topic in self.topics if topic in known]
        return list(self.topics)

    def _wait(self, stop: Event, until: float) -> Mapping[str, Offsets] | None:
        """Wait for a record in any topic, at most until a moment; not for long while a topic is not there yet.

        Where there is something, or None when all is to be looked at.
        """
        if not self._at:
            stop.wait(PATIENCE)
            return None
        while not (come := self._log.wait(self._at, PATIENCE)) and not stop.is_set():
            if time.monotonic() > until or len(self._at) < len(self.topics):
                return None
        return come
