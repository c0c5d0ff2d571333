"""Features attached to a spine in Spark equal the reference's, from a log through the archive to every row."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import headrace as hr
from headrace.clock import DAY, HOUR, MINUTE, SECOND
from headrace.define.view import View
from headrace.lake.layout import bronze_shape, silver_shape
from headrace.lake.location import Lake
from headrace.lake.table import LakeTable
from headrace.log.embedded.log import EmbeddedLog
from headrace.log.record import Message
from headrace.meaning.equality import differences
from headrace.meaning.reference import ReferenceResult
from headrace.plan.build import build
from headrace.testing import FakeClock
from tests.streams import BASE, every_aggregate, every_window, payments, seeded

pytestmark = pytest.mark.spark

RECORDS = seeded(seed=31, cases=30, size=40)
by_country: View = hr.view(
    "by_country",
    payments.where("country is not null").with_columns(home="coalesce(country, '')"),
    by="home",
    features={"payments": hr.count(over="1h"), "last_card": hr.last("card", over="1h")},
)
overall: View = hr.view("overall", payments, by=(), features={"all": hr.count(over="1h")})
VIEWS = (every_window, every_aggregate, by_country, overall)
OUTCOME = ReferenceResult(build(VIEWS), RECORDS)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Wanted:
    """What `attach` is asked for: features under the names of their views."""

    views: tuple[View, ...]

    @property
    def columns(self) -> dict[tuple[str, str], str]:
        return {
            (view.name, feature.name): f"{view.name}.{feature.name}" for view in self.views for feature in view.features
        }


@pytest.fixture(scope="module")
def silver(tmp_path_factory, spark):
    """What the archive makes of the records."""
    from headrace.spark.archive.archive import StreamArchive

    folder = tmp_path_factory.mktemp("training")
    clock = FakeClock(BASE - HOUR)
    with EmbeddedLog(folder / "log", clock=clock) as log:
        log.create_topic("payments", partitions=3)
        for each in sorted(RECORDS, key=lambda r: (r.arrived_at, r.partition, r.offset)):
            if each.arrived_at > clock.now():
                clock.advance(f"{each.arrived_at - clock.now()}us")
            log.append_batch("payments", [Message(each.value, each.key)], partition=each.partition)
        lake = Lake(
            LakeTable(str(folder / "bronze"), bronze_shape()),
            LakeTable(str(folder / "silver"), silver_shape(payments)),
            str(folder / "staging"),
        )
        archive = StreamArchive(payments, "payments", log, lake, spark, FakeClock(BASE + 2 * DAY))
        while archive.step(500):
            pass
    return lake.silver


def moment(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def plain(cell: Any) -> Any:
    """A collected cell as the reference has it."""
    if isinstance(cell, list):
        return [plain(each) for each in cell]
    return cell.asDict() if hasattr(cell, "asDict") else cell


def found_in(row: Any, view: View) -> dict[str, Any]:
    return {feature.name: plain(row[f"{view.name}.{feature.name}"]) for feature in view.features}


@pytest.mark.parametrize("mode", ["as_known", "as_happened"])
def test_every_row_of_a_spine_has_what_the_reference_says(spark, silver, mode):
    from headrace.spark.training.features import attach

    cards = [card for (card,) in OUTCOME.keys(every_window)]
    rows = [
        (card, home, moment(t), number)
        for number, (card, home, t) in enumerate(
            (card, ("DE", "日本", "nowhere")[at % 3], BASE + at * 53 * SECOND + at)
            for place, card in enumerate([*cards, "nobody"])
            for at in range(place % 5, 60, 7)
        )
    ]
    spine = spark.createDataFrame(rows, "card STRING, home STRING, t TIMESTAMP, label INT")
    attached = attach(spark, spine, Wanted(VIEWS), lambda _: silver, time="t", mode=mode)
    assert attached.columns[:4] == ["card", "home", "t", "label"]
    taken = attached.collect()
    assert sorted(row.label for row in taken) == list(range(len(rows)))
    for row in taken:
        _, _, t, _ = rows[row.label]
        at = (t - EPOCH) // timedelta(microseconds=1)
        for view, key in (
            (every_window, (row.card,)),
            (every_aggregate, (row.card,)),
            (by_country, (row.home,)),
            (overall, ()),
        ):
            assert differences(OUTCOME, view, key, (at,), found_in(row, view), mode) == []


def test_rows_that_are_events_have_themselves_in_their_features(spark, silver):
    from headrace.spark.training.features import attach

    events = [(key, event) for key in OUTCOME.keys(every_window) for event in OUTCOME.events(every_window, key)]
    rows = [(*key, moment(event.place[0]), *event.place[1:], number) for number, (key, event) in enumerate(events)]
    spine = spark.createDataFrame(rows, "card STRING, _arrived_at TIMESTAMP, _partition INT, _offset BIGINT, label INT")
    attached = attach(
        spark,
        spine,
        Wanted((every_window,)),
        lambda _: silver,
        time="_arrived_at",
        mode="as_known",
        include_event="payments",
    )
    for row in attached.collect():
        arrived, partition, offset = events[row.label][1].place
        after = (arrived, partition, offset + 1)
        assert differences(OUTCOME, every_window, (row.card,), after, found_in(row, every_window)) == []


def test_an_empty_spine_stays_empty_and_has_every_column(spark, silver):
    from headrace.spark.training.features import attach

    spine = spark.createDataFrame([], "card STRING, t TIMESTAMP")
    attached = attach(spark, spine, Wanted((every_aggregate,)), lambda _: silver, time="t", mode="as_known")
    assert attached.count() == 0
    assert len(attached.columns) == 2 + len(every_aggregate.features)


def test_keys_that_nobody_has_seen_are_empty_and_no_row_is_lost(spark, silver):
    from headrace.spark.training.features import attach

    spine = spark.createDataFrame(
        [("x", moment(BASE + MINUTE)), ("x", moment(BASE + MINUTE))], "card STRING, t TIMESTAMP"
    )
    attached = attach(spark, spine, Wanted((every_window,)), lambda _: silver, time="t", mode="as_known").collect()
    assert [row["every_window.lifetime"] for row in attached] == [0, 0]
