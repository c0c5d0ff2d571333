"""Events in, predictions out: each event once, with what the reference knows of it, whoever dies or is promoted."""

from __future__ import annotations

import json

import pytest

import headrace as hr
from headrace.clock import MINUTE, SECOND, show_time
from headrace.config.config import Names
from headrace.log import MemoryLog
from headrace.log.record import Message
from headrace.meaning.equality import differences
from headrace.meaning.exact import Moment
from headrace.meaning.reference import ReferenceResult
from headrace.plan.build import build
from headrace.plan.model_inputs import FittingModels, inputs_of
from headrace.read.reader import Reader
from headrace.scoring.features import EventFeatures
from headrace.scoring.stream_scoring import UNDER_WAY, StreamScoring
from headrace.serve.dimensions import Dimensions
from headrace.store import MemoryStore
from headrace.testing import FakeClock
from headrace.topics import create, topics

payments = hr.stream(
    "payments",
    fields={"id": str, "card": str, "amount": float, "at": hr.Timestamp},
    event_id="id",
    event_time="at",
    allowed_lateness="2m",
)
cards = hr.view("cards", payments, by="card", features={"n": hr.count(over="1h"), "spend": hr.sum("amount", over="1h")})


@hr.on_demand(cards, request={"amount": float})
def share(spend, amount) -> float | None:
    return amount / spend if spend else None


habits = hr.feature_set("habits", [cards, share])
fraud = hr.model("fraud", habits, stream=payments.where("amount > 0"))
plan = build([fraud])

BASE = 1_767_225_600 * SECOND
FIRST, SECOND_ONE = "lambda row: (row['n'] or 0) / 100", "lambda row: 0.5 + (row['n'] or 0) / 1000"


class Slow(MemoryLog):
    """A log that says of an append only later that it is safe."""

    slow, waited = False, 0

    def begin_batch(self, topic, messages):
        begun = super().begin_batch(topic, messages)
        return Sending(self, begun) if self.slow else begun


class Sending:
    """An append that is over when its log is no longer slow, or when it was waited for."""

    def __init__(self, log, begun):
        self._log, self._begun = log, begun

    @property
    def over(self):
        return not self._log.slow

    def positions(self):
        self._log.waited += self._log.slow
        return self._begun.positions()


class World:
    """A log, a store that nothing fills, models, and a scorer that can be started again."""

    def __init__(self, tmp_path):
        self.clock = FakeClock(BASE)
        self.log, self.named = Slow(clock=self.clock), Names("", "shop", tmp_path)
        create(self.log, topics(plan, self.named, 2))
        self.folder = tmp_path
        self.models = FittingModels(tmp_path / "models", self.clock).bind(plan)
        self.sent = 0

    def version(self, text, *, promote=True, **more):
        file = self.folder / f"model_{self.sent}_{len(text)}.py"
        file.write_text(f"score = {text}\n")
        made = self.models.add(
            "fraud", file, features="habits", allow_code=True, columns=inputs_of(plan, habits), **more
        )
        if promote:
            self.models.promote("fraud", made.version)
        return made.version

    def scoring(self):
        features = EventFeatures(fraud, plan, Reader(plan, MemoryStore()), Dimensions())
        made = StreamScoring(fraud, features, self.log, self.named, self.models, self.clock)
        made.refresh()
        return made

    def pay(self, *, card="a", amount=1.0, ago=0, id=None, at=None):
        self.clock.advance("1s")
        self.sent += 1
        happened = self.clock.now() - ago if at is None else at
        row = {"id": id or f"p{self.sent}", "card": card, "amount": amount, "at": show_time(happened)}
        self.log.append_batch("payments", [Message(json.dumps(row).encode(), card.encode())])
        return row["id"]

    def records_of(self, topic):
        ends = self.log.end_offsets(topic).items()
        return [record for partition, end in ends if end for record in self.log.read(topic, partition, 0)]

    def read(self, topic):
        return [json.loads(record.value) for record in self.records_of(topic)]

    @property
    def predictions(self):
        return self.read("predictions.fraud")

    @property
    def records(self):
        return self.records_of("payments")


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def test_every_event_has_one_prediction_with_what_the_reference_knows_of_it(world):
    world.version(FIRST, threshold=0.03)
    scoring = world.scoring()
    for number in range(12):
        copied = {"id": "p1", "at": BASE} if number in (1, 5, 6) else {"ago": (number % 3) * 50 * SECOND}
        world.pay(card="ab"[number % 2], amount=float(number % 5), **copied)
        if number % 3:
            scoring.step()
    world.log.append("payments", b"not JSON")
    while scoring.step():
        pass
    outcome = ReferenceResult(plan, world.records)
    counted = {
        each.event.event_id: each
        for each in outcome.judged["payments"]
        if each.contributes and each.event.row["amount"] > 0
    }
    assert sorted(each["event_id"] for each in world.predictions) == sorted(counted)
    assert scoring.counts.total() == len(world.records)
    for each in world.predictions:
        judged = counted[each["event_id"]]
        arrived, partition, offset = judged.place
        key, found = (json.loads(each["key"])["card"],), json.loads(each["features"])
        moment: Moment = (arrived, partition, offset + 1)
        assert differences(outcome, cards, key, moment, found) == []
        assert found["share"] == judged.event.row["amount"] / found["spend"]
        assert each["score"] == found["n"] / 100
        assert each["decision"] == (each["score"] >= 0.03)


