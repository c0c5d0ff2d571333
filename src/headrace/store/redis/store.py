"""A store in Redis, for when several serving processes are to share one.

The tiles of a key are one sorted set whose members are in the order of their bytes, and its level rows are another, so
that a key is read in one command whatever its windows (`redis_script`). Every replica may fill it: a batch counts only
if the store still is where this one last left or found it, so what another has folded in is never undone. A Redis that
lost its memory is filled again for the same reason. What rows look like is `redis_rows`' business.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any, Self

from headrace.errors import HeadraceError, MachineError, shown
from headrace.store.protocol import Stats, StoredTile, StoreRead
from headrace.store.redis.client import RedisClient
from headrace.store.redis.drop import empty
from headrace.store.redis.expire import RedisSweep
from headrace.store.redis.levels import RedisLevels
from headrace.store.redis.read import READ
from headrace.store.redis.rows import RedisNames, about_run, about_runs, changed, counted, question, read_pieces, tile
from headrace.store.redis.script import APPLY, DAMAGED, EMPTYING, MOVED, OTHER_FORMAT, OTHER_LAYOUT
from headrace.store.row_bytes import HAND_OVER, PROGRESS, DamagedError, folded, read_hand_over, read_progress
from headrace.tiles.changelog import HandOver, Key, ProgressRow, Row
from headrace.tiles.expiry import horizons
from headrace.tiles.identity import placed, prefix_of, run_of, start_of
from headrace.tiles.level_growth import FRESH, HOLES, MOST
from headrace.tiles.levels import END, FIRST, Band, Fold, LevelLayout
from headrace.tiles.run_choice import FIRST_RUN, choose_run

_logger = logging.getLogger(__name__)

FORMAT = b"2"


class RedisStore:
    """A store in one Redis; not in a cluster of them.

    Parameters
    ----------
    url
        redis://user:password@host:port/number, rediss://... for TLS, or unix:///path?db=number.
    namespace
        What all of the store's keys begin with; stores of one namespace are one store.
    mend
        Whether a store that was found damaged is emptied, to be filled from the changelog.

    Examples
    --------
    >>> try:
    ...     RedisStore("redis://:open-sesame@127.0.0.1:1")
    ... except HeadraceError as error:
    ...     error.code, error.got.partition(": ")[0]
    ('store-unreachable', 'redis://127.0.0.1:1/0')
    """

    bulk = 1

    def __init__(self, url: str, *, namespace: str = "headrace", mend: bool = False) -> None:
        self._client = RedisClient(url)
        self._names = RedisNames(namespace)
        # Where this process last left or found each topic. Asking and noting is one step, or what is noted could be
        # newer than what the asker was told.
        self._at: dict[str, dict[int, int]] = {}
        self._asking = threading.Lock()
        self._run: dict[str, str] = {}
        self._levels = RedisLevels(self._client, self._names)
        self._sweep = RedisSweep(self._client, self._names)
        self._damaged: DamagedError | None = None
        try:
            self._check_format()
            if self._client.call("HEXISTS", self._names.counts, "emptying"):
                self.clear()
            elif mend and (why := self._client.call("HGET", self._names.counts, "damaged")):
                _logger.warning("the store is emptied and filled from the changelog: %s", why.decode())
                self.clear()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _check_format(self) -> None:
        found = self._client.call("HGET", self._names.counts, "format")
        if found not in (None, FORMAT):
            raise self._other_format(found)

    def apply(self, rows: Iterable[Row], topic: str, positions: Mapping[int, int]) -> None:
        """See `Store.apply`; `store-moved` when another process has applied since this one last did or looked."""
        tiles, runs = folded(rows, bytes)
        expected, names = self._at.get(topic), self._names
        keys = [names.counts, names.position(topic), names.layouts, names.expired]
        keys += [names.tiles(change.prefix) for change in tiles.values()]
        keys += [names.about(kind, tile_set) for kind, tile_set, _ in runs]
        first = [
            FORMAT,
            names.tiles(),
            names.levels(),
            names.base(),
            *([-1] if expected is None else counted(expected)),
        ]
        first += [*counted(positions), FRESH, HOLES]
        of = {(change.tile_set, run_of(change.prefix)): 0 for change in tiles.values()}
        of = {run: number for number, run in enumerate(of, 1)}
        then: list[Any] = [len(tiles)]
        for identity, change in tiles.items():
            then += (of[change.tile_set, run_of(change.prefix)], *changed(identity, change))
        then += [len(runs), *chain.from_iterable(about_run(run, said) for (_, _, run), said in runs.items())]
        outcome, *due = OTHER_LAYOUT, ()
        while outcome == OTHER_LAYOUT:
            outcome, *due = self._client.script(APPLY, keys, [*first, *self._levels.cuts(of), *then])
            if outcome == OTHER_LAYOUT:
                self._levels.look()
        self._check(outcome, topic)
        self._levels.due(due[0])
        if expected is not None:
            self._at[topic] = expected | dict(positions)

    def _check(self, outcome: int, topic: str) -> None:
        """Refuse what the script has refused."""
        if outcome == OTHER_FORMAT:
            raise self._other_format(self._client.call("HGET", self._names.counts, "format"))
        if outcome == EMPTYING:
            message, hint = "The store is being emptied.", "It is filled again from the changelog as soon as it is."
            raise MachineError("store-unreachable", message, got=self._client.address, hint=hint)
        if outcome == DAMAGED:
            with self._guarded():
                raise DamagedError("A value in the store is not the one that was written.", where=self._client.address)
        if outcome == MOVED:
            self._at.pop(topic, None)
            message, hint = "Another process has moved the store on, or emptied it.", "Go on at its position."
            raise HeadraceError("store-moved", message, got=self._client.address, hint=hint, where=topic)

    def position(self, topic: str) -> dict[int, int]:
        """See `Store.position`."""
        with self._asking:
            found = self._client.call("HGETALL", self._names.position(topic))
            at = {int(partition): int(offset) for partition, offset in found.items()}
            self._at.setdefault(topic, at)
            return at

    def snapshot(self) -> AbstractContextManager[bool]:
        """See `Store.snapshot`: every read is of its own."""
        return nullcontext(False)

    def tiles(self, tile_set: str, run: str, key: Key, low: int = FIRST, high: int = END) -> list[StoredTile]:
        """See `Store.tiles`."""
        if low >= END or high <= FIRST:
            return []
        first = b"[" + placed(b"", max(low, FIRST))
        last = b"+" if high >= END else b"(" + placed(b"", high)
        prefix = prefix_of(tile_set, run, key)
        with self._guarded():
            found = self._client.call("ZRANGEBYLEX", self._names.tiles(prefix), first, last)
            return [tile(prefix, member) for member in found]

    def read(
        self,
        tile_set: str,
        keys: Sequence[Key],
        bands: Sequence[Band],
        *,
        run: str | None = None,
        layout: LevelLayout | None = None,
    ) -> StoreRead:
        """See `Store.read`; one command, and a second when another run than the last time is to be read."""
        guess = run or self._run.get(tile_set, FIRST_RUN)
        while True:
            prefixes = [prefix_of(tile_set, guess, key) for key in keys]
            with self._guarded():
                asked = question(self._names, (tile_set, guess), prefixes, bands, layout)
                said, over, kept, expired, filling, *found = self._client.script(READ, *asked)
                progress = {name: read_progress(data) for name, data in about_runs(said)}
                hand_overs = {name: read_hand_over(data) for name, data in about_runs(over)}
                read, told = choose_run(progress, hand_overs, run)
                if read is None or (not found and keys):
                    return StoreRead(None, None, [None] * len(keys), filling=bool(filling))
                if read == guess:
                    self._run[tile_set] = read
                    before = start_of(expired, 0) if expired else None
                    return StoreRead(
                        read, told, read_pieces(prefixes, found, bands, layout, kept), before, bool(filling)
                    )
            guess = read

    def fold_with(self, folds: Mapping[str, Fold]) -> None:
        """See `Store.fold_with`."""
        if self._levels.outgrown(folds):
            _logger.warning("tiles are wanted that have gone: the store is emptied and filled from the changelog")
            self.clear()
        self._levels.fold_with(folds)

    def compact(self, most: int = MOST) -> int:
        """See `Store.compact`."""
        with self._guarded():
            return self._levels.compact(most)

    def holds(self, tile_set: str, run: str, key: Key) -> bool:
        """See `Store.holds`."""
        prefix = prefix_of(tile_set, run, key)
        return bool(self._client.call("EXISTS", self._names.tiles(prefix), self._names.base(prefix)))

    def progress(self, tile_set: str) -> dict[str, ProgressRow]:
        """See `Store.progress`."""
        return {run: read_progress(said) for run, said in self._about(PROGRESS, tile_set)}

    def hand_overs(self, tile_set: str) -> dict[str, HandOver]:
        """See `Store.hand_overs`."""
        return {run: read_hand_over(said) for run, said in self._about(HAND_OVER, tile_set)}

    def _about(self, kind: str, tile_set: str) -> list[tuple[str, bytes]]:
        found = self._client.call("HGETALL", self._names.about(kind, tile_set))
        with self._guarded():
            return list(about_runs(list(chain.from_iterable(found.items()))))

    def stats(self) -> Stats:
        """See `Store.stats`; bytes are those of the tiles, without what Redis needs around them."""
        found = self._client.call("HMGET", self._names.counts, "keys", "tiles", "bytes", "levels")
        return Stats(*(int(count or 0) for count in found))

    def mark_filling(self, filling: bool) -> None:
        """See `Store.mark_filling`."""
        self._client.call("HSET" if filling else "HDEL", self._names.counts, "filling", *([1] if filling else []))

    def expire(self, most: int = MOST) -> int:
        """See `Store.expire`."""
        before: dict[tuple[str, str], int] = {}
        with self._guarded():
            for tile_set, fold in self._levels.folds.items():
                ages = horizons(fold.layout, self.progress(tile_set), self.hand_overs(tile_set))
                before |= {(tile_set, run): horizon for run, horizon in ages.items()}
            return self._sweep.step(self._levels.folds, before, most)

    def check(self) -> None:
        """See `Store.check`."""
        if self._damaged is not None:
            raise self._damaged
        why = self._client.call("HGET", self._names.counts, "damaged")
        if why:
            raise DamagedError("The store was found damaged.", got=why.decode(), where=self._client.address)

    def clear(self) -> None:
        """See `Store.clear`; every process that fills the store begins again by itself."""
        empty(self._client, self._names)
        self._levels.forget()

    def close(self) -> None:
        """See `Store.close`."""
        self._client.close()

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Damage is noted, so that the process that met it ends and the next one empties the store."""
        try:
            yield
        except DamagedError as error:
            self._damaged = error
            with contextlib.suppress(HeadraceError):
                self._client.call("HSET", self._names.counts, "damaged", error.got or error.message)
            raise

    def _other_format(self, found: Any) -> HeadraceError:
        hint = "Stop what uses it and run `headrace store rebuild`: it is emptied, and filled again from the changelog."
        message = "The store was written in a format this version does not know."
        where = f"{self._client.address}, {self._names.all.decode()}*"
        return HeadraceError("store-format", message, got=shown(found), hint=hint, where=where)
