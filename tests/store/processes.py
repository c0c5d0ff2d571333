"""A process that fills a store until it is killed; run as `python -m tests.store.processes LOG STORE BATCH`."""

from __future__ import annotations

import sys
import threading

from headrace.log import EmbeddedLog
from headrace.store import LmdbStore, Materialiser, materializer
from tests.store.rows import TOPIC


def main(log: str, store: str, batch: str) -> None:
    """Small batches, so that there are many moments to die between and inside of."""
    materializer.BATCH, LmdbStore.bulk = int(batch), 1
    with EmbeddedLog(log) as source, LmdbStore(store, map_size=1 << 16) as target:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        Materialiser(source, target, [TOPIC]).run(threading.Event())


if __name__ == "__main__":
    main(*sys.argv[1:])
