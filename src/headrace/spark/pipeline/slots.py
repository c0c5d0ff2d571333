"""How many task slots a pipeline needs: real-time queries hold theirs for ever.

A real-time query runs all its steps at once: a task for each partition of its stream, and one that finds duplicates and
keeps the tiles; of a stream with one partition, one task does it all. A run that follows the serving one needs as many
again. Slots are threads and may be more than the machine has cores.
"""

from __future__ import annotations

from headrace.config.config import Config, names
from headrace.errors import ConfigError
from headrace.log.protocol import Log
from headrace.plan.model import Plan
from headrace.plural import show_count
from headrace.spark.pipeline.tile_query import REAL_TIME

OTHERS = 3
"""For everything that comes in batches: two for events that people wait for, one for the archive and the rest."""
MOST = 256


def slots(plan: Plan, config: Config, log: Log | None = None) -> int:
    """The slots for a plan on one machine; refused when that is more than one machine can be expected to run.

    Topics that are in the log already have the partitions that they have.
    """
    live = [tiles.stream.name for tiles in plan.tile_sets if tiles.mode == REAL_TIME]
    there = {} if log is None else {name: _partitions(log, names(config).topic(name)) for name in set(live)}
    needed = OTHERS + sum(2 * _slots_held(there.get(name) or config.log.partitions) for name in live)
    if needed > MOST:
        message = f"Real-time mode would hold {needed} task slots for ever, more than the {MOST} of one machine."
        hint = 'Give the topics fewer partitions (log.partitions), or set pipeline.mode = "micro-batch".'
        got = ", ".join(
            f"{name}: {show_count(there.get(name) or config.log.partitions, 'partition')}" for name in sorted(set(live))
        )
        raise ConfigError("too-many-slots", message, got=got, hint=hint)
    return needed


def _slots_held(partitions: int) -> int:
    return 1 if partitions == 1 else partitions + 1


def _partitions(log: Log, topic: str) -> int | None:
    return len(log.end_offsets(topic)) if topic in log.topics() else None
