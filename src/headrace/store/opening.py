"""The store that a project's settings name."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from headrace.config import Config, names, resolved
from headrace.store.lmdb import LmdbStore
from headrace.store.protocol import Store
from headrace.store.redis import RedisStore


@contextlib.contextmanager
def open_store(config: Config) -> Iterator[Store]:
    """The store to fill and to read, until the block ends.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from headrace.config import parse
    >>> with open_store(parse('[project]\\nname = "shop"', Path(tempfile.mkdtemp()), {})) as store:
    ...     store.stats().tiles
    0
    """
    named = names(config)
    if config.store_kind == "redis":
        url = resolved({"store.url": config.store_url}, os.environ)["store.url"]
        with RedisStore(url, namespace=named.key("store")) as shared:
            yield shared
    else:
        with LmdbStore(named.path("store")) as own:
            yield own
