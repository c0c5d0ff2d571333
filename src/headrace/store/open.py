"""The store that a project's settings name: opened to be filled, looked into, and emptied on demand."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from headrace.config.config import Config, names, resolved
from headrace.errors import HeadraceError
from headrace.processes import redis as local
from headrace.store import damage
from headrace.store.lmdb.environment import lock_writer
from headrace.store.lmdb.store import LmdbStore
from headrace.store.protocol import Store
from headrace.store.redis.client import RedisClient
from headrace.store.redis.drop import empty
from headrace.store.redis.rows import RedisNames
from headrace.store.redis.store import RedisStore
from headrace.tiles.levels import Fold

PATIENCE = 30.0
"""Seconds in which a process that fills the store must have emptied it."""
COMING_BACK = 5.0
"""Seconds to wait for a Redis that does not answer when a process starts: it may just be started again itself."""


@contextlib.contextmanager
def open_store(config: Config, folds: Mapping[str, Fold]) -> Iterator[Store]:
    """The store to fill and to read, until the block ends. One that cannot be trusted begins anew.

    Parameters
    ----------
    folds
        How the tiles of each tile set are merged into levels; see `tiles.fold.folds`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from headrace.config.config import parse
    >>> with open_store(parse('[project]\\nname = "shop"', Path(tempfile.mkdtemp()), {}), {}) as store:
    ...     store.stats().tiles
    0
    """
    if config.store.kind == "redis":
        with _once_it_answers(config) as shared:
            shared.fold_with(folds)
            yield shared
    else:
        with LmdbStore(names(config).path("store"), mend=True) as own:
            own.fold_with(folds)
            yield own


def _once_it_answers(config: Config) -> RedisStore:
    deadline = time.monotonic() + COMING_BACK
    while True:
        try:
            return RedisStore(redis_url(config), namespace=names(config).key("store"), mend=True)
        except HeadraceError as error:
            if error.code != "store-unreachable" or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


@contextlib.contextmanager
def look_into(config: Config) -> Iterator[Store]:
    """The store to look into only, beside the process that fills it."""
    if config.store.kind == "redis":
        with RedisStore(redis_url(config), namespace=names(config).key("store")) as shared:
            yield shared
    else:
        with LmdbStore(names(config).path("store"), readonly=True) as own:
            yield own


def where(config: Config) -> str:
    """Where the store is, as it may be shown."""
    if config.store.kind == "redis":
        return f"{RedisClient(redis_url(config)).address}, {names(config).key('store')}:*"
    return str(names(config).path("store"))


def rebuild(config: Config) -> bool:
    """Empty the store, so that it is filled again from the changelog; whether a process is there that fills it now.

    Files are emptied by the process that has them open, if there is one. A store in Redis is emptied here, and whoever
    fills it begins again by itself; whether somebody does is not known, and said to be so.
    """
    if config.store.kind == "redis":
        empty(RedisClient(redis_url(config)), RedisNames(names(config).key("store")))
        return True
    folder = names(config).path("store")
    try:
        lock = lock_writer(folder)
    except HeadraceError as error:
        if error.code != "store-locked":
            raise
        _ask(folder)
        return True
    try:
        damage.remove(folder)
    finally:
        lock.close()
    return False


def _ask(folder: Path) -> None:
    """Ask the process that writes to empty the store, and wait until it has."""
    damage.ask_to_rebuild(folder)
    deadline = time.monotonic() + PATIENCE
    while damage.asked_to_rebuild(folder):
        if time.monotonic() > deadline:
            damage.rebuild_begun(folder)
            message = "The process that fills the store has not emptied it."
            hint = "See what it says with `headrace logs serve`, or end it with `headrace down` and try again."
            raise HeadraceError("no-answer", message, got=f"waited {PATIENCE:.0f} s", hint=hint, where=str(folder))
        time.sleep(0.05)


def redis_url(config: Config) -> str:
    """The address of Redis, as it is used: it may hold a password.

    The one that the settings name; else the project's own, if it has one; else the usual.
    """
    if not local.named(config):
        return f"redis://{local.address(config)}"
    return resolved({"store.url": config.store.url}, os.environ)["store.url"]
