"""What Spark's watermark dropped is recovered from the lake: a new run, begun without anybody asking.

Dropping is never meant to happen: the watermark is looser than every rule. When it does happen all the same, the run's
tiles lack those rows for good; the lake has them, and a new run has them too.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from headrace.clock import MINUTE, Clock
from headrace.config.config import Config
from headrace.plan.model import TileSet
from headrace.spark.backfill.project_backfill import run_backfill
from headrace.spark.failure import cause_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AGAIN, NEVER = MINUTE, 2**63

_logger = logging.getLogger(__name__)


class Recovery:
    """Begins one new run for each run that lost rows."""

    def __init__(self, config: Config, session: SparkSession, clock: Clock) -> None:
        self.config, self.session, self.clock = config, session, clock
        self._not_before: dict[tuple[str, str], int] = {}
        self._thread: threading.Thread | None = None

    def want(self, tile_set: TileSet, run: str) -> None:
        """Recover what a run has lost, unless that is done or under way; what failed is tried again after a while."""
        due = self._not_before.get((tile_set.id, run), 0)
        if self.clock.now() < due or (self._thread is not None and self._thread.is_alive()):
            return
        self._not_before[tile_set.id, run] = NEVER
        self._thread = threading.Thread(target=self._recover, args=(tile_set, run), name="recovery", daemon=True)
        self._thread.start()

    def _recover(self, tile_set: TileSet, run: str) -> None:
        try:
            (done,) = run_backfill(self.config, [tile_set], self.session, self.clock)
            _logger.warning("%s: run %s lost rows; run %s has them", tile_set.id, run, done.hand_over.run)
        except Exception as error:  # of Spark, of the log, of the lake: it may be over the next time
            # The alarm stays, and says what to do.
            self._not_before[tile_set.id, run] = self.clock.now() + AGAIN
            _logger.error("%s: what run %s lost was not recovered: %s", tile_set.id, run, cause_of(error))
