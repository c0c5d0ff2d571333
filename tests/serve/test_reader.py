"""Values from stored tiles: equal to the reference for generated streams, and honest about how fresh they are."""

from __future__ import annotations

import random

import msgspec
import pytest
from datasketches import kll_doubles_sketch
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.aggregate.quantiles import K
from headrace.clock import DAY, HOUR, MINUTE, SECOND
from headrace.errors import HeadraceError
from headrace.log import MemoryLog, Message
from headrace.meaning.reference import ReferenceResult, contributing
from headrace.plan.build import build
from headrace.read.reader import Reader
from headrace.store import LmdbStore, Materialiser, MemoryStore, Store
from headrace.testing import record
from headrace.tiles.changelog import Gone, HandOver, ProgressRow, TileRow
from headrace.tiles.changelog_format import encode
from headrace.tiles.fold import folds
from tests.budget import examples
from tests.serve.shape import rows_of, to_json
from tests.streams import BASE, every_aggregate, every_window, payments, seeded, streams, times

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
def test_a_read_gives_the_reference_value_for_every_window(records, t, seed):
    outcome = ReferenceResult(plan, records)
    reader = Reader(plan, fill(MemoryStore(), changelog(outcome, t, random.Random(seed))))
    for key in [*outcome.keys(every_window), ("nobody",)]:
        answer = reader.read("every_window", key, t)
        assert answer.values == outcome.values(every_window, key, (t,))


@given(records=streams, t=times, seed=st.integers(0, 99))
def test_a_read_gives_the_reference_value_for_every_aggregate(records, t, seed):
    outcome = ReferenceResult(plan, records)
    reader = Reader(plan, fill(MemoryStore(), changelog(outcome, t, random.Random(seed))))
    for key in outcome.keys(every_aggregate):
        check_aggregates(outcome, reader, key, t)


def check_aggregates(outcome, reader, key, t):
    """Hold what a reader gives for every aggregate to the reference."""
    events = [event for _, event in contributing("update", outcome.judged["payments"])]
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


def grown(outcome, t, order):
    """A store that made levels out of every few tiles, in the middle of what a pipeline wrote, killed as it was."""
    store = MemoryStore()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headrace.tiles.level_growth.FRESH", 2)
        patch.setattr("headrace.tiles.level_growth.HOLES", 1)
        patch.setattr("headrace.tiles.level_growth.LEAST", 2)
        store.fold_with(folds(plan))
        left = changelog(outcome, t, order)
        while left:
            count = order.randrange(1, 20)
            store.apply(left[:count], TOPIC, {0: 1})
            left = left[count:]
            while order.random() < 0.7 and store.compact(order.randrange(1, 30)):
                pass
        while order.random() < 0.95 and store.compact():
            pass
    return store


# Some dozens of tiles for each key, so that there is something to merge.
crowded = st.integers(0, 9_999).map(lambda seed: seeded(seed, cases=2, size=120))
later = st.integers(10, 120).map(lambda minutes: BASE + minutes * MINUTE) | times


@given(records=crowded, t=later, seed=st.integers(0, 99))
def test_a_read_from_levels_gives_the_reference_value_for_every_window(records, t, seed):
    outcome = ReferenceResult(plan, records)
    reader = Reader(plan, grown(outcome, t, random.Random(seed)))
    for key in [*outcome.keys(every_window), ("nobody",)]:
        assert reader.read("every_window", key, t).values == outcome.values(every_window, key, (t,))


@given(records=crowded, t=later, seed=st.integers(0, 99))
@examples(1 / 2)
def test_a_read_from_levels_gives_the_reference_value_for_every_aggregate(records, t, seed):
    outcome = ReferenceResult(plan, records)
    reader = Reader(plan, grown(outcome, t, random.Random(seed)))
    for key in outcome.keys(every_aggregate):
        check_aggregates(outcome, reader, key, t)


@given(records=streams, t=times)
@examples(1 / 5)
def test_a_read_from_files_gives_the_reference_value(tmp_path_factory, records, t):
    outcome = ReferenceResult(plan, records)
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
    rows = rows_of(ReferenceResult(small, given), users_set, (t,), run)
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
    old = [*rows_of(ReferenceResult(small, [click()]), users_set, (BASE + MINUTE,), "1"), progress("1", BASE + SECOND)]
    fill(store, old, ("user",))
    rebuilt = rows_of(ReferenceResult(small, [click(), click(BASE + 1)]), users_set, (BASE + MINUTE,), "2")
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

    def read(self, tile_set, keys, bands, *, run=None, layout=None):
        self.asked.append((bands[0].low, bands[-1].high))
        return super().read(tile_set, keys, bands, run=run, layout=layout)


