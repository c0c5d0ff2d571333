"""`headrace prepare`: makes Spark start in half the time on this machine."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import click

from headrace.cli.init import create
from headrace.cli.interrupt import if_interrupted
from headrace.cli.output import data, talk

PAYMENTS = 500


@click.command("prepare")
@click.option("--again", is_flag=True, help="Also when it has been done for this Java and this PySpark.")
def command(again: bool) -> None:
    """Make Spark start in half the time on this machine.

    Runs a small project once, and keeps what Java has loaded for it in the Python environment, for every project; where
    environments share the files of PySpark, in the user's cache, for all of them. It takes about a minute and 200 MB,
    and nothing when it has been done.
    """
    from headrace import project, sample_payments
    from headrace.clock import SECOND, SystemClock
    from headrace.config.config import names
    from headrace.log.record import Message
    from headrace.machine import find_java
    from headrace.spark.classes import classes_file
    from headrace.spark.rehearsal import rehearse
    from headrace.topics import create as create_topics
    from headrace.topics import open_log, topics

    done = classes_file(find_java())
    if done.is_file() and not again:
        data(str(done))
        return
    began = time.perf_counter()
    with (
        if_interrupted(lambda: "Nothing was kept; Headrace works without."),
        tempfile.TemporaryDirectory(prefix="headrace-prepare-") as folder,
    ):
        create(Path(folder) / "shop")
        shop = project.load(Path(folder) / "shop")
        talk("Running a small project, to see what Spark loads.")
        start = SystemClock().now() - 10 * SECOND
        sent = sample_payments.payments(PAYMENTS, seed=1, start=start, per_second=PAYMENTS / 10)
        with open_log(shop.config) as log:
            create_topics(log, topics(shop.plan(), names(shop.config), shop.config.log.partitions))
            (stream,) = shop.streams
            log.append_batch(stream.name, [Message(payment.value, payment.card.encode()) for payment in sent])
        file = rehearse(shop.plan(), shop.config)
    data(str(file))
    talk(f"Kept {file.stat().st_size / 2**20:.0f} MiB in {time.perf_counter() - began:.0f} s.")
