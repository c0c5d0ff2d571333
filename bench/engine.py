"""How fast and how soon Spark makes tiles of events: micro-batches over both logs, batches over the lake (part 1).

The view is the demo's, five features of payments by card. The program under test is `headrace run pipeline` in its own
process, with all it does beside the tiles (verdicts, dead letters, status); events are sent by another process. How
soon: from the arrival of an event to its tile's arrival in the changelog, both by the log's clock, for events of cards
that nobody else uses, at 1,000 events a second. How fast: a backlog as it piles up at 10,000 events a second over 5,000
cards; what comes before `warm` is not counted. Parts 2 to 5, event by event and side by side with Flink, and part 6,
after a stop, are `bench.realtime`.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.harness import Result, measured, run
from bench.realtime.compare import caught_up, included, started
from bench.realtime.results import LOADS, after_a_stop, side_by_side
from headrace import batch, project
from headrace.cli.init import create
from headrace.clock import MINUTE, SECOND, SystemClock, show_time
from headrace.config.config import names
from headrace.log.record import Message
from headrace.project import Project
from headrace.testing import FakeClock
from headrace.topics import create as create_topics
from headrace.topics import open_log, topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS, MANY_KEYS = 5_000, 500_000
PILES_UP, LIVE, PROBES = 10_000, 1_000, 20
CHUNK, TICK = 10_000, 0.02
CHANGELOG = "changelog.payments.by_card"


@contextmanager
def shop(settings: str = "") -> Iterator[Project]:
    """A new project."""
    with tempfile.TemporaryDirectory() as folder:
        create(Path(folder) / "shop")
        with (Path(folder) / "shop" / "headrace.toml").open("a", encoding="utf-8") as file:
            file.write(settings)
        made = project.load(Path(folder) / "shop")
        yield made


def prepare(made: Project) -> None:
    """Create the topics."""
    with closing(open_log(made.config)) as log:
        create_topics(log, topics(made.plan(), names(made.config), made.config.log.partitions))


def payment(number: int, card: str, at: int) -> Message:
    """A payment of a card."""
    text = f'{{"id":"p{number}","card":"{card}","amount":{number % 900}.25,"country":"DE","at":"{show_time(at)}"}}'
    return Message(text.encode(), card.encode())


def pile_up(made: Project, count: int, *, keys: int = KEYS, hot: float = 0.0, per_s: int = PILES_UP) -> None:
    """Append a backlog that ended ten minutes ago; a share `hot` of it is of one card."""
    prepare(made)
    chance, clock = random.Random(7), FakeClock(SystemClock().now() - 10 * MINUTE - count * SECOND // per_s)
    with closing(open_log(made.config, clock)) as log:
        for first in range(0, count, CHUNK):
            begun = clock.now()
            clock.advance(f"{CHUNK * SECOND // per_s}us")
            cards = ("hot" if chance.random() < hot else f"card-{chance.randrange(keys)}" for _ in range(CHUNK))
            moments = (begun + at * SECOND // per_s for at in range(CHUNK))
            numbers = range(first, first + CHUNK)
            log.append_batch("payments", [payment(*each) for each in zip(numbers, cards, moments, strict=True)])


def catch_up(count: int, warm: int, **backlog: Any) -> float:
    """Events per second of a backlog, after the warm-up."""
    with shop() as made:
        pile_up(made, count, **backlog)
        return caught_up(made, count, warm)


def send(root: Path, seconds: float) -> None:
    """Send payments at a steady rate; every twentieth is of a card that nobody else uses."""
    made, chance = project.load(root), random.Random(7)
    with closing(open_log(made.config)) as log:
        began, sent = time.perf_counter(), 0
        while (passed := time.perf_counter() - began) < seconds:
            due, now = int(passed * LIVE), SystemClock().now()
            cards = {n: f"card-{chance.randrange(KEYS)}" if n % PROBES else f"probe-{n}" for n in range(sent, due)}
            if cards:
                log.append_batch("payments", [payment(number, card, now) for number, card in cards.items()])
            sent = max(sent, due)
            time.sleep(TICK)


def soon(made: Project, warm: float, seconds: float) -> list[float]:
    """Milliseconds from the arrival of an event to the arrival of its tile, for the events after the warm-up."""
    prepare(made)
    sender = multiprocessing.get_context("spawn").Process(target=send, args=(made.config.root, 600.0), daemon=True)
    with closing(open_log(made.config)) as log, started(made) as process:
        sender.start()
        try:
            while not included(made):
                if process.poll() is not None:
                    raise RuntimeError(f"the pipeline ended with {process.returncode}")
                time.sleep(0.1)
            time.sleep(warm)
            since, at = SystemClock().now(), log.end_offsets(CHANGELOG)[0]
            time.sleep(seconds)
        finally:
            sender.terminate()
            sender.join()
        took = []
        while found := log.read(CHANGELOG, 0, at, limit=10_000):
            at = found[-1].offset + 1
            for record in found:
                arrived = json.loads(record.value or b"{}").get("max_arrived_at")
                if b'"probe-' in (record.key or b"") and arrived >= since:
                    took.append((record.arrived_at - arrived) / 1_000)
        return took


def soon_on_kafka(warm: float, seconds: float) -> list[float]:
    """The same over a local broker."""
    from headrace.processes import broker, jars

    with shop('\n[log]\nkind = "kafka"\n') as made:
        folder = names(made.config).path("kafka")
        for wanted in (jars.BROKER, jars.CONNECTOR):
            jars.fetch(wanted)
        broker.up(folder)
        try:
            return soon(made, warm, seconds)
        finally:
            broker.down(folder)


def from_the_lake(session: SparkSession, count: int, times: int) -> list[float]:
    """Events per second from the lake into the changelog, by `hr.backfill`; the first time warms up."""
    from headrace.spark.archive.component import Archiving

    with shop("\n[archive]\nmost = 1000000\n") as made:
        pile_up(made, count)
        archiving = Archiving(made.plan(), made.config, session, SystemClock())
        with closing(archiving.log):
            while archiving.step():
                pass
        rates = []
        for _ in range(times + 1):
            began = time.perf_counter()
            batch.backfill(made, spark=session)
            rates.append(count / (time.perf_counter() - began))
        return rates[1:]


def state_growth(session: SparkSession, per_s: int) -> float:
    """Rows of state after 45 minutes of event time over those after 15, by when nothing is kept for longer."""
    from headrace.spark.admission import judged
    from headrace.spark.records import stream_of
    from headrace.spark.source import register
    from headrace.spark.tiles import Target, admitted_once, changelog, tiles

    register(session)
    with shop() as made, closing(open_log(made.config)) as log:
        pile_up(made, 45 * 60 * per_s, per_s=per_s)
        (tile_set,), partitions = made.plan().tile_sets, made.config.log.partitions
        records = stream_of(session, log, "payments", 3 * 60 * per_s)
        once = admitted_once(judged(records, tile_set.stream), tile_set)
        rows = changelog(tiles(once, tile_set, partitions), tile_set, Target("1", "on_time", partitions))
        writer = rows.writeStream.outputMode("update").option("checkpointLocation", str(made.config.root / "state"))
        query = writer.foreachBatch(lambda rows, _: rows.write.format("noop").mode("append").save())
        ran = query.trigger(availableNow=True).start()
        ran.awaitTermination()
        told = [each for each in ran.recentProgress if "addBatch" in each.durationMs]
        held = [sum(operator.numRowsTotal for operator in each.stateOperators) for each in told]
        return held[-1] / held[len(held) // 3]


def measure(quick: bool) -> list[Result]:
    """One thing at a time; the catch-ups in turns, so that each round compares what ran under the same conditions."""
    from headrace.spark.session import local_session

    rounds, count, warm, live = (1, 400_000, 200_000, (3, 8)) if quick else (3, 1_000_000, 400_000, (45, 45))
    usual, many, hot = [], [], []
    for _ in range(rounds):
        usual.append(catch_up(count, warm))
        many.append(usual[-1] / catch_up(count, warm, keys=MANY_KEYS))
        hot.append(usual[-1] / catch_up(count, warm, hot=0.5))
    with shop() as made:
        embedded = soon(made, *live)
    kafka = soon_on_kafka(*live)
    session = local_session("headrace bench")
    lake = from_the_lake(session, 200_000 if quick else 3_000_000, rounds)
    growth = state_growth(session, 100 if quick else 200)
    session.stop()
    return [
        measured("microbatch.embedded.p50_ms", embedded, "lower", 600.0),
        measured("microbatch.kafka.p50_ms", kafka, "lower", 600.0),
        measured("microbatch.catchup_per_s", usual, "higher", 60_000.0),
        measured("batch.catchup_per_s", lake, "higher", 300_000.0),
        measured("keys_500k_over_5k", many, "lower", 2.0),
        measured("hot_key_slowdown", hot, "lower", 2.0),
        Result("state_growth", growth, "lower", 1.1),
    ]


if __name__ == "__main__":
    sys.exit(run("engine", measure, *map(side_by_side, LOADS), after_a_stop))
