"""Looks at a lake that fills: every one says what a plain reading of everything says."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from headrace.clock import MINUTE
from headrace.errors import HeadraceError
from headrace.evaluation import pass_table as looks
from headrace.evaluation.cells import Cells
from headrace.evaluation.evaluation_pass import strays
from headrace.evaluation.report import overall, report
from headrace.faults import NO_FAULTS
from headrace.meaning.sums import Sums
from tests.evaluation.shop import Shop, busy, by_id, by_key, lost
from tests.streams import BASE

pytestmark = pytest.mark.spark


def same(found, wanted):
    """Counts are equal, and sums of numbers as far as their order allows."""
    assert found.keys() == wanted.keys()
    for cell, sums in wanted.items():
        held: Sums = found[cell]
        for name in ("states", "contradicted", "unusable", "decided", "errors", "delays"):
            assert getattr(held, name) == getattr(sums, name), (cell, name)
        assert {at: (each.open, each.no, each.yes) for at, each in held.scores.items()} == {
            at: (each.open, each.no, each.yes) for at, each in sums.scores.items()
        }
        for at, each in sums.scores.items():
            assert held.scores[at].total == pytest.approx(each.total, abs=1e-9)
        assert held.losses == pytest.approx(sums.losses, abs=1e-9)
        assert held.moments == pytest.approx(sums.moments, abs=1e-6)
        assert held.decided_sum == pytest.approx(sums.decided_sum, abs=1e-9)


class Walk:
    """A lake that fills, and a look at it now and then; every second look is killed first, just before its commit."""

    def __init__(self, folder, spark, seed, partitions):
        self.shop = Shop(folder, spark, partitions)
        self.looks, self.left_by_killed = [], []
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(looks, "TIDIED", 2)
            for number, _ in enumerate(busy(self.shop, seed, minutes=300)):
                self.shop.archive()
                if number % 2:
                    self.left_by_killed.append(self._kill_look())
                found = self.shop.look()
                self.looks.append((found.known_until, self.shop.clock.now(), self.shop.cells(), self.shop.meant()))

    def _kill_look(self):
        """The cells before and after a look that was killed."""
        before = self.shop.cells()
        with pytest.MonkeyPatch.context() as broken:
            broken.setattr(Cells, "restate", _killed)
            with pytest.raises(KeyboardInterrupt):
                self.shop.look()
        return before, self.shop.cells()


def _killed(*_):
    raise KeyboardInterrupt


@pytest.fixture(scope="module", params=[(2, 3), pytest.param((1, 1), marks=pytest.mark.prove)])
def walk(request, spark, tmp_path_factory):
    return Walk(tmp_path_factory.mktemp("walk"), spark, *request.param)


def test_every_look_says_what_a_plain_reading_says(walk):
    assert len(walk.looks) > 2
    for known_until, now, cells, meant in walk.looks:
        assert known_until == now
        same(cells, meant)
    whole = [sums for cell, sums in walk.looks[-1][2].items() if not cell.segment]
    assert sum(sums.count for sums in whole) == len(walk.shop.predictions)
    assert all("open" not in sums.states for sums in whole)
    assert {state for sums in whole for state in sums.states} >= {"labelled", "defaulted"}


def test_a_look_that_is_killed_leaves_nothing(walk):
    assert walk.left_by_killed
    for before, after in walk.left_by_killed:
        assert after == before


def test_one_look_in_the_end_says_the_same_as_many(walk, monkeypatch):
    # A table of its own, as if nobody had looked before.
    monkeypatch.setattr(Cells, "__init__", _with_a_table_of_its_own)
    walk.shop.look()
    same(walk.shop.cells(), walk.looks[-1][2])


def _with_a_table_of_its_own(self, config, label, faults=NO_FAULTS):
    self._looks = looks.PassTable(config, f"once.{label.name}", faults)


def test_many_looks_are_tidied_and_nothing_that_was_said_is_lost(walk):
    cells = Cells(walk.shop.config, by_id)
    assert cells.looks >= 2
    assert len(DeltaTable(cells._looks.uri).file_uris()) < cells.looks
    windows = report(by_id, cells)["windows"]
    assert max(len(window["restatements"]) for window in windows) > 1


def test_labels_that_are_numbers_give_errors(walk):
    walk.shop.look(lost)
    same(walk.shop.cells(lost), walk.shop.meant(lost))


def test_two_looks_at_once_are_not_both_counted(tmp_path, spark, monkeypatch):
    shop = Shop(tmp_path, spark)
    shop.predict("p", 0.7)
    shop.archive()
    honest = Cells.restate

    def overtaken(self, *given):
        monkeypatch.setattr(Cells, "restate", honest)
        shop.look()
        return honest(self, *given)

    monkeypatch.setattr(Cells, "restate", overtaken)
    shop.label(1, "x", True)
    shop.archive()
    with pytest.raises(HeadraceError) as refused:
        shop.look()
    assert refused.value.code == "lake-conflict"
    same(shop.cells(), shop.meant())


def test_a_window_is_restated_when_labels_come_and_what_was_said_before_stays(tmp_path, spark):
    shop = Shop(tmp_path, spark)
    shop.predict("p", 0.7)
    shop.label(0, "nobody", True)
    shop.clock.advance("2h")
    shop.archive()
    shop.look()
    shop.label(1, "p", True)
    shop.archive()
    shop.look()
    told = report(by_id, Cells(shop.config, by_id))
    assert overall(by_id, Cells(shop.config, by_id)) == {name: told[name] for name in ("known_until", "versions")}
    (window,) = told["windows"]
    assert [each["coverage"] for each in window["restatements"]] == [0.0, 1.0]
    assert (window["states"]["labelled"], window["recall"]) == (1, 1.0)
    assert window["label_delay_s"]["p50"] == pytest.approx(7_200, rel=0.02)


def test_labels_that_name_no_prediction_are_counted_until_it_comes(tmp_path, spark):
    shop = Shop(tmp_path, spark)
    shop.predict("p", 0.7)
    shop.label(1, "p", True)
    shop.label(2, "nobody", True)
    shop.clock.advance("1m")
    shop.label(3, "not-yet", False)
    shop.archive()
    shop.look()
    assert strays(spark, shop.config, by_id) == (2, ["not-yet", "nobody"])
    shop.predict("not-yet", 0.2)
    shop.archive()
    shop.look()
    assert strays(spark, shop.config, by_id) == (1, ["nobody"])


def test_nothing_new_is_nothing_written(tmp_path, spark):
    shop = Shop(tmp_path, spark)
    shop.predict("p", 0.7)
    shop.label(1, "p", True)
    shop.archive()
    shop.look()
    looks = Cells(shop.config, by_id).looks
    shop.look()
    assert Cells(shop.config, by_id).looks == looks


def test_a_label_may_name_the_key_and_the_time_of_what_was_scored(tmp_path, spark):
    shop = Shop(tmp_path, spark)
    at = BASE + MINUTE
    shop.clock.advance("1m")
    shop.predict("p1", 0.9, card="a")
    shop.predict("p2", 0.8, card="b")
    shop.label(1, "whatever", True, card="b", paid_at=at - 1_000_000)
    shop.clock.advance("1h")
    shop.archive()
    shop.look(by_key)
    (sums,) = shop.cells(by_key).values()
    assert sums.states == {"labelled": 1, "open": 1}
    assert sums.decided == {"yes/open": 1, "yes/yes": 1}


def test_a_score_that_is_no_probability_is_told_and_changes_no_figure(tmp_path, spark):
    shop = Shop(tmp_path, spark)
    shop.predict("p1", 1.5)
    shop.predict("p2", 0.5)
    shop.label(1, "p1", True)
    shop.clock.advance("1h")
    shop.archive()
    shop.look()
    same(shop.cells(), shop.meant())
    (version,) = report(by_id, Cells(shop.config, by_id))["versions"]
    assert (version["count"], version["unusable"]) == (2, 1)
