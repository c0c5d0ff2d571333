"""Looks at a lake that fills: every one says what a plain reading of everything says."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from headrace.clock import MINUTE
from headrace.errors import HeadraceError
from headrace.evaluate import looks
from headrace.evaluate.cells import Cells
from headrace.evaluate.passes import strays
from headrace.evaluate.report import overall, report
from headrace.truth.sums import Sums
from tests.evaluate.shop import Shop, busy, by_id, by_key, lost
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


@pytest.mark.parametrize(("seed", "partitions"), [(1, 1), (2, 3)])
def test_every_look_says_what_a_plain_reading_says(tmp_path, spark, seed, partitions):
    shop = Shop(tmp_path, spark, partitions)
    for _ in busy(shop, seed, minutes=400):
        shop.archive()
        found = shop.look()
        assert found.known_until == shop.clock.now()
        same(shop.cells(), shop.meant())
    whole = [sums for cell, sums in shop.cells().items() if not cell.segment]
    assert sum(sums.count for sums in whole) == len(shop.predictions)
    assert all("open" not in sums.states for sums in whole)
    assert {state for sums in whole for state in sums.states} >= {"labelled", "defaulted"}


def test_one_look_in_the_end_says_the_same_as_many(tmp_path, spark):
    often, once = Shop(tmp_path / "often", spark), Shop(tmp_path / "once", spark)
    for _ in busy(often, 3, minutes=300):
        often.archive()
        often.look()
    for _ in busy(once, 3, minutes=300):
        once.archive()
    once.look()
    same(once.cells(), often.cells())


def test_a_look_that_is_killed_leaves_nothing_and_the_next_one_has_it_all(tmp_path, spark, monkeypatch):
    shop = Shop(tmp_path, spark)
    for at, _ in enumerate(busy(shop, 4, minutes=300)):
        shop.archive()
        with monkeypatch.context() as broken:
            if at % 2:
                broken.setattr(Cells, "restate", _killed)
                with pytest.raises(KeyboardInterrupt):
                    shop.look()
                continue
            shop.look()
    shop.look()
    same(shop.cells(), shop.meant())


def _killed(*_):
    raise KeyboardInterrupt


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


def test_many_looks_are_tidied_and_say_the_same(tmp_path, spark, monkeypatch):
    monkeypatch.setattr(looks, "TIDIED", 2)
    shop = Shop(tmp_path, spark)
    for _ in busy(shop, 6, minutes=300):
        shop.archive()
        shop.look()
        same(shop.cells(), shop.meant())
    cells = Cells(shop.config, by_id)
    assert cells.looks >= 2
    assert len(DeltaTable(cells._looks.uri).file_uris()) < cells.looks
    said = report(by_id, cells)["windows"]
    assert max(len(each["restatements"]) for each in said) > 1


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


def test_labels_that_are_numbers_give_errors(tmp_path, spark):
    shop = Shop(tmp_path, spark)
    for _ in busy(shop, 5, minutes=200):
        shop.archive()
        shop.look(lost)
    same(shop.cells(lost), shop.meant(lost))


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
