"""How many task slots a pipeline needs: real-time queries hold theirs for ever.

A real-time query runs all its steps at once: a task for each partition of its stream, and one that finds duplicates and
keeps the tiles; of a stream with one partition, one task does it all. A run that follows the serving one needs as many
again. Slots are threads and may be more than the machine has cores.
"""

from __future__ import annotations

from headrace.config import Config
from headrace.errors import ConfigError
from headrace.plan.model import Plan
from headrace.run.tile_query import REAL_TIME

OTHERS = 2
"""For everything that comes in batches."""
MOST = 256


def slots(plan: Plan, config: Config) -> int:
    """The slots for a plan on one machine; refused when that is more than one machine can be expected to run."""
    held = 1 if config.partitions == 1 else config.partitions + 1
    needed = OTHERS + sum(2 * held for tiles in plan.tile_sets if tiles.mode == REAL_TIME)
    if needed > MOST:
        message = f"Real-time mode would hold {needed} task slots for ever, more than the {MOST} of one machine."
        hint = 'Give the topics fewer partitions (log.partitions), or set pipeline.mode = "micro-batch".'
        raise ConfigError("too-many-slots", message, got=f"{config.partitions} partitions", hint=hint)
    return needed