def test_one_look_reads_exactly_the_reach_of_the_features():
    store = Counting()
    fill(store, [ProgressRow(users_set.fingerprint, "1", {}, BASE)])
    Reader(small, store).read("users", ("ann",), BASE + 5)
    resolution = max(term.term.window.resolution for planned in small.features for term in planned.terms)
    assert len(store.asked) == 1
    low, high = store.asked[0]
    assert low == BASE - DAY - BASE % resolution
    assert BASE < high <= BASE + resolution


def test_several_keys_are_read_in_one_look():
    store = Counting()
    store.asked.clear()
    fill(
        store,
        [*rows_of(ReferenceResult(small, [click()]), users_set, (BASE + MINUTE,)), progress("1", BASE)],
        ("user",),
    )
    answers = Reader(small, store).read_many("users", [("ann",), ("bob",)], BASE + MINUTE)
    assert [(answer.key["user"], answer.values["n"], answer.missing) for answer in answers] == [
        ("ann", 1, False),
        ("bob", 0, True),
    ]
    assert len(store.asked) == 1


minutes = hr.view(
    "minutes",
    clicks,
    by="user",
    features={
        "now": hr.count(over=hr.trailing("10m", resolution="1m")),
        "week": hr.count(over="7d"),
        "month": hr.count(over="30d"),
        "first": hr.time_since_first(over="30d"),
        "users": hr.count_distinct("user", over="30d"),
        "ever": hr.count(over=hr.lifetime()),
    },
)
monthly = build([minutes])
(minutes_set,) = monthly.tile_sets
DAYS = 40
END = BASE + DAYS * DAY


def minute(n):
    """A tile with one event."""
    at = BASE + n * MINUTE
    sketch = next(part.monoid for part in minutes_set.partials if part.monoid.kind == "distinct").lift("ann", 0, "")
    states = {"count": 1, "span": (1, at, at), "distinct": sketch}
    columns = [(part.name, part.monoid, states[part.monoid.kind]) for part in minutes_set.partials]
    return TileRow(minutes_set.fingerprint, "1", ("ann",), at, "on_time", 1, to_json(columns))


@pytest.fixture(scope="module")
def month(tmp_path_factory):
    """Forty days with an event every minute, in files and in memory."""
    rows = [minute(n) for n in range(DAYS * 24 * 60)]
    stores: list[Store] = [MemoryStore(), LmdbStore(tmp_path_factory.mktemp("month"))]
    for store in stores:
        store.fold_with(folds(monthly))
        store.apply([*rows, ProgressRow(minutes_set.fingerprint, "1", {0: 1}, END)], TOPIC, {0: len(rows)})
        while store.compact(20_000):
            pass
    yield stores
    stores[1].close()


@pytest.mark.parametrize("t", [END, END - 1, END - DAY, END - 7 * HOUR - 13 * MINUTE - 5])
def test_a_month_of_minutes_is_read_in_tens_of_pieces(month, t):
    for store in month:
        reader = Reader(monthly, store)
        inside = {name: _inside(name, t) for name in ("now", "week", "month", "ever")}
        expected = {name: len(starts) for name, starts in inside.items()} | {"users": 1}
        expected["first"] = (t - inside["month"][0]) / SECOND
        assert reader.read("minutes", ("ann",), t).values == expected
        bands = reader._plan_of("minutes").cut(t).bands
        layout = reader._folds[minutes_set.fingerprint].layout
        (pieces,) = store.read(minutes_set.fingerprint, [("ann",)], bands, layout=layout).keys
        assert len(pieces) < 100


def _window(name):
    """The window of a feature."""
    (term,) = next(each for each in monthly.features if each.feature.name == name).terms
    return term.term.window


def _inside(name, t):
    """The starts of the tiles in a feature's window."""
    low, high = _window(name).span(t)
    return [at for at in range(BASE, END, MINUTE) if low <= at < high]


def test_a_time_whose_tiles_have_gone_is_refused_and_a_lifetime_goes_on():
    store = MemoryStore()
    store.fold_with(folds(monthly))
    reader = Reader(monthly, store)
    store.apply([*(minute(n * 60) for n in range(DAYS * 24)), progress_of(END)], TOPIC, {0: 1})
    store.expire()
    assert store.stats().tiles < 31 * 24
    assert reader.read("minutes", ("ann",), END).values["ever"] == DAYS * 24
    assert reader.read("minutes", ("ann",), END).values["month"] == 30 * 24
    with pytest.raises(HeadraceError) as refused:
        reader.read("minutes", ("ann",), END - 3 * DAY)
    assert (refused.value.code, refused.value.http_status) == ("store-expired", 400)