def test_a_scorer_that_dies_before_it_noted_its_position_scores_again_under_the_same_ids(world):
    world.version(FIRST)
    first = world.scoring()
    ids = [world.pay() for _ in range(5)]
    first.step()
    # It was killed: nothing is noted.
    again = world.scoring()
    ids += [world.pay() for _ in range(3)]
    while again.step():
        pass
    assert {each["id"] for each in world.predictions} == {f"{each}@1" for each in ids}


def test_a_scorer_that_noted_its_position_goes_on_there_and_knows_what_came_before(world):
    world.version(FIRST)
    first = world.scoring()
    world.pay(id="p1", at=BASE)
    first.step()
    first.note(now=True)
    again = world.scoring()
    world.pay(id="p1", at=BASE)
    world.pay(id="p2")
    again.step()
    assert [(each["event_id"], json.loads(each["features"])["n"]) for each in world.predictions] == [
        ("p1", 1),
        ("p2", 2),
    ]
    assert again.counts["duplicate"] == 1


def test_the_position_moves_only_when_predictions_are_safe(world):
    world.version(FIRST)
    scoring = world.scoring()
    first = world.log.committed("shop.score.fraud", "payments")
    world.log.slow = True
    for _ in range(3):
        world.pay()
        assert scoring.step() == 1, "the next are scored meanwhile"
    scoring.note()
    assert world.log.committed("shop.score.fraud", "payments") == first
    world.log.slow = False
    scoring.step()
    scoring.note(now=True)
    assert sum(world.log.committed("shop.score.fraud", "payments").values()) == 3
    assert world.log.waited == 0


def test_so_many_steps_are_under_way_and_no_more(world):
    world.version(FIRST)
    scoring = world.scoring()
    world.log.slow = True
    for _ in range(UNDER_WAY + 3):
        world.pay()
        scoring.step()
    assert world.log.waited == 3
    scoring.note(now=True)
    assert world.log.waited == UNDER_WAY + 3, "what is under way is waited for in the end"
    assert sum(world.log.committed("shop.score.fraud", "payments").values()) == UNDER_WAY + 3


def test_events_before_the_first_promotion_are_history(world):
    world.pay(id="before")
    world.clock.advance("1s")
    world.version(FIRST)
    scoring = world.scoring()
    world.pay(id="after")
    scoring.step()
    (only,) = world.predictions
    assert only["event_id"] == "after"
    assert json.loads(only["features"])["n"] == 2


def test_a_promoted_version_takes_over_between_two_steps_and_no_event_is_left_out(world):
    world.version(FIRST)
    scoring = world.scoring()
    ids = [world.pay()]
    scoring.step()
    world.version(SECOND_ONE)
    scoring.refresh()
    ids.append(world.pay())
    scoring.step()
    told = {each["event_id"]: (each["version"], each["score"]) for each in world.predictions}
    assert told == {ids[0]: (1, 0.01), ids[1]: (2, 0.502)}


def test_shadows_score_beside_the_champion_and_challengers_for_their_share_of_the_keys(world):
    world.version(FIRST)
    world.models.challenge("fraud", world.version(SECOND_ONE, promote=False), 0.5)
    world.models.shadow("fraud", world.version("lambda row: 0.9", promote=False))
    scoring = world.scoring()
    for number in range(40):
        world.pay(card=f"card-{number}")
    while scoring.step():
        pass
    roles = [each["role"] for each in world.predictions]
    assert roles.count("shadow") == 40
    assert roles.count("champion") + roles.count("challenger") == 40
    assert 5 < roles.count("challenger") < 35
    versions = {"champion": 1, "challenger": 2, "shadow": 3}
    assert all(versions[each["role"]] == each["version"] for each in world.predictions)


