"""A run that no longer serves: its rows are taken out of the changelog, and its checkpoint goes last.

Stores must have had time to change over, so this comes a while after another run began to serve. Cut off, it is begun
again: as long as there is a checkpoint, there may be rows.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from headrace.faults import NO_FAULTS, FaultPoints
from headrace.log.protocol import Log
from headrace.log.record import Message
from headrace.plan.model import TileSet
from headrace.spark.append import PART, in_parts
from headrace.tiles.changelog_format import prefix


def retire(log: Log, topic: str, tile_set: TileSet, run: str, checkpoint: Path, faults: FaultPoints = NO_FAULTS) -> int:
    """Take a run's rows away; how many there were."""
    keys = _keys(log, topic, prefix(tile_set.fingerprint, run))
    for part in in_parts(Message(None, key) for key in sorted(keys)):
        log.append_batch(topic, part)
        faults.reach("retire.rows.after")
    log.clean(topic)
    faults.reach("retire.clean.after")
    shutil.rmtree(checkpoint, ignore_errors=True)
    faults.reach("retire.checkpoint.after")
    return len(keys)


def _keys(log: Log, topic: str, mine: bytes) -> set[bytes]:
    """The identities that begin with a prefix and have a row."""
    live: set[bytes] = set()
    for partition, end in log.end_offsets(topic).items():
        at = log.start_offsets(topic)[partition]
        while at < end and (found := log.read(topic, partition, at, limit=PART)):
            at = found[-1].offset + 1
            for record in found:
                if record.key is not None and record.key.startswith(mine):
                    (live.discard if record.value is None else live.add)(record.key)
    return live
