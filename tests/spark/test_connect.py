"""Batch work on a Spark of the user's own, over Spark Connect: the same tiles, and nothing that only a JVM has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import project, sample_payments
from headrace.cli.init import create
from headrace.clock import SECOND, SystemClock
from headrace.config.config import names
from headrace.log.record import Message
from headrace.testing import FakeClock
from headrace.topics import create as create_topics
from headrace.topics import open_log, topics

pytestmark = pytest.mark.spark

OVER_CONNECT = """
import json, sys
from pyspark.sql import SparkSession
import headrace as hr
from headrace.clock import SystemClock

spark = SparkSession.builder.remote("local[2]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
rows = hr.lake_tiles(sys.argv[1], "card_activity", spark=spark)
(done,) = hr.backfill(sys.argv[1], spark=spark)
print(json.dumps({"tiles": rows.count(), "n": rows.agg({"~n": "sum"}).collect()[0][0],
                  "filled": done.rows, "stage": done.hand_over.stage, "point": done.hand_over.point}))
spark.stop()
"""


def test_a_backfill_over_spark_connect_writes_what_a_local_one_would(spark, tmp_path):
    import headrace as hr
    from headrace.spark.archive.component import Archiving

    create(tmp_path / "shop")
    shop = project.load(tmp_path / "shop")
    start = SystemClock().now() - 3_600 * SECOND
    clock = FakeClock(start)
    with open_log(shop.config, clock) as log:
        create_topics(log, topics(shop.plan(), names(shop.config), shop.config.log.partitions))
        for payment in sample_payments.payments(2_000, seed=4, start=start + SECOND, per_second=1):
            clock.advance(f"{max(1, payment.sent_at - clock.now())}us")
            log.append_batch("payments", [Message(payment.value, payment.card.encode())])
    archiving = Archiving(shop.plan(), shop.config, spark, SystemClock())
    while archiving.step():
        pass
    archiving.stop()

    script = tmp_path / "over_connect.py"
    script.write_text(OVER_CONNECT)
    command = [sys.executable, str(script), str(tmp_path / "shop")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    over = json.loads(ran.stdout.splitlines()[-1])
    here = hr.lake_tiles(shop, "card_activity", spark=spark)
    assert (over["tiles"], over["n"]) == (here.count(), here.agg({"~n": "sum"}).collect()[0][0])
    assert over["stage"] == "filled"

    with open_log(shop.config) as log:
        topic = names(shop.config).topic(f"changelog.{shop.plan().tile_sets[0].id}")
        written = log.read(topic, 0, 0, limit=100_000, max_bytes=10**9)
        (again,) = hr.backfill(shop, spark=spark)
        more = log.read(topic, 0, written[-1].offset + 1, limit=100_000, max_bytes=10**9)
    assert over["filled"] == len(written) > 100

    def held(records):
        return {
            (tuple(json.loads(r.key)["key"].values()), json.loads(r.key)["tile"]): json.loads(r.value)["partials"]
            for r in records
            if json.loads(r.key)["tile"] < over["point"]
        }

    assert held(written).keys() == held(more).keys()
    assert again.hand_over.run == "3"


def test_the_batch_modules_use_nothing_that_spark_connect_lacks():
    folder = Path(project.__file__).parent / "spark"
    for name in (
        "admission",
        "backfill/backfill",
        "backfill/project_backfill",
        "decode",
        "lake_rows",
        "late/late_lane",
        "late/late_events",
        "pipeline/run_scope",
        "silver",
        "tiles",
    ):
        text = (folder / f"{name}.py").read_text("utf-8")
        for word in ("_jvm", "sparkContext", ".rdd", "_jdf"):
            assert word not in text, f"{name}.py uses {word}"
