"""What the benchmark of scoring stands on: a model that scores, latencies by id, and every payment scored once."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from bench.realtime import load
from bench.scoring import features
from bench.scoring.champion import MODEL, TREES, drawn, promoted, shop
from bench.scoring.instream import told
from bench.scoring.over_http import bodies, refuse_unscored, refuse_wrong
from bench.scoring.predictions import (
    Seen,
    Told,
    backlog_per_s,
    payments_in,
    refuse_not_once,
    seen,
    steady,
    write,
)
from bench.scoring.table import expressions
from bench.serving import mix_a
from headrace.clock import SECOND as MICROS
from headrace.config.config import names
from headrace.log import MemoryLog
from headrace.log.record import Message
from headrace.plan.model_inputs import inputs_of
from headrace.project_models import models_of
from headrace.read.reader import Reader
from headrace.scoring.features import EventFeatures
from headrace.scoring.stream_scoring import StreamScoring
from headrace.serve.dimensions import Dimensions
from headrace.serve.scoring.route import ScoreBody
from headrace.store import MemoryStore
from headrace.testing import FakeClock
from headrace.tiles.changelog import ProgressRow
from headrace.topics import create, topics

SECOND, MS = 10**9, 10**6
BASE = 1_767_225_600 * MICROS


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The project with its champion."""
    held = shop(tmp_path_factory.mktemp("bench"))
    assert promoted(held) == 1
    return held


def told_of(number, *, offset=0, age=12.0, folded=1, stale=False):
    return Told(f"p{number}", offset, age, folded, stale)


@pytest.fixture
def received(tmp_path):
    """Predictions as the process that receives leaves them: (number, moment in nanoseconds) each."""

    def found(*rows, **more):
        write(tmp_path / "seen.npz", [(told_of(number, **more), came) for number, came in rows])
        return seen(tmp_path / "seen.npz")

    return found


def test_the_features_are_those_of_mix_a_all_numbers_and_the_model_takes_them_with_every_payment(made):
    columns = inputs_of(made.plan(), made.models[0].features)
    assert len(columns) == 20
    assert all(each.is_number for each in columns)
    assert features.cards == mix_a.cards
    assert made.models[0].stream == features.payments


def test_the_champion_has_a_hundred_trees_and_its_scores_differ_from_row_to_row(made):
    models = models_of(made)
    folder = made.config.root / ".headrace" / "models" / MODEL / str(models.roles(MODEL).champion)
    assert (folder / "model.txt").read_text("utf-8").count("\nTree=") == TREES
    columns = [name for name, _ in made.plan().model(MODEL).columns]
    rows = drawn(columns, 50, np.random.default_rng(3))
    scores = models.load(MODEL, 1).score([dict(zip(columns, row, strict=True)) for row in rows.tolist()])
    assert all(isinstance(score, float) and 0 <= score <= 1 for score in scores)
    assert len(set(scores)) > 25


def test_drawn_rows_have_fewer_payments_in_shorter_windows_and_no_amounts_where_there_are_none():
    windows = ("10m", "1h", "1d", "7d")
    counts = drawn([f"count_{over}" for over in windows], 2_000, np.random.default_rng(3))
    assert np.all(np.diff(counts, axis=1) >= 0)
    assert counts[:, 3].min() >= 1
    names = ["count_10m", "smallest_10m", "mean_10m", "largest_10m"]
    count, smallest, mean, largest = drawn(names, 2_000, np.random.default_rng(3)).T
    assert 0 < np.sum(count == 0) < 2_000
    assert np.array_equal(np.isnan(mean), count == 0)
    held = count > 0
    assert np.all((smallest[held] <= mean[held]) & (mean[held] <= largest[held]))


def test_a_request_for_a_score_is_one_that_serving_takes():
    (request,) = bodies(["card-7"])
    assert request.raw.startswith(b"POST /v1/score/fraud HTTP/1.1\r\n")
    assert msgspec.json.decode(request.body, type=ScoreBody).key == {"card": "card-7"}


def answer(score=0.25, version=1, count=3):
    values = dict.fromkeys(features.features, count)
    return {"answers": [{"score": score, "version": version, "features": values}], "errors": 0}


def test_answers_that_are_no_scores_of_the_version_are_refused():
    refuse_wrong([answer(0.25), answer(0.5)], 1)
    for wrong in (answer(version=2), answer(count=0), {"answers": [{"error": {}}], "errors": 1}):
        with pytest.raises(RuntimeError, match="is no score"):
            refuse_wrong([answer(0.5), wrong], 1)
    with pytest.raises(RuntimeError, match="same score"):
        refuse_wrong([answer(0.25), answer(0.25)], 1)


def test_a_run_in_which_an_answer_was_no_score_is_refused():
    before = {"scored": 40, "failures": 0}
    refuse_unscored(before, {"scored": 140, "failures": 0}, 100)
    with pytest.raises(RuntimeError, match="99 of 100 answers"):
        refuse_unscored(before, {"scored": 139, "failures": 0}, 100)
    with pytest.raises(RuntimeError, match="1 failed"):
        refuse_unscored(before, {"scored": 141, "failures": 1}, 100)


