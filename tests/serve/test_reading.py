"""Values from stored tiles: equal to the reference for generated streams, and honest about how fresh they are."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.clock import DAY, HOUR, MINUTE, SECOND
from headrace.errors import HeadraceError
from headrace.log import MemoryLog, Message
from headrace.plan.build import build
from headrace.run.reference import Outcome, contributing
from headrace.serve.reading import Reader
from headrace.store import Gone, HandOver, LmdbStore, Materialiser, MemoryStore, ProgressRow, TileRow, encode
from headrace.testing import record
from tests.serve.shape import rows_of
from tests.streams import BASE, every_aggregate, every_window, streams, times

plan = build([every_window, every_aggregate])
(tile_set,) = plan.tile_sets
TOPIC = "changelog.payments.by_card"


def fill(store, rows, names=("card",)):
    """Rows through a log and a materialiser, as they come in life."""
    log = MemoryLog()
    log.create_topic(TOPIC, compacted=True)
    pairs = (encode(row, names if isinstance(row, TileRow) else ()) for row in rows)
    log.append_batch(TOPIC, [Message(value, key) for key, value in pairs])
    Materialiser(log, store, [TOPIC]).step()
    return store


def changelog(outcome, t, order):
    """What a pipeline leaves behind that wrote at a few moments, was killed, and wrote some of it again."""
    moments = sorted({*(BASE + minutes * MINUTE for minutes in (0, 2, 7, 30)), t})
    rows = [row for moment in moments if moment <= t for row in rows_of(outcome, tile_set, (moment,))]
    again = [row for row in rows if order.random() < 0.3]
    order.shuffle(again)
    return [*rows, *again, ProgressRow(tile_set.fingerprint, "1", {0: 1}, t - SECOND)]


@given(records=streams, t=times, seed=st.integers(0, 99))
@settings(max_examples=150)
def test_a_read_gives_the_reference_value_for_every_window(records, t, seed):
    outcome = Outcome(plan, records)
    reader = Reader(plan, fill(MemoryStore(), changelog(outcome, t, random.Random(seed))))
    for key in [*outcome.keys(every_window), ("nobody",)]:
        answer = reader.read("every_window", key, t)
        assert answer.values == outcome.values(every_window, key, (t,))


@given(records=streams, t=times, seed=st.integers(0, 99))
@settings(max_examples=75)
def test_a_read_gives_the_reference_value_for_every_aggregate(records, t, seed):
    outcome = Outcome(plan, records)
    reader = Reader(plan, fill(MemoryStore(), changelog(outcome, t, random.Random(seed))))
    events = [event for _, event in contributing("update", outcome.judged["payments"])]
    for key in outcome.keys(every_aggregate):
        found, wanted = reader.read("every_aggregate", key, t).values, outcome.values(every_aggregate, key, (t,))
        assert list(found) == list(wanted)
        for planned in plan.view("every_aggregate"):
            name, term = planned.feature.name, planned.feature.terms[0]
            if len(planned.terms) == 2:
                assert found[name] == wanted[name]
                continue
            eat, (low, high) = term.value.python(), term.window.span(t)
            eaten = [
                (event.event_time, event.event_id, eat(event.row))
                for event in events
                if (event.row["card"],) == key and event.place < (t,) and low <= event.event_time < high
            ]
            inputs = [one for one in eaten if one[2] is not None]
            assert term.aggregate.close(found[name], wanted[name], inputs), planned.id


@given(records=streams, t=times)
@settings(max_examples=10)
def test_a_read_from_files_gives_the_reference_value(tmp_path_factory, records, t):
    outcome = Outcome(plan, records)
    with LmdbStore(tmp_path_factory.mktemp("store")) as store:
        reader = Reader(plan, fill(store, changelog(outcome, t, random.Random(1))))
        for key in outcome.keys(every_window):
            assert reader.read("every_window", key, t).values == outcome.values(every_window, key, (t,))


clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at", late="drop")
users = hr.view(
    "users",
    clicks,
    by="user",
    max_staleness="30s",
    features={"n": hr.count(over="10m"), "day": hr.count(over="1d"), "seen": hr.time_since_last(over="1h")},
)
small = build([users])
(users_set,) = small.tile_sets


def click(at=BASE):
    return record(clicks, user="ann", at=at)


def filled(*given, as_of=None, run="1", t=BASE + MINUTE):
    rows = rows_of(Outcome(small, given), users_set, (t,), run)
    said = [] if as_of is None else [ProgressRow(users_set.fingerprint, run, {0: 1}, as_of)]
    return fill(MemoryStore(), [*rows, *said], ("user",))


def test_an_answer_says_how_fresh_it_is():
    answer = Reader(small, filled(click(), as_of=BASE + 59 * SECOND)).read("users", ("ann",), BASE + MINUTE)
    assert answer.values == {"n": 1, "day": 1, "seen": 60.0}
    assert (answer.as_of, answer.freshness_ms, answer.stale, answer.missing) == (
        BASE + 59 * SECOND,
        1_000.0,
        False,
        False,
    )
    assert (answer.key, answer.mode, answer.at) == ({"user": "ann"}, "micro-batch", BASE + MINUTE)


def test_an_answer_is_stale_beyond_the_views_limit_and_not_at_it():
    reader = Reader(small, filled(click(), as_of=BASE))
    assert not reader.read("users", ("ann",), BASE + 30 * SECOND).stale
    assert reader.read("users", ("ann",), BASE + 30 * SECOND + 1).stale


def test_without_a_limit_only_silence_is_stale():
    unlimited = build(
        [hr.view("users", clicks, by="user", features={"n": hr.count(over="10m"), "day": hr.count(over="1d")})]
    )
    (tiles,) = unlimited.tile_sets
    store = fill(MemoryStore(), [ProgressRow(tiles.fingerprint, "1", {}, BASE)])
    assert not Reader(unlimited, store).read("users", ("ann",), BASE + 900 * DAY).stale
    assert Reader(unlimited, MemoryStore()).read("users", ("ann",), BASE).stale


def test_before_the_pipeline_has_spoken_an_answer_is_empty_missing_and_stale():
    answer = Reader(small, MemoryStore()).read("users", ("ann",), BASE)
    assert answer.values == {"n": 0, "day": 0, "seen": None}
    assert (answer.as_of, answer.freshness_ms, answer.stale, answer.missing) == (None, None, True, True)


def test_a_key_whose_tiles_are_all_out_of_reach_is_empty_but_not_missing():
    reader = Reader(small, filled(click(), as_of=BASE + 9 * DAY))
    answer = reader.read("users", ("ann",), BASE + 9 * DAY)
    assert (answer.values["day"], answer.missing) == (0, False)
    assert reader.read("users", ("bob",), BASE + 9 * DAY).missing


@pytest.mark.parametrize("made", [MemoryStore, "files"])
def test_a_new_run_is_read_when_it_is_said_to_serve_and_its_progress_is_there(made, tmp_path):
    store = MemoryStore() if made is MemoryStore else LmdbStore(tmp_path)
    old = [*rows_of(Outcome(small, [click()]), users_set, (BASE + MINUTE,), "1"), progress("1", BASE + SECOND)]
    fill(store, old, ("user",))
    rebuilt = rows_of(Outcome(small, [click(), click(BASE + 1)]), users_set, (BASE + MINUTE,), "2")
    begun = HandOver(users_set.fingerprint, "2", BASE, {0: 1, -1: 5}, {0: 0}, 3)
    reader, seen = Reader(small, store), []
    for rows in ([begun, *rebuilt], [msgspec.structs.replace(begun, stage="serving")], [progress("2", BASE)]):
        store.apply(rows, TOPIC, {0: 98})
        seen.append(reader.read("users", ("ann",), BASE + MINUTE).values["n"])
    assert seen == [1, 1, 2]
    store.apply([Gone(users_set.fingerprint, "2")], TOPIC, {0: 99})
    assert reader.read("users", ("ann",), BASE + MINUTE).values["n"] == 1
    store.close()


def progress(run, as_of):
    return ProgressRow(users_set.fingerprint, run, {}, as_of)


def test_a_named_run_is_read_whatever_the_others_say():
    store = filled(click(), as_of=BASE, run="old")
    store.apply([ProgressRow(users_set.fingerprint, "new", {}, BASE + HOUR)], TOPIC, {0: 99})
    answer = Reader(small, store, {"clicks.by_user": "old"}).read("users", ("ann",), BASE + SECOND)
    assert (answer.values["n"], answer.as_of) == (1, BASE)


class Counting(MemoryStore):
    """A store that tells which tiles were asked for."""

    asked: list[tuple[int, int]] = []  # noqa: RUF012 - one test, one list

    def tiles(self, tile_set, run, key, low=0, high=0):
        self.asked.append((low, high))
        return super().tiles(tile_set, run, key, low, high)


def test_one_scan_reads_exactly_the_reach_of_the_features():
    store = Counting()
    fill(store, [ProgressRow(users_set.fingerprint, "1", {}, BASE)])
    Reader(small, store).read("users", ("ann",), BASE + 5)
    resolution = max(term.term.window.resolution for planned in small.features for term in planned.terms)
    assert len(store.asked) == 1
    low, high = store.asked[0]
    assert low == BASE - DAY - BASE % resolution
    assert BASE < high <= BASE + resolution


def test_an_exact_window_reads_the_tile_that_begins_before_it():
    exact = hr.view("exact", clicks, by="user", features={"n": hr.count(over=hr.trailing("5m", resolution="exact"))})
    only = build([exact])
    (tiles,) = only.tile_sets
    last, t = BASE + tiles.grain - 1, BASE + tiles.grain - 2 + 5 * MINUTE
    outcome = Outcome(only, [click(BASE), click(last)])
    rows = [*rows_of(outcome, tiles, (t,)), ProgressRow(tiles.fingerprint, "1", {}, t)]
    found = Reader(only, fill(MemoryStore(), rows, ("user",))).read("exact", ("ann",), t).values
    assert found == outcome.values(exact, ("ann",), (t,)) == {"n": 1}


def test_columns_that_no_window_needs_at_a_tile_are_not_decoded():
    count, span = (_name(kind) for kind in ("count_", "span_"))
    partials = b'{"%s":4,"%s":"garbage"}' % (count.encode(), span.encode())
    tile = TileRow(users_set.fingerprint, "1", ("ann",), BASE - 23 * HOUR, "on_time", 1, partials)
    store = fill(MemoryStore(), [tile, ProgressRow(users_set.fingerprint, "1", {}, BASE)], ("user",))
    assert Reader(small, store).read("users", ("ann",), BASE).values["day"] == 4


def _name(kind):
    return next(partial.name for partial in users_set.partials if partial.name.startswith(kind))


def test_a_tile_that_cannot_be_read_fails_the_read_and_is_never_left_out():
    partials = b'{"%s":"garbage"}' % _name("span_").encode()
    tile = TileRow(users_set.fingerprint, "1", ("ann",), BASE, "on_time", 1, partials)
    store = fill(MemoryStore(), [tile, ProgressRow(users_set.fingerprint, "1", {}, BASE)], ("user",))
    with pytest.raises(HeadraceError) as refused:
        Reader(small, store).read("users", ("ann",), BASE)
    assert refused.value.code == "bad-changelog"


def test_an_unknown_view_is_refused_with_a_guess():
    with pytest.raises(HeadraceError) as refused:
        Reader(small, MemoryStore()).view("usres")
    assert (refused.value.code, refused.value.hint) == ("not-found", "Did you mean 'users'?")
