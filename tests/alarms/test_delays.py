"""Delays with known quantiles, what is recommended for them, and what that costs; from the lake and from the log."""

from __future__ import annotations

import builtins
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace import project
from headrace.cli.init import create
from headrace.cli.lateness_source import last_offsets
from headrace.clock import DAY, HOUR, MILLISECOND, MINUTE, SECOND, SystemClock, show_duration, show_time
from headrace.config import config as configuration
from headrace.lateness.choice import STEPS, latenesses, recommended, roundest, skews, surviving
from headrace.lateness.delays import EDGES, Delays, Exact
from headrace.lateness.state_size import IDENTITY_BYTES, StateModel, TileCost, active_keys, cost
from headrace.log import MemoryLog
from headrace.log.record import Message
from headrace.plan.build import build
from headrace.status.records import TileSetStatus
from headrace.topics import open_log
from tests.cli.asking import asking
from tests.lake.bronze import fill, record

START = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z


def gathered(by_partition, exact_up_to=10_000_000, every=SECOND):
    """Delays whose records arrive one after another, at a steady pace in each partition."""
    delays = Delays(exact_up_to)
    for partition, given_delays in by_partition.items():
        late = np.asarray(given_delays, dtype=np.int64)
        arrived = START + np.arange(len(late)) * every
        delays.add(np.full(len(late), partition), arrived=arrived, happened=arrived - late)
    return delays


def quantiles(delays):
    return [delays.quantile(q) for q in (0.5, 0.9, 0.99, 0.999)]


# the numbers


def test_quantiles_are_the_order_statistics_of_the_delays():
    late = np.random.default_rng(1).permutation(np.arange(1, 1001)) * MILLISECOND
    found = gathered({0: late}).overall()
    assert quantiles(found) == [500 * MILLISECOND, 900 * MILLISECOND, 990 * MILLISECOND, 999 * MILLISECOND]
    assert (found.greatest, found.count) == (SECOND, 1000)


@given(st.lists(st.integers(-(10**9), 10**12), min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.99, 0.999]))
def test_a_quantile_is_the_least_delay_that_enough_records_do_not_exceed(late, q):
    value = Exact(np.array(late)).quantile(q)
    # Shares as whole thousandths: no float decides.
    enough = round(q * 1000) * len(late)
    assert 1000 * sum(each <= value for each in late) >= enough
    assert 1000 * sum(each < value for each in late) < enough


def test_a_slow_producer_shows_in_its_partition_and_hides_in_the_whole():
    delays = gathered({0: [SECOND] * 9_000, 1: [2 * SECOND] * 9_000, 2: [10 * MINUTE] * 90})
    assert quantiles(delays.overall())[:3] == [2 * SECOND] * 3
    assert delays.overall().quantile(0.999) == 10 * MINUTE
    assert {number: found.quantile(0.5) for number, found in delays.partitions().items()} == {
        0: SECOND,
        1: 2 * SECOND,
        2: 10 * MINUTE,
    }


def test_shares_count_what_is_beyond_the_bound_and_not_what_is_on_it():
    found = gathered({0: [-2 * SECOND, -SECOND, 0, SECOND, 2 * SECOND]}).overall()
    assert (found.beyond(SECOND), found.beyond(2 * SECOND)) == (0.2, 0.0)
    assert (found.ahead(SECOND), found.ahead(0), found.ahead(2 * SECOND)) == (0.2, 0.4, 0.0)


def test_a_sketch_counts_what_is_beyond_the_bound_and_not_what_is_on_it():
    found = gathered({0: [-2 * SECOND, -SECOND, 0, SECOND, 2 * SECOND]}, exact_up_to=0).overall()
    assert not isinstance(found, Exact)
    assert (found.beyond(SECOND), found.beyond(2 * SECOND)) == (pytest.approx(0.2), 0.0)
    assert (found.ahead(SECOND), found.ahead(0), found.ahead(2 * SECOND)) == (pytest.approx(0.2), pytest.approx(0.4), 0)


def test_many_delays_are_sketched_within_a_hundredth_of_a_percent_of_their_ranks():
    chance = np.random.default_rng(2)
    late = {0: chance.exponential(SECOND, 400_000), 1: chance.exponential(30 * SECOND, 100_000) + MINUTE}
    exact, sketched = gathered(late, every=MILLISECOND), gathered(late, exact_up_to=150_000, every=MILLISECOND)
    assert (exact.exact, sketched.exact) == (True, False)
    assert sketched.histogram() == exact.histogram()
    assert (sketched.count, sketched.overall().count) == (500_000, 500_000)
    pairs = [(exact.overall(), sketched.overall())]
    pairs += [(whole, sketched.partitions()[number]) for number, whole in exact.partitions().items()]
    for whole, part in pairs:
        assert (part.count, part.greatest) == (whole.count, whole.greatest)
        for q in (0.5, 0.9, 0.99, 0.999):
            assert abs(1 - whole.beyond(part.quantile(q)) - q) < 1e-4
        assert abs(part.beyond(20 * SECOND) - whole.beyond(20 * SECOND)) < 1e-4


