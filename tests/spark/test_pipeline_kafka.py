"""The live pipeline on Kafka: records in, changelog out, and the values in it are those of the reference."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import msgspec
import pytest

from headrace import project
from headrace.cli.init import create
from headrace.clock import MINUTE, SECOND, SystemClock, show_time
from headrace.log.kafka.log import KafkaLog
from headrace.meaning.equality import differences
from headrace.meaning.reference import ReferenceResult
from headrace.meaning.value import value
from headrace.processes.jars import CONNECTOR, present
from headrace.topics import spark_jars
from headrace_demo import stack
from tests.serve.shape import decoder
from tests.spark.both import Both

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture
def shop(tmp_path, kafka):
    create(tmp_path / "shop")
    file = tmp_path / "shop" / "headrace.toml"
    settings = f'prefix = "pipeline"\n{file.read_text()}\n[log]\nkind = "kafka"\n[kafka]\nbrokers = "{kafka.brokers}"\n'
    file.write_text(settings)
    return project.load(tmp_path / "shop")


@pytest.fixture
def both(spark, shop):
    running = Both(shop, spark, SystemClock())
    yield running
    running.stop()


def payment(id: str, card: str, at: int, amount: str = "10.0") -> bytes:
    return f'{{"id":"{id}","card":"{card}","amount":{amount},"country":"DE","at":"{show_time(at)}"}}'.encode()


def sent(now: int) -> list[tuple[str, bytes]]:
    good = [(f"card-{n % 5}", payment(f"p{n}", f"card-{n % 5}", now - n * SECOND, f"{n}.5")) for n in range(100)]
    return [
        *good,
        *good[:10],
        ("card-1", payment("late", "card-1", now - 60 * MINUTE)),
        ("card-1", payment("ahead", "card-1", now + 60 * MINUTE)),
        ("card-1", payment("odd", "card-1", now, '"a lot"')),
        ("card-1", b"{not json"),
    ]


def test_records_in_kafka_become_the_tiles_of_the_reference(both, shop):
    log = both.log
    assert isinstance(log, KafkaLog)
    for key, value_ in (events := sent(SystemClock().now())):
        log.append("pipeline.payments", value_, key=key.encode())
    told = both.settled("payments", len(events))
    assert told.verdicts == {
        "malformed": 1,
        "invalid": 1,
        "future": 1,
        "late": 1,
        "duplicate": 10,
        "admitted": 100,
    }
    assert told.lag_events == 0

    outcome = ReferenceResult(shop.plan(), stack.everything(log, "pipeline.payments", "payments"))
    rows = log.read("pipeline.changelog.payments.by_card", 0, 0, limit=100_000)
    (view,) = shop.views
    found = tiles_of(shop, [(row.key, row.value) for row in rows])
    moment = SystemClock().now()
    for card in outcome.keys(view):
        planned = shop.plan().view(view.name)
        values = {each.feature.name: value(each, found[card], moment) for each in planned}
        assert differences(outcome, view, card, (moment,), values) == []
    assert len(found) == 5


def tiles_of(shop: Any, rows: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """The newest row of each tile, by key."""
    (tile_set,) = shop.plan().tile_sets
    decode = decoder((column.name, column.monoid) for column in tile_set.partials)
    newest: dict[bytes, Any] = {}
    for key, text in rows:
        told = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        if "partials" in told:
            newest[key] = bytes(told["partials"])
    found = defaultdict(list)
    for key, partials in newest.items():
        identity = json.loads(key)
        found[tuple(identity["key"].values())].append((identity["tile"], decode(partials)))
    return found


def test_spark_gets_the_connector_when_the_log_is_kafka(shop):
    assert spark_jars(shop.config) == present(CONNECTOR)
