"""The SQL with which Spark makes changelog rows from admitted records: every call and every text, for a small plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.spark import tiles
from tests.frozen.recorder import Recorder
from tests.frozen.shop import by_card, plan


@pytest.fixture(autouse=True)
def recorded_functions(monkeypatch):
    """`pyspark.sql.functions` would start a JVM."""
    monkeypatch.setattr(tiles, "F", Recorder("F"))


def rows(*, is_streaming=False):
    return Recorder("rows", is_streaming=is_streaming)


def test_a_batch_and_a_stream_keep_the_first_copy_of_an_event_by_the_same_calls(golden):
    without_ids = replace(by_card, stream=replace(by_card.stream, event_id=None))
    made = {
        "batch": tiles.admitted_once(rows(), by_card),
        "batch without event ids": tiles.admitted_once(rows(), without_ids),
        "stream": tiles.admitted_once(rows(is_streaming=True), by_card),
        "stream in one task": tiles.admitted_once(rows(is_streaming=True), by_card, lambda given: given.coalesce(1)),
    }
    golden("frozen/copies_sql", "\n\n".join(f"-- {name}\n{text}" for name, text in made.items()))


def test_the_tiles_of_each_tile_set_are_made_by_the_same_calls(golden):
    made = {each.id: tiles.tiles(rows(), each, partitions=2, also={"~fresh": "count(1)"}) for each in plan.tile_sets}
    golden("frozen/tiles_sql", "\n\n".join(f"-- {name}\n{text}" for name, text in made.items()))


def test_changelog_rows_are_made_by_the_same_sql(golden):
    on_time = tiles.Target("1", "on_time", partitions=2)
    late = tiles.Target("2", "late", partitions=1, version=7)
    made = {}
    for each in plan.tile_sets:
        made[f"{each.id}, on time"] = tiles.changelog(rows(), each, on_time)
        made[f"{each.id}, late"] = tiles.changelog(rows(), each, late, ("~fresh",))
    golden("frozen/changelog_sql", "\n\n".join(f"-- {name}\n{text}" for name, text in made.items()))
