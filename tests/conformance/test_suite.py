"""The suite itself: it has what it says, an engine that is a little wrong does not pass it, and cases stay apart."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given

from headrace.meaning.reference import ReferenceResult
from headrace.meaning.verdict_names import VERDICTS
from headrace.read.reader import Reader
from headrace.store import MemoryStore
from headrace.tiles.changelog import Row, TileRow
from headrace.tiles.changelog_format import decode, encode
from tests.budget import examples
from tests.conformance.cases import Case, records_of
from tests.conformance.compare import Identity, Meaning, folded, row_differences, tile_differences, value_differences
from tests.conformance.definitions import PARTITIONS, plan_of
from tests.conformance.engines import reference
from tests.conformance.generated import generated, streams
from tests.conformance.scenarios import SCENARIOS
from tests.conformance.world import FEW_COLUMNS, embedded_world

LANES = ("on_time", "late")
ALL = [*SCENARIOS.values(), *generated(10)]
OTHERS = [SCENARIOS["duplicates_across_partitions"], SCENARIOS["future_records"]]
PLAN = plan_of(only=FEW_COLUMNS)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return embedded_world(ALL, tmp_path_factory.mktemp("world"), FEW_COLUMNS)


@pytest.fixture(scope="module")
def meaning(world):
    return Meaning(world)


@pytest.fixture(scope="module")
def right(world):
    """What the reference leaves behind, row by row."""
    return {name: [decode(*pair) for pair in pairs] for name, pairs in reference(world, None).items()}


CASE = "one_bad_producer_clock"  # It has both lanes, and no copies.


def changed(rows: list[Row], lane: str, change: Callable[[TileRow], TileRow | None]) -> dict[Identity, TileRow]:
    """The tiles of a changelog in which one row of a lane is another."""
    tiles = [row for row in rows if isinstance(row, TileRow)]
    chosen = next(row for row in tiles if row.lane == lane and str(row.key[0]).startswith(CASE))
    made = [change(row) if row is chosen else row for row in tiles]
    return folded(encode(row, ("card", "shop", "online", "region")) for row in made if row is not None)


def more(row: TileRow) -> TileRow:
    """A row in which one count is one more."""
    columns = json.loads(row.partials)
    name = next(name for name in columns if name.startswith("count_"))
    return msgspec.structs.replace(row, partials=json.dumps(columns | {name: columns[name] + 1}).encode())


BROKEN: dict[str, Callable[[TileRow], TileRow | None]] = {
    "a tile is missing": lambda row: None,
    "a tile is in another place": lambda row: msgspec.structs.replace(row, tile=row.tile + 1),
    "a tile is in the other lane": lambda row: msgspec.structs.replace(
        row, lane="late" if row.lane == "on_time" else "on_time"
    ),
    "a tile is another key's": lambda row: msgspec.structs.replace(row, key=(f"{row.key[0]}x", *row.key[1:])),
    "a count is one too many": more,
    "a column is missing": lambda row: msgspec.structs.replace(row, partials=b"{}"),
}


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("broken", BROKEN)
def test_an_engine_that_is_broken_in_one_tile_is_caught(meaning, right, lane, broken):
    tile_set = meaning.plan.tile_sets[0]
    assert not list(tile_differences(meaning, tile_set, changed(right[tile_set.id], lane, lambda row: row)))
    found = list(tile_differences(meaning, tile_set, changed(right[tile_set.id], lane, BROKEN[broken])))
    assert 1 <= len(found) <= 2 + len(tile_set.partials)


SAYING: dict[str, Callable[[TileRow], TileRow]] = {
    "its version": lambda row: msgspec.structs.replace(row, version=row.version + 1),
    "its newest event": lambda row: msgspec.structs.replace(row, max_event_time=(row.max_event_time or 0) + 1),
    "its newest arrival": lambda row: msgspec.structs.replace(row, max_arrived_at=(row.max_arrived_at or 0) - 1),
    "its positions": lambda row: msgspec.structs.replace(row, positions={p: o - 1 for p, o in row.positions.items()}),
}


@pytest.mark.parametrize("wrong", SAYING)
def test_a_row_that_says_something_wrong_of_itself_is_caught(meaning, right, wrong):
    tile_set = meaning.plan.tile_sets[0]
    found = changed(right[tile_set.id], "on_time", SAYING[wrong])
    assert len(list(row_differences(meaning, tile_set, found, counted=True))) == 1


def test_a_difference_names_the_case_it_is_in(meaning, right):
    tile_set = meaning.plan.tile_sets[0]
    found = changed(right[tile_set.id], "late", lambda row: None)
    ((case, said),) = tile_differences(meaning, tile_set, found)
    assert case == CASE
    assert CASE in said


def test_a_value_that_is_read_wrong_is_caught(meaning):
    class Wrong(Reader):
        def read(self, view, key, t):
            answer = super().read(view, key, t)
            return msgspec.structs.replace(answer, values=answer.values | {"day": -1})

    view = meaning.plan.view("windows")[0].view
    found = [said for _, said in value_differences(meaning, Wrong(meaning.plan, MemoryStore()), view)]
    assert any("windows.day" in said for said in found)
    assert any("nothing is there" in said for said in found)


def test_every_verdict_lane_and_kind_of_record_is_among_the_cases(meaning, world):
    verdicts = meaning.outcome.verdicts("orders")
    assert all(verdicts[verdict] >= 3 for verdict in VERDICTS), verdicts
    judged = meaning.outcome.judged["orders"]
    assert sum(each.closed and each.lane == "late" for each in judged) >= 3
    assert sum(each.verdict == "late" and each.first is not None for each in judged) >= 3
    ends = world.log.end_offsets("orders")
    assert ends[PARTITIONS - 1] == 0
    assert all(ends[partition] > 100 for partition in range(PARTITIONS - 1))


def test_half_of_the_hot_keys_events_are_on_one_key():
    cards = Counter(sent.card for sent in SCENARIOS["hot_key"].sent)
    assert cards["hot"] * 2 == cards.total()


def test_the_same_cases_are_generated_every_time_and_differ_from_each_other():
    first, second = generated(10), generated(10)
    assert first == second
    assert len({repr(case.sent) for case in first}) == 10


@given(sent=streams)
@examples(1 / 2)
def test_a_case_means_the_same_alone_and_among_others(sent):
    tile_set = PLAN.tile_sets[0]
    alone, among = (
        ReferenceResult(PLAN, records_of([*others, Case("one", sent)])).tiles(tile_set) for others in ([], OTHERS)
    )
    assert {place: among[place] for place in among if place[0][0].startswith("one/")} == alone
