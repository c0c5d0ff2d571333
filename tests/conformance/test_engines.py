"""Every engine against the reference interpreter: tile by tile, lane by lane, and value by value through the stores.

A gap is a strict xfail that names its error: when it is closed, the suite says so.
"""

from __future__ import annotations

import pytest

from headrace.store import MemoryStore
from headrace.tiles.changelog import ProgressRow
from headrace.tiles.changelog_format import decode
from tests.conformance.conftest import CASES

pytestmark = pytest.mark.generated

MET_FIRST = "a stream counts the copy that it meets first, and it reads partitions side by side"
GAPS: dict[tuple[str, str], str] = {
    ("micro-batches", "copies_that_contradict_each_other"): MET_FIRST,
    ("micro-batches on Kafka", "copies_that_contradict_each_other"): MET_FIRST,
}
"""What an engine is known to get wrong, by its name and the case."""
RACES: dict[tuple[str, str], str] = {
    ("real-time mode", "copies_that_contradict_each_other"): f"{MET_FIRST}, which may be either",
}
"""What an engine gets wrong or right by chance."""


@pytest.fixture(params=CASES)
def case(request, result):
    place = (result.engine.name, request.param)
    gap = GAPS.get(place) or RACES.get(place)
    if gap is not None:
        request.applymarker(pytest.mark.xfail(reason=gap, raises=AssertionError, strict=place in GAPS))
    return request.param


def test_the_tiles_of_an_engine_are_those_of_the_reference(result, case):
    assert result.tiles(case) == []


def test_values_read_from_a_store_in_memory_are_those_of_the_reference(result, case):
    assert result.values(case, MemoryStore(), most=2) == []


def test_values_read_from_a_store_in_files_are_those_of_the_reference(result, case, files):
    assert result.values(case, files(result), most=1) == []


def test_the_rows_of_an_engine_say_how_many_events_they_have_and_how_far_they_reach(result):
    assert result.rows() == []


def test_a_stream_says_in_the_end_that_it_has_read_everything(result, world_of):
    log = world_of(result.engine.world)[0].log
    for tile_set in result.meaning.plan.tile_sets:
        rows = [decode(*pair) for pair in result.changelogs[tile_set.id]]
        said = [row.positions for row in rows if isinstance(row, ProgressRow)]
        assert said[-1:] == ([log.end_offsets(tile_set.stream.name)] if result.engine.streams else [])