def test_a_time_whose_first_tile_is_the_oldest_that_is_kept_is_still_answered():
    store = MemoryStore()
    store.fold_with(folds(monthly))
    reader = Reader(monthly, store)
    as_of = _window("month").span(END)[0] + reader._folds[minutes_set.fingerprint].layout.keep
    store.apply([*(minute(n * 60) for n in range(DAYS * 24)), progress_of(as_of)], TOPIC, {0: 1})
    store.expire()
    assert reader.read("minutes", ("ann",), END).values["month"] == 30 * 24
    store.apply([progress_of(as_of + HOUR)], TOPIC, {0: 2})
    store.expire()
    with pytest.raises(HeadraceError):
        reader.read("minutes", ("ann",), END)


def progress_of(as_of):
    return ProgressRow(minutes_set.fingerprint, "1", {0: 1}, as_of)


@given(records=streams, seed=st.integers(0, 99), later=st.integers(0, 400))
def test_a_lifetime_of_which_tiles_have_gone_is_the_reference_value(records, seed, later):
    """Whatever was merged into a base, at whatever moments, and what came late after that."""
    lifetime = hr.view(
        "lifetime",
        payments,
        by="card",
        features={
            "count": hr.count(over=hr.lifetime()),
            "sum": hr.sum("cents", over=hr.lifetime()),
            "last": hr.last("country", over=hr.lifetime()),
            "recent": hr.count(over="10m"),
        },
    )
    only, order = build([lifetime]), random.Random(seed)
    (tiles,) = only.tile_sets
    t = BASE + 2 * DAY + later * MINUTE
    outcome, store = ReferenceResult(only, records), MemoryStore()
    reader = Reader(only, store)
    for moment in sorted({BASE + order.randrange(3 * DAY) for _ in range(5)} | {t}):
        if moment <= t:
            said = ProgressRow(tiles.fingerprint, "1", {0: 1}, moment)
            store.apply([*rows_of(outcome, tiles, (moment,)), said], TOPIC, {0: 1})
            store.expire()
    for key in outcome.keys(lifetime):
        assert reader.read("lifetime", key, t).values == outcome.values(lifetime, key, (t,))


def test_while_an_empty_store_is_being_filled_an_answer_is_stale():
    store = filled(click(), as_of=BASE + 59 * SECOND)
    store.mark_filling(True)
    answer = Reader(small, store).read("users", ("ann",), BASE + MINUTE)
    assert (answer.as_of, answer.freshness_ms, answer.stale) == (None, None, True)


def test_an_exact_window_reads_the_tile_that_begins_before_it():
    exact = hr.view("exact", clicks, by="user", features={"n": hr.count(over=hr.trailing("5m", resolution="exact"))})
    only = build([exact])
    (tiles,) = only.tile_sets
    last, t = BASE + tiles.grain - 1, BASE + tiles.grain - 2 + 5 * MINUTE
    outcome = ReferenceResult(only, [click(BASE), click(last)])
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


def test_a_quantile_is_the_same_before_and_after_levels_are_made_and_at_every_read():
    features = {f"median_{size}": hr.quantile("amount", q=0.5, over=size) for size in ("1h", "6h", "1d")}
    medians = build([hr.view("medians", payments, by="card", features=features)])
    (tiles,) = medians.tile_sets
    partial = next(each for each in tiles.partials if each.name.startswith("quantiles_"))
    draws, rows = random.Random(5), []
    for tile in range(60):
        sketch = kll_doubles_sketch(K)
        for _ in range(400):
            sketch.update(draws.lognormvariate(3, 2))
        partials = to_json([(partial.name, partial.monoid, bytes(sketch.serialize()))])
        rows.append(TileRow(tiles.fingerprint, "1", ("a",), BASE + tile * tiles.grain, "on_time", 400, partials))
    store, t = MemoryStore(), BASE + 60 * tiles.grain
    store.fold_with(folds(medians))
    reader = Reader(medians, store)
    store.apply([*rows, ProgressRow(tiles.fingerprint, "1", {0: 1}, t)], TOPIC, {0: 1})

    def read():
        return reader.read("medians", ("a",), t).values

    found = [read(), read()]
    with pytest.MonkeyPatch.context() as patch:
        for name, few in (("FRESH", 2), ("HOLES", 1), ("LEAST", 2)):
            patch.setattr(f"headrace.tiles.level_growth.{name}", few)
        while store.compact(7):
            found.append(read())
    assert store.stats().levels > 0
    assert found == [found[0]] * len(found)


def test_an_answer_says_up_to_when_late_events_are_in_it_and_never_later_than_those_on_time():
    (tiles,) = small.tile_sets
    for said, known in ((None, None), (BASE - MINUTE, BASE - MINUTE), (BASE + MINUTE, BASE)):
        store = filled(click())
        store.apply([ProgressRow(tiles.fingerprint, "1", {0: 1}, BASE, late_as_of=said)], "t", {0: 1})
        answer = Reader(small, store).read("users", ("ann",), BASE + SECOND)
        assert (answer.as_of, answer.late_as_of, answer.stale) == (BASE, known, False)