def test_a_champion_that_fails_falls_back_and_what_it_failed_is_scored_by_the_one_before(world):
    world.version(FIRST)
    world.version("lambda row: 0.5 if (row['n'] or 0) < 2 else 1 / 0")
    scoring = world.scoring()
    ids = [world.pay() for _ in range(8)]
    while scoring.step():
        pass
    assert sorted(each["event_id"] for each in world.predictions) == sorted(ids)
    assert world.models.roles("fraud").champion == 1
    assert world.models.roles("fraud").history[-1].by == "fallback"


def test_a_challenger_that_fails_has_its_keys_taken_away_and_they_are_scored_by_the_champion(world):
    world.version(FIRST)
    world.models.challenge("fraud", world.version("lambda row: 1 / 0 if row['n'] else 0.5", promote=False), 0.999999)
    scoring = world.scoring()
    ids = [world.pay(card=f"card-{number}") for number in range(8)]
    while scoring.step():
        pass
    assert sorted(each["event_id"] for each in world.predictions) == sorted(ids)
    assert {each["version"] for each in world.predictions} == {1}
    assert world.models.roles("fraud").challenger is None


def test_an_event_that_no_version_can_score_is_in_the_topic_of_failures_with_the_reason(world):
    world.version("lambda row: 0.5 if (row['n'] or 0) < 2 else float('nan')")
    scoring = world.scoring()
    good, bad = world.pay(), world.pay()
    scoring.step()
    assert [each["event_id"] for each in world.predictions] == [good]
    (told,) = world.read("predictions.fraud.failed")
    assert (told["event_id"], told["error"]["code"]) == (bad, "model-failed")
    assert scoring.counts == {"scored": 1, "failed": 1}


def test_a_version_that_does_not_fit_the_plan_never_scores_and_the_one_before_goes_on(world):
    world.version(FIRST)
    scoring = world.scoring()
    columns = inputs_of(plan, habits)
    file = world.folder / "other.py"
    file.write_text("score = lambda row: 0.1\n")
    made = world.models.add("fraud", file, features="habits", columns=columns[:2], allow_code=True)
    world.models.promote("fraud", made.version)
    scoring.refresh()
    world.pay()
    scoring.step()
    assert [each["version"] for each in world.predictions] == [1]
    assert "'share' is extra" in str(scoring.lineups.failure)


def test_a_late_event_is_scored_with_itself_but_not_kept_for_others(world):
    world.version(FIRST)
    scoring = world.scoring()
    world.pay(id="late", ago=5 * MINUTE)
    world.pay(id="next")
    while scoring.step():
        pass
    told = {each["event_id"]: json.loads(each["features"])["n"] for each in world.predictions}
    assert told == {"late": 1, "next": 1}


def test_predictions_are_kept_by_the_key_of_their_record_so_that_each_keys_stay_in_order(world):
    world.version(FIRST)
    scoring = world.scoring()
    ids = [world.pay(card="a") for _ in range(6)]
    while scoring.step():
        pass
    told = [json.loads(record.value) for record in world.records_of("predictions.fraud") if record.key == b"a"]
    assert [each["event_id"] for each in told] == ids


def test_the_predictions_of_a_key_stay_in_order_when_a_version_falls_back_in_between(world):
    world.version(FIRST)
    world.version("lambda row: 0.5 if (row['n'] or 0) % 2 == 0 else 1 / 0")
    scoring = world.scoring()
    ids = [world.pay(card="a") for _ in range(12)]
    while scoring.step():
        pass
    told = [json.loads(record.value) for record in world.records_of("predictions.fraud") if record.key == b"a"]
    assert [each["event_id"] for each in told] == ids
    assert {each["version"] for each in told} == {1, 2}


def test_a_backlog_is_taken_in_the_order_of_arrival_over_all_partitions(world, monkeypatch):
    from headrace.scoring import stream_scoring as module

    monkeypatch.setattr(module, "MOST", 3)
    world.version(FIRST)
    scoring = world.scoring()
    paid = [world.pay(card="abcdefgh"[number % 8]) for number in range(20)]
    came: list[str] = []
    begin = world.log.begin_batch

    def begun(topic, messages):
        came.extend(json.loads(message.value)["event_id"] for message in messages)
        return begin(topic, messages)

    monkeypatch.setattr(world.log, "begin_batch", begun)
    while scoring.step():
        pass
    assert came == paid
    assert all(world.log.end_offsets("payments").values())
    assert scoring.positions == world.log.end_offsets("payments")


def test_where_nothing_has_come_nothing_is_read(world):
    world.version(FIRST)
    scoring = world.scoring()
    world.pay(card="a")
    assert scoring.step(come={}) == 0
    assert scoring.step(come=world.log.wait({"payments": scoring.reading}, 0)["payments"]) == 1