def test_the_histogram_has_every_record_once_and_no_empty_ends():
    delays = gathered({0: [-SECOND, 0, MILLISECOND - 1, MILLISECOND, 2 * SECOND, 40 * DAY]})
    found = delays.histogram()
    assert found[0] == (None, 0, 1)
    assert found[1:3] == [(0, MILLISECOND, 2), (MILLISECOND, 3 * MILLISECOND, 1)]
    assert found[-1] == (30 * DAY, None, 1)
    assert sum(count for *_, count in found) == 6
    assert list(EDGES) == sorted(EDGES)
    assert gathered({0: [5 * SECOND]}).histogram() == [(3 * SECOND, 10 * SECOND, 1)]
    assert Delays().histogram() == []


def test_the_rate_is_that_of_the_busiest_stretch():
    delays = Delays()
    slow, fast = np.arange(0, 60) * MINUTE, 2 * HOUR + np.arange(6000) * (MINUTE // 600)
    for arrived in (slow, fast):
        delays.add(np.zeros(len(arrived)), arrived=START + arrived, happened=START + arrived)
    assert delays.rate(10 * MINUTE) == pytest.approx(10.0)
    assert delays.rate(20 * MINUTE) == pytest.approx(5.0)
    assert delays.rate(DAY) == pytest.approx(6060 / (2 * 3600 + 600), rel=1e-3)


# the choice


@pytest.mark.parametrize(
    ("p99", "expected"),
    [("40s", "1m"), ("100s", "3m"), ("25m", "45m"), ("3200ms", "5s"), ("900ms", "1s500ms"), ("5d", "8d"), ("2h", "3h")],
)
def test_the_recommended_lateness_is_the_roundest_between_one_and_a_half_and_two_times_p99(p99, expected):
    from headrace.clock import duration

    found = gathered({0: [0] * 98 + [duration(p99)] * 2}).overall()
    assert show_duration(recommended(found)) == expected


@given(st.integers(SECOND, 400 * DAY))
def test_the_recommended_lateness_is_within_its_bounds_and_nothing_rounder_is(p99):
    best = recommended(Exact(np.array([p99])))
    assert 1.5 * p99 <= best <= 2 * p99
    step = next(step for step in STEPS if best % step == 0)
    rounder = [other for other in STEPS if other > step]
    assert all(2 * p99 // other * other < 1.5 * p99 for other in rounder)


def test_at_least_a_second_is_recommended_even_if_clocks_run_ahead():
    assert recommended(gathered({0: [-MINUTE] * 10}).overall()) == SECOND
    assert recommended(gathered({0: [3]}).overall()) == SECOND


@given(st.floats(1, 1e15), st.floats(1.3, 3))
def test_a_round_duration_lies_between_its_bounds(low, times):
    assert low <= roundest(low, low * times) <= low * times + 1


def test_the_lateness_for_an_outage_holds_it_and_the_tail_after_it():
    found = gathered({0: [SECOND] * 990 + [12 * SECOND] * 10}).overall()
    assert surviving(found, 45 * MINUTE) == 50 * MINUTE


def test_choices_go_to_the_first_that_makes_nothing_late_and_hold_the_present_one():
    found = gathered({0: [SECOND] * 90 + [45 * SECOND] * 9 + [-20 * SECOND]}).overall()
    assert latenesses(found, [7 * MINUTE]) == [SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND, MINUTE, 7 * MINUTE]
    assert skews(found, [2 * SECOND]) == [SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND]


# the state

clicks = hr.stream(
    "clicks", fields={"id": str, "user": str, "n": int, "at": hr.Timestamp}, event_time="at", event_id="id"
)
users = hr.view("users", clicks.where("n > 0"), by="user", features={"c": hr.count(over=hr.tumbling("1h"))})


def test_state_is_identities_and_open_tiles_for_as_long_as_spark_keeps_them():
    steady = gathered({0: [0] * 36_000})
    tiles = TileCost("clicks.by_user", MINUTE, 10, 100.0, 1000.0, False)
    found = StateModel(steady, MINUTE, (tiles,)).state(9 * MINUTE)
    assert found.identities == pytest.approx(20 * 60)
    assert found.tiles == 10 * 21
    assert found.bytes == found.identities * 100 + found.tiles * 1000
    assert StateModel(steady, MINUTE, (tiles, tiles)).state(9 * MINUTE).bytes == 2 * found.bytes


def test_there_are_never_more_open_tiles_than_events():
    rare = gathered({0: [0] * 100}, every=MINUTE)
    for keys in (None, 1_000_000):
        tiles = TileCost("clicks.by_user", SECOND, keys, 0.0, 1.0, False)
        assert StateModel(rare, 0, (tiles,)).state(0).tiles == 10


def test_the_longest_lateness_of_a_budget_fits_and_a_second_more_does_not():
    model = StateModel(gathered({0: [0] * 50_000}), 0, (TileCost("t", MINUTE, 10, 100.0, 1000.0, False),))
    longest = model.longest(500_000)
    assert longest is not None
    assert model.state(longest).bytes <= 500_000 < model.state(longest + MINUTE).bytes
    assert model.longest(10) is None


def test_where_the_budget_is_that_of_no_lateness_none_is_the_longest():
    model = StateModel(gathered({0: [0] * 50_000}), 0, (TileCost("t", MINUTE, 10, 100.0, 1000.0, False),))
    least = model.state(0).bytes
    assert (model.longest(least), model.longest(least - 1)) == (0, None)


def test_bytes_of_a_row_come_from_spark_when_it_has_told_of_enough():
    (tiles,) = build([users]).tile_sets
    supposed = cost(tiles, 5)
    assert (supposed.identity_bytes, supposed.measured) == (IDENTITY_BYTES, False)
    assert cost(tiles, 5, TileSetStatus(state_rows=10, state_bytes=9_000_000)) == supposed
    told = cost(tiles, 5, TileSetStatus(state_rows=100_000, state_bytes=9_000_000))
    assert (told.identity_bytes, told.tile_bytes, told.measured) == (90.0, 90.0, True)


def test_a_stream_without_an_event_id_keeps_no_identities():
    plain = hr.stream("plain", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    (tiles,) = build([hr.view("v", plain, by="user", features={"c": hr.count(over="1h")})]).tile_sets
    assert cost(tiles, 1).identity_bytes == 0


def test_keys_are_counted_where_the_tiles_filter_lets_them_in():
    (tiles,) = build([users]).tile_sets
    rows = [{"user": f"u{number % 7}", "n": number % 2} for number in range(100)] + [{"user": "never", "n": 0}]
    assert active_keys(tiles, rows) == 7
    assert active_keys(tiles, []) is None


def test_every_kind_of_column_has_a_size():
    from headrace.aggregate.monoid import Monoid
    from headrace.lateness.state_size import COLUMN_BYTES

    def kinds(kind):
        for inner in kind.__subclasses__():
            yield from kinds(inner)
            if isinstance(getattr(inner, "kind", None), str):
                yield inner.kind

    assert set(kinds(Monoid)) == set(COLUMN_BYTES)


# the verb


@pytest.fixture
def shop(tmp_path, monkeypatch):
    create(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return configuration.load()


@pytest.fixture
def ask(capsys):
    return asking(capsys, "lateness")


def archived(shop):
    """1,000 records a second apart: partition 0 takes up to 0.8 s, partition 1 up to two minutes; some do not count."""
    rows = [record(0, at, START + at * SECOND, (at + 1) * MILLISECOND) for at in range(800)]
    rows += [record(1, at, START + at * SECOND, (at + 1) * 600 * MILLISECOND) for at in range(199)]
    end = START + 900 * SECOND
    rows += [
        record(1, 199, end, -10 * MINUTE, verdict="future"),
        record(1, 200, end, HOUR, verdict="duplicate", first_partition=0, first_offset=0),
        record(1, 201, end, HOUR, verdict="late", first_partition=0, first_offset=0),
        record(1, 202, end, 0, verdict="malformed", event_time=None),
        record(1, 203, end, DAY, verdict="invalid"),
        record(-1, 0, end, 5 * SECOND, arrival="assumed"),
    ]
    fill(shop, project.load().streams[0], [rows[:500], rows[500:]])


def test_the_report_from_the_lake_for_people(shop, ask, golden):
    archived(shop)
    code, out, err = ask("--outage", "45m", "--state-budget", "3MB")
    assert (code, err) == (0, "")
    golden("cli/lateness", out)


def test_the_report_from_the_lake_as_json(shop, ask):
    archived(shop)
    told = json.loads(ask("payments", "--json", "--outage", "45m", "--state-budget", "2GB")[1])["streams"]["payments"]
    assert (told["source"], told["records"], told["exact"]) == ("lake", 1000, True)
    assert told["left_out"] == {"copies": 2, "assumed_arrival": 1, "unreadable": 0}
    assert told["partitions"]["0"] == {
        "records": 800,
        "p50": 400_000,
        "p90": 720_000,
        "p99": 792_000,
        "p99_9": 800_000,
        "max": 800_000,
    }
    # One of its 200 is ahead of time.
    assert told["partitions"]["1"]["p50"] == 99 * 600 * MILLISECOND
    # 801 of 1,000 are no later than 0.8 s, so P99 is the 189th of the slow producer.
    assert (told["delays"]["p50"], told["delays"]["p99"]) == (499_000, 189 * 600 * MILLISECOND)
    assert told["recommended"]["allowed_lateness"] == 3 * MINUTE
    late = {each["allowed_lateness"]: each["late"] for each in told["lateness_choices"]}
    assert (late[MINUTE], late[2 * MINUTE]) == (0.099, 0.0)
    future = {each["max_clock_skew"]: each["future"] for each in told["skew_choices"]}
    assert (future[MINUTE], future[10 * MINUTE]) == (0.001, 0.0)
    outage = told["outage"]
    assert (outage["needed"], outage["fits"]) == (45 * MINUTE + 198 * 600 * MILLISECOND, True)
    assert told["state_model"]["tile_sets"]["payments.by_card"]["keys"] == 10


def live(shop, late, partition=0):
    now = SystemClock().now()
    rows = [{"id": f"{at}", "card": "1", "amount": 1.0, "country": "DE"} for at, _ in enumerate(late)]
    sent = [row | {"at": show_time(now - delay)} for row, delay in zip(rows, late, strict=True)]
    with open_log(shop) as log:
        log.create_topic("payments", partitions=2)
        messages = [Message(json.dumps(row).encode()) for row in sent]
        log.append_batch("payments", [*messages, messages[0], Message(b"{")], partition=partition)


def test_without_a_lake_the_log_is_looked_at_and_it_is_said(shop, ask):
    live(shop, [HOUR] * 50)
    code, out, err = ask("--json")
    told = json.loads(out)["streams"]["payments"]
    assert (code, err) == (0, "The lake has nothing of payments yet: these are the last 100,000 records of the log.\n")
    assert (told["source"], told["records"]) == ("log", 50)
    assert told["left_out"] == {"copies": 1, "assumed_arrival": 0, "unreadable": 1}
    assert HOUR <= told["delays"]["p50"] < HOUR + MINUTE
    assert told["recommended"]["allowed_lateness"] == 2 * HOUR


def test_live_looks_at_the_last_records_alone(shop, ask):
    archived(shop)
    live(shop, [HOUR] * 40, partition=0)
    live(shop, [MINUTE] * 40, partition=1)
    told = json.loads(ask("--live", "--last", "42", "--json")[1])["streams"]["payments"]
    assert (told["source"], list(told["partitions"])) == ("log", ["1"])
    assert sum(told["left_out"].values()) + told["records"] == 42


@pytest.mark.parametrize("most", [1, 3, 7, 100])
def test_the_last_records_are_those_that_arrived_last_and_never_too_many(most):
    class Stepping:
        time = START

        def now(self):
            return self.time

    clock = Stepping()
    log = MemoryLog(clock=clock)
    log.create_topic("clicks", partitions=3)
    for number in range(20):
        clock.time += SECOND * (number % 3)
        log.append("clicks", b"{}", partition=number % 3)
    first, ends = last_offsets(log, "clicks", most), log.end_offsets("clicks")
    chosen = [each for p in ends for each in log.read("clicks", p, first[p])]
    before = [each for p in ends for each in log.read("clicks", p, 0)[: first[p]]]
    assert len(chosen) == min(most, 20)
    assert all(each.arrived_at <= min(other.arrived_at for other in chosen) for each in before)


@pytest.mark.usefixtures("shop")
def test_a_stream_without_records_has_no_lateness(ask):
    code, out, _ = ask()
    assert (code, out) == (0, "stream payments: 0 records from the log\n")


def test_a_picture_is_drawn_as_svg_or_png(shop, ask):
    archived(shop)
    assert ask("--plot", "late.svg")[2] == "Drew late.svg.\n"
    text = (shop.root / "late.svg").read_text()
    ElementTree.fromstring(text)
    assert re.search(r"<!-- payments: 1,000 records -->", text)
    assert "<!-- recommended 3m -->" in text
    assert ask("--plot", "late.png")[0] == 0
    assert (shop.root / "late.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("shop")
def test_a_picture_without_matplotlib_says_what_to_install(ask, monkeypatch):
    whole = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError
        return whole(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    code, _, err = ask("--plot", "late.svg")
    assert (code, "pip install 'headrace[plots]'" in err) == (3, True)


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    "options",
    [
        ("--plot", "late.pdf"),
        ("--plot", "nowhere/late.svg"),
        ("--last", "5"),
        ("--state-budget", "2GB"),
        ("--outage", "soon"),
        ("--outage", "1h", "--state-budget", "much"),
        ("paymnets",),
    ],
)
def test_wishes_that_cannot_be_met_are_refused(ask, options):
    code, out, err = ask(*options)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
