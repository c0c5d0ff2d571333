"""What each contender does with a history, in a process of its own: `python -m bench.past.side WHO FOLDER OUT MODE`.

Prints the seconds it took as JSON, without the start of Spark or of an interpreter.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.past.data import History
from headrace.define.view import View


@dataclass(frozen=True)
class Wanted:
    """What Headrace is asked for: the features of one view."""

    views: tuple[View, ...]

    @property
    def columns(self) -> Mapping[tuple[str, str], str]:
        """Features under their own names."""
        return {(view.name, feature.name): feature.name for view in self.views for feature in view.features}


def _spark() -> Any:
    from headrace.spark.session import local_session

    return local_session("bench", 2)


def _ours(name: str) -> Callable[[History, str, str], float]:
    def run(history: History, out: str, mode: str) -> float:
        from bench.past import features
        from headrace.spark.training.features import attach

        session = _spark()
        began = time.monotonic()
        spine = session.read.parquet(str(history.spine))
        wanted = Wanted((getattr(features, name),))
        done = attach(
            session,
            spine,
            wanted,
            lambda _: history.silver,
            time="t",
            mode="as_known" if mode == "as_known" else "as_happened",
        )
        done.write.parquet(out)
        return time.monotonic() - began

    return run


RANGE_JOIN = """
SELECT s.row, s.card, s.t,
  count(CASE WHEN e.at >= s.t - INTERVAL 10 MINUTES THEN 1 END) AS count_10m,
  sum(CASE WHEN e.at >= s.t - INTERVAL 10 MINUTES THEN e.amount END) AS sum_10m,
  count(CASE WHEN e.at >= s.t - INTERVAL 1 HOUR THEN 1 END) AS count_1h,
  avg(CASE WHEN e.at >= s.t - INTERVAL 1 HOUR THEN e.amount END) AS mean_1h,
  max(CASE WHEN e.at >= s.t - INTERVAL 1 DAY THEN e.amount END) AS max_1d,
  approx_count_distinct(CASE WHEN e.at >= s.t - INTERVAL 1 DAY THEN e.merchant END) AS merchants_1d,
  sum(e.amount) AS sum_30d,
  approx_percentile(e.amount, 0.5) AS median_30d
FROM spine s LEFT JOIN events e
  ON e.card = s.card AND e.at >= s.t - INTERVAL 30 DAYS AND e.at < s.t AND e.arrived_at < s.t
GROUP BY s.row, s.card, s.t
"""


ROOM = {
    # So many that each fits into memory; Spark would make two large ones of them again.
    "spark.sql.shuffle.partitions": "64",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    # The slice is so small that Spark would hand all of it to a single task.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    # With the default of 128 it sorts all pairs of a row and an event instead of adding them up as they come.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
}
"""What makes Spark's own join of ranges as fast as we could make it."""


def _range_join(history: History, out: str, mode: str) -> float:
    from pyspark.sql import SparkSession

    del mode
    # With room: Headrace's own sessions are small, and this would end for want of memory.
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for setting in ("spark.driver.host", "spark.driver.bindAddress"):
        builder = builder.config(setting, "127.0.0.1")
    session = builder.config("spark.driver.memory", "12g").getOrCreate()
    began = time.monotonic()
    for name, file in (("spine", history.spine), ("events", history.events)):
        session.read.parquet(str(file)).createOrReplaceTempView(name)
    for setting, value in ROOM.items():
        session.conf.set(setting, value)
    session.sql(RANGE_JOIN).write.parquet(out)
    return time.monotonic() - began


DUCKDB = """
COPY (
  WITH happened AS (
    SELECT card, "at" AS ts, false AS is_row, NULL::BIGINT AS "row", amount, merchant FROM read_parquet('{events}')
    UNION ALL SELECT card, t, true, "row", NULL, NULL FROM read_parquet('{spine}')
  )
  SELECT "row", card, ts AS t,
    count(amount) OVER ten_minutes AS count_10m, sum(amount) OVER ten_minutes AS sum_10m,
    count(amount) OVER an_hour AS count_1h, avg(amount) OVER an_hour AS mean_1h,
    max(amount) OVER a_day AS max_1d, count(DISTINCT merchant) OVER a_day AS merchants_1d,
    sum(amount) OVER a_month AS sum_30d, quantile_disc(amount, 0.5) OVER a_month AS median_30d
  FROM happened
  WINDOW
    ten_minutes AS (PARTITION BY card ORDER BY ts RANGE BETWEEN INTERVAL 10 MINUTE PRECEDING AND {end}),
    an_hour AS (PARTITION BY card ORDER BY ts RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND {end}),
    a_day AS (PARTITION BY card ORDER BY ts RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND {end}),
    a_month AS (PARTITION BY card ORDER BY ts RANGE BETWEEN INTERVAL 30 DAY PRECEDING AND {end})
  QUALIFY is_row
) TO '{out}' (FORMAT parquet)
"""

DUCKDB_NEWEST = """
COPY (
  SELECT s."row", s.card, s.t, e.amount, e.merchant
  FROM read_parquet('{spine}') s ASOF LEFT JOIN read_parquet('{events}') e ON s.card = e.card AND s.t > e."at"
) TO '{out}' (FORMAT parquet)
"""


def _duckdb(sql: str) -> Callable[[History, str, str], float]:
    def run(history: History, out: str, mode: str) -> float:
        del mode
        import duckdb

        began = time.monotonic()
        with duckdb.connect() as connection:
            connection.execute("SET threads = 2")
            end = "INTERVAL 1 MICROSECOND PRECEDING"
            connection.execute(sql.format(events=history.events, spine=history.spine, out=out, end=end))
        return time.monotonic() - began

    return run


CONTENDERS: dict[str, Callable[[History, str, str], float]] = {
    "ours": _ours("cards"),
    "ours_newest": _ours("newest"),
    "range_join": _range_join,
    "duckdb": _duckdb(DUCKDB),
    "duckdb_newest": _duckdb(DUCKDB_NEWEST),
}

if __name__ == "__main__":
    who, folder, out, mode = sys.argv[1:]
    seconds = CONTENDERS[who](History(Path(folder)), out, mode)
    sys.stdout.write(json.dumps({"seconds": seconds}) + "\n")
