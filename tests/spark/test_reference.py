"""The interpreter on small streams written by hand: each rule of the exact meaning, one by one."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.clock import SECOND
from headrace.testing import duplicate, future, late, poison, record, run
from tests.streams import payments

at = "2026-01-01T00:00:00Z"


def pay(id="p1", card="a", cents=100, at=at, **more):
    return record(payments, id=id, card=card, amount=cents / 100, cents=cents, country="DE", at=at, **more)


cards = hr.view(
    "cards",
    payments,
    by="card",
    features={"n": hr.count(over="10m"), "spent": hr.sum("cents", over="10m"), "ever": hr.count(over=hr.lifetime())},
)


def test_every_record_has_one_verdict_and_the_counts_add_up():
    one = pay()
    other = pay(id="p2", at="2026-01-01T00:01:00Z")
    invalid = record(payments, id="p3", card="a", amount=1e9, at=at)
    given = [one, duplicate(one), other, late(other), future(pay(id="p4")), poison(payments), invalid]
    result = run([cards], given)
    assert result.verdicts == {"malformed": 1, "invalid": 1, "future": 1, "late": 1, "duplicate": 1, "admitted": 2}
    assert sum(result.verdicts.values()) == len(given)


def test_a_record_is_known_only_after_it_arrived():
    result = run([cards], [pay(arrived_at="2026-01-01T00:00:30Z")])
    assert result.features(cards, "a", at="2026-01-01T00:00:30Z")["n"] == 0
    assert result.features(cards, "a", at="2026-01-01T00:00:30.000001Z")["n"] == 1


def test_as_happened_counts_an_event_from_its_event_time():
    result = run([cards], [pay(arrived_at="2026-01-01T00:00:30Z")])
    assert result.features(cards, "a", at="2026-01-01T00:00:01Z", mode="as_happened")["n"] == 1
    assert result.features(cards, "a", at="2026-01-01T00:00:00Z", mode="as_happened")["n"] == 0


def test_a_late_event_counts_from_its_arrival_under_the_policy_update():
    result = run([cards], [late(pay(), by="5m")])
    assert result.verdicts["late"] == 1
    assert result.features(cards, "a", at="2026-01-01T00:05:00Z")["n"] == 0
    assert result.features(cards, "a", at="2026-01-01T00:05:01Z")["n"] == 1


@pytest.mark.parametrize("policy", ["side_output", "drop"])
def test_a_late_event_does_not_count_under_the_other_policies(policy):
    strict = hr.stream("strict", fields={"at": hr.Timestamp}, event_time="at", late=policy)
    everything = hr.view("everything", strict, by=(), features={"n": hr.count(over="1d")})
    result = run([everything], [late(record(strict, at=at), by="1h")])
    assert result.features(everything, at="2026-01-01T02:00:00Z") == {"n": 0}
    assert len(result.late_output) == (1 if policy == "side_output" else 0)


def test_the_boundaries_of_lateness_and_skew_are_still_in_time():
    two_minutes, half_minute = "2m", "30s"
    given = [late(pay(id="a"), by=two_minutes), future(pay(id="b"), by=half_minute)]
    assert run([cards], given).verdicts["admitted"] == 2
    beyond = [late(pay(id="a"), by="2m1us"), future(pay(id="b"), by="30s1us")]
    assert run([cards], beyond).verdicts == dict.fromkeys(run([cards], []).verdicts, 0) | {"late": 1, "future": 1}


def test_the_first_copy_to_arrive_is_the_canonical_one_whatever_the_partition():
    first = pay(partition=2, arrived_at="2026-01-01T00:00:01Z")
    second = pay(partition=0, arrived_at="2026-01-01T00:00:02Z")
    judged = run([cards], [second, first]).judged
    assert [(each.record.partition, each.verdict) for each in judged] == [(2, "admitted"), (0, "duplicate")]
    assert judged[1].first == judged[0].place


def test_copies_that_arrive_together_are_told_apart_by_partition_and_offset():
    judged = run([cards], [pay(partition=1), pay(partition=0), pay(partition=0)]).judged
    assert [each.verdict for each in judged] == ["admitted", "duplicate", "duplicate"]
    assert (judged[0].record.partition, judged[0].record.offset) == (0, 0)


def test_copies_with_different_payloads_are_a_conflict():
    judged = run([cards], [pay(cents=100), duplicate(pay(cents=999))]).judged
    assert [each.conflict for each in judged] == [False, True]


def test_the_same_id_at_another_time_is_another_event():
    result = run([cards], [pay(), pay(at="2026-01-01T00:00:01Z")])
    assert result.verdicts["admitted"] == 2


def test_a_late_copy_of_something_present_stays_late_and_never_counts():
    result = run([cards], [pay(), late(pay())])
    assert result.verdicts["late"] == 1
    assert result.features(cards, "a", at="2026-01-03T00:00:00Z")["ever"] == 1


def test_of_two_late_copies_only_the_first_counts():
    result = run([cards], [late(pay(), by="1h"), late(pay(), by="2h")])
    assert result.verdicts["late"] == 2
    assert result.features(cards, "a", at="2026-01-02T00:00:00Z")["ever"] == 1


def test_a_future_copy_does_not_make_the_real_one_a_duplicate():
    result = run([cards], [future(pay(), by="1h"), pay()])
    assert (result.verdicts["future"], result.verdicts["admitted"]) == (1, 1)


def test_without_an_event_id_every_record_is_its_own_event():
    plain = hr.stream("plain", fields={"at": hr.Timestamp}, event_time="at")
    everything = hr.view("everything", plain, by=(), features={"n": hr.count(over="1d")})
    one = record(plain, at=at)
    assert run([everything], [one, one]).features(everything, at="2026-01-01T00:00:01Z") == {"n": 2}


def test_arrival_can_come_from_a_field_so_that_replayed_history_is_not_late():
    replayed = hr.stream(
        "replayed",
        fields={"at": hr.Timestamp, "received": hr.Timestamp},
        event_time="at",
        arrival="field:received",
    )
    everything = hr.view("everything", replayed, by=(), features={"n": hr.count(over="1d")})
    old = record(replayed, at=at, received="2026-01-01T00:00:05Z", arrived_at="2027-01-01T00:00:00Z")
    result = run([everything], [old])
    assert result.verdicts["admitted"] == 1
    assert result.features(everything, at="2026-01-01T00:00:06Z") == {"n": 1}


def test_arrival_can_come_from_a_header_and_its_absence_is_invalid():
    piped = hr.stream("piped", fields={"at": hr.Timestamp}, event_time="at", arrival="header:received")
    everything = hr.view("everything", piped, by=(), features={"n": hr.count(over="1d")})
    told = record(piped, at=at, headers={"received": b"2026-01-01T00:00:05Z"}, arrived_at="2027-01-01T00:00:00Z")
    counted = record(piped, at=at, headers={"received": b"1767225605000000"}, arrived_at="2027-01-01T00:00:00Z")
    result = run([everything], [told, counted, record(piped, at=at)])
    assert (result.verdicts["admitted"], result.verdicts["invalid"]) == (2, 1)
    assert result.dead_letters[0].reason == "header received holds no arrival time"


def test_a_failing_expression_is_null_and_null_does_not_count():
    risky = hr.view("risky", payments, by="card", features={"shares": hr.count("100 / cents", over="1h")})
    result = run([risky], [pay(id="a", cents=0), pay(id="b", cents=5)])
    assert result.features(risky, "a", at="2026-01-01T00:00:01Z") == {"shares": 1}


def test_a_check_that_is_null_does_not_make_a_record_invalid():
    nothing = record(payments, id="x", card="a", amount=None, at=at)
    assert run([cards], [nothing]).verdicts["admitted"] == 1


def test_an_unknown_key_has_no_events_and_says_so():
    result = run([cards], [pay()])
    assert result.features(cards, "nobody", at="2026-01-01T00:00:01Z") == {"n": 0, "spent": 0, "ever": 0}


def test_an_in_stream_score_sees_the_records_before_its_own_and_not_itself():
    given = [pay(id="a", partition=0), pay(id="b", partition=1), pay(id="c", partition=1)]
    outcome = run([cards], given).outcome
    seen = [outcome.values(cards, ("a",), judged.place)["n"] for judged in outcome.judged["payments"]]
    assert seen == [0, 1, 2]


def test_a_session_ends_when_its_gap_has_passed():
    visits = hr.view("visits", payments, by="card", features={"n": hr.count(over=hr.session(gap="10m"))})
    given = [pay(id=f"p{minute}", at=f"2026-01-01T00:{minute:02}:00Z") for minute in (0, 5, 16, 20)]
    result = run([visits], given)
    seen = {minute: result.features(visits, "a", at=f"2026-01-01T00:{minute}:00Z")["n"] for minute in (15, 17, 30, 31)}
    assert seen == {15: 2, 17: 1, 30: 2, 31: 0}


def test_a_pause_of_exactly_the_gap_goes_on_with_a_session_and_a_longer_one_ends_it():
    visits = hr.view("visits", payments, by="card", features={"n": hr.count(over=hr.session(gap="10m"))})
    given = [
        pay(id=f"p{n}", at=f"2026-01-01T00:{pause}Z") for n, pause in enumerate(["00:00", "10:00", "20:00.000001"])
    ]
    result = run([visits], given)
    seen = [result.features(visits, "a", at=f"2026-01-01T00:{minute}:05Z")["n"] for minute in (10, 20)]
    assert seen == [2, 1]


def test_a_late_event_bridges_two_sessions():
    visits = hr.view("visits", payments, by="card", features={"n": hr.count(over=hr.session(gap="10m"))})
    bridge = pay(id="bridge", at="2026-01-01T00:08:00Z", arrived_at="2026-01-01T00:17:30Z")
    given = [pay(id="a"), pay(id="b", at="2026-01-01T00:16:00Z"), bridge]
    result = run([visits], given)
    assert result.features(visits, "a", at="2026-01-01T00:17:00Z")["n"] == 1
    assert result.features(visits, "a", at="2026-01-01T00:18:00Z")["n"] == 3


def test_views_of_several_keys_and_feature_sets_are_read_in_one_call():
    totals = hr.view("totals", payments, by=(), features={"all_payments": hr.count(over="1h")})

    @hr.on_demand(cards, totals, request={"limit": int})
    def share(n, all_payments, limit, t):
        return n / all_payments if all_payments and n < limit else None

    chosen = hr.feature_set("chosen", [cards.only("n"), totals, share])
    result = run([chosen], [pay(id="a"), pay(id="b", card="b")])
    moment = "2026-01-01T00:00:01Z"
    assert result.features(chosen, {"card": "a"}, at=moment, request={"limit": 9}) == {
        "n": 1,
        "all_payments": 2,
        "share": 0.5,
    }
    assert result.features(share, {"card": "a"}, at=moment, request={"limit": 1}) == {"share": None}


def test_an_on_demand_feature_sees_the_view_it_names_also_when_another_has_a_feature_of_that_name():
    totals = hr.view("totals", payments, by=(), features={"n": hr.count(over="1h")})

    @hr.on_demand(cards)
    def twice(n):
        return 2 * n

    @hr.on_demand(totals)
    def thrice(n):
        return 3 * n

    both = hr.feature_set("both", [twice, thrice, totals])
    result = run([both], [pay(id="a"), pay(id="b", card="b")])
    found = result.features(both, {"card": "a"}, at="2026-01-01T00:00:01Z")
    assert found == {"twice": 2, "thrice": 6, "n": 2}


def test_the_order_in_which_records_are_handed_in_does_not_matter():
    given = [pay(id=str(n), at=f"2026-01-01T00:00:{n:02}Z", arrived_at=at_second(n)) for n in range(10)]
    placed = [each.record for each in run([cards], given).judged]
    forwards, backwards = run([cards], placed), run([cards], reversed(placed))
    assert forwards.judged == backwards.judged


def at_second(n):
    return 1_767_225_600 * SECOND + n * SECOND