def test_a_latency_is_from_when_the_payment_of_that_id_was_sent_whatever_came_before(received):
    moments = np.arange(4) * SECOND
    # In another order than they were sent in, and number 1 was a copy of another.
    found = received((2, 2 * SECOND + 5 * MS), (0, 3 * SECOND), (3, 3 * SECOND + 7 * MS))
    took, counted = steady(found, moments, begin=2 * SECOND)
    assert list(took) == [5.0, 7.0]
    assert list(counted.number) == [2, 3]


def test_payments_of_the_backlog_have_no_latency(received):
    took, _ = steady(received((0, 4 * MS), (1, 9 * SECOND)), np.zeros(1, np.int64), begin=0)
    assert list(took) == [4.0]


def test_a_prediction_of_less_than_was_known_is_not_measured(received):
    with pytest.raises(RuntimeError, match="1 of 1 predictions are of less"):
        steady(received((0, 4 * MS), age=None, stale=True), np.zeros(1, np.int64), begin=0)
    with pytest.raises(RuntimeError, match="0 of 0"):
        steady(received((0, 4 * MS)), np.zeros(1, np.int64), begin=1)


def test_payments_without_a_prediction_with_several_and_predictions_of_none_are_refused():
    refuse_not_once(np.array([0, 1, 2]), np.array([2, 0, 1]))
    with pytest.raises(RuntimeError, match="of 3 payments 1 have no prediction and 0 have several; 0 predictions"):
        refuse_not_once(np.array([0, 1, 2]), np.array([2, 0]))
    with pytest.raises(RuntimeError, match="0 have no prediction and 1 have several; 0 predictions"):
        refuse_not_once(np.array([0, 1]), np.array([1, 0, 1]))
    with pytest.raises(RuntimeError, match="0 have no prediction and 0 have several; 1 predictions"):
        refuse_not_once(np.array([0]), np.array([0, 7]))


def test_the_first_fifth_of_a_backlog_does_not_count(received):
    # Two in the first ten seconds, then one each tenth of a second; what was sent before is not of the backlog.
    rows = [(0, 0), (10, 9 * SECOND), (11, 10 * SECOND)]
    rows += [(12 + place, 10 * SECOND + (place + 1) * SECOND // 10) for place in range(8)]
    assert backlog_per_s(received(*rows), 10) == pytest.approx(10.0)
    with pytest.raises(RuntimeError, match="4 predictions are too few"):
        backlog_per_s(received(*rows[:5]), 10)


def test_the_age_of_features_and_what_was_folded_in_are_told_beside_the_latencies():
    number, came = np.arange(3), np.arange(3)
    counted = Seen(number, came, np.array([10.0, 30.0, 20.0]), np.array([1, 2, 6]), np.zeros(3, np.bool_))
    made = {each.name: each for each in told("1k", np.array([1.0, 2.0, 3.0]), counted)}
    assert {name: each.value for name, each in made.items()} == pytest.approx(
        {
            "instream.1k.p50_ms": 2.0,
            "instream.1k.p95_ms": 2.9,
            "instream.1k.p99_ms": 2.98,
            "instream.feature_age_p50_ms": 20.0,
            "instream.folded_mean": 3.0,
        }
    )
    assert [made[f"instream.1k.p{share}_ms"].target for share in (50, 99)] == [5.0, 25.0]


def test_a_column_that_is_no_number_cannot_be_made_up(made):
    columns = inputs_of(made.plan(), made.models[0].features)
    assert [each.rpartition(" AS ")[2] for each in expressions(columns)] == [each.name for each in columns]
    with pytest.raises(KeyError):
        expressions([type(columns[0])("country", "string", "")])


def test_what_the_scorer_writes_of_payments_and_their_copies_is_what_is_joined_by_id(made, tmp_path):
    plan, named, clock = made.plan(), names(made.config), FakeClock(BASE)
    promoted_at = models_of(made).roles(MODEL).history[0].at
    clock.advance(f"{(promoted_at - BASE) // MICROS + 60}s")
    log, store = MemoryLog(clock=clock), MemoryStore()
    create(log, topics(plan, named, 1))
    (tile_set,) = plan.tile_sets
    store.apply([ProgressRow(tile_set.fingerprint, "1", {0: 0}, clock.now() - 40_000)], "changelog", {0: 1})
    scorer = StreamScoring(
        made.models[0],
        EventFeatures(made.models[0], plan, Reader(plan, store), Dimensions()),
        log,
        named,
        models_of(made),
        clock,
    )
    scorer.refresh()
    values = [load.payment(number, number % 2, clock.now()) for number in range(4)]
    log.append_batch(load.SOURCE, [Message(value) for value in [*values[:3], values[1], values[3]]])
    while scorer.step():
        pass
    records = log.read(f"predictions.{MODEL}", 0, 0)
    write(tmp_path / "seen.npz", [(msgspec.json.decode(each.value, type=Told), 5 * MS) for each in records])
    found = seen(tmp_path / "seen.npz")
    sent = payments_in(log, load.SOURCE)
    assert list(sent) == [0, 1, 2, 3]
    refuse_not_once(sent, found.number)
    took, counted = steady(found, np.zeros(4, np.int64), begin=0)
    assert list(took) == [5.0] * 4
    assert list(counted.age) == [40.0] * 4
    # Each card has two payments, and nothing is in the tiles: the second is folded in with the first.
    assert list(counted.folded) == [1, 1, 2, 2]
