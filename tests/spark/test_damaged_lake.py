"""A commit of the lake that was cut off: what needs it waits and says why, and nothing else notices."""

from __future__ import annotations

import shutil

import pytest

from headrace.errors import HeadraceError
from headrace.lake.layout import BRONZE
from headrace.spark.archive import component
from headrace.spark.late.component import has_passed, publish_once
from headrace.status.records import LaneStatus, LateStatus
from tests.spark.lake_shop import PLAN, Shop


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("filled")
    Shop(folder).fill()
    return folder


@pytest.fixture
def shop(filled, tmp_path):
    shutil.copytree(filled, tmp_path / "shop")
    return Shop(tmp_path / "shop")


@pytest.fixture
def cut_off(shop):
    """The newest commit of payments, of which half is missing, and what it was."""
    commit, whole = shop.newest(), shop.newest().read_bytes()
    commit.write_bytes(whole[: len(whole) // 2])
    return commit, whole


def test_a_late_lane_waits_says_why_and_goes_on_when_its_lake_is_mended(shop, cut_off):
    lanes = shop.lanes()
    for _ in range(2):
        lanes.step()
        shop.clock.advance("1m")
    said = shop.late_status(lanes)
    orders, payments = (said.lanes[f"{name}.by_card"]["1"] for name in ("orders", "payments"))
    assert (orders.passes, orders.error, payments.passes) == (2, None, 0)
    (alarm,) = said.alarms
    assert alarm.says.startswith("The late lane of payments.by_card, run 1, waits: The lake's table payments/silver")
    assert (alarm.kind, alarm.stream, alarm.since) == ("waits", "payments", "2026-01-01T00:00:00Z")
    assert str(shop.config.root) not in str(said)
    cut_off[0].write_bytes(cut_off[1])
    lanes.step()
    said = shop.late_status(lanes)
    assert (said.alarms, said.lanes["payments.by_card"]["1"].passes) == ([], 1)
    lanes.stop()


@pytest.mark.parametrize("ahead", [0, 1], ids=["a commit that was read", "the next commit"])
def test_a_lake_that_is_cut_off_while_its_components_run_is_waited_for_too(shop, ahead, monkeypatch):
    lanes, archive = shop.lanes(), shop.archiving()
    lanes.step()
    archive.step()
    commit, whole = shop.newest(), shop.newest().read_bytes()
    commit.with_name(f"{int(commit.stem) + ahead:020}.json").write_bytes(whole[:40])
    lanes.step()
    archive.step()
    archive.publish_status()
    assert len(shop.late_status(lanes).alarms) == 1
    assert len(shop.archive_status(archive).alarms) == (1 - ahead), "it looks at the next commit when it adds one"
    lanes.stop()
    archive.stop()


def test_a_run_that_follows_waits_for_a_lane_whose_lake_cannot_be_used(shop, cut_off):
    orders, payments = PLAN.tile_sets
    assert has_passed(LateStatus(), shop.config, payments, "2") is False
    assert has_passed(LateStatus(lanes={payments.id: {"2": LaneStatus(passes=1)}}), shop.config, payments, "2") is True
    assert has_passed(LateStatus(), shop.config, orders, "2") is False


def test_publishing_once_fails_with_what_is_wrong(shop, cut_off):
    with pytest.raises(HeadraceError) as caught:
        publish_once(PLAN, shop.config, None, shop.clock)
    assert (caught.value.code, caught.value.http_status) == ("lake-failed", 503)
    assert caught.value.where == str(cut_off[0].parents[1])


def test_the_archive_of_another_stream_goes_on_and_this_one_when_its_lake_is_mended(shop, cut_off, monkeypatch):
    monkeypatch.setattr(component, "AGAIN", 0.0)
    archive = shop.archiving()
    shop.clock.advance("1s")
    archive.step()
    said = shop.archive_status(archive)
    assert list(archive.archives) == ["orders"]
    assert [alarm.says[:32] for alarm in said.alarms] == ["The archive of payments waits: T"]
    cut_off[0].write_bytes(cut_off[1])
    shop.clock.advance("1s")
    archive.step()
    said = shop.archive_status(archive)
    assert (sorted(archive.archives), said.alarms) == (["orders", "payments"], [])
    assert said.streams["payments"].archived == 3
    archive.stop()


def test_a_stream_whose_lake_breaks_stays_as_it_was_told_last(shop, monkeypatch):
    monkeypatch.setattr(component, "AGAIN", 0.0)
    archive = shop.archiving()
    before = shop.archive_status(archive).streams
    monkeypatch.setattr(type(archive.archives["payments"]), "step", _fail)
    shop.clock.advance("1s")
    archive.step()
    said = shop.archive_status(archive)
    assert (said.streams, len(said.alarms)) == (before, 2)
    archive.stop()


def test_a_lake_that_breaks_before_a_stream_is_told_of_is_waited_for_too(shop):
    archive = shop.archiving()
    before = shop.archive_status(archive).streams
    shop.newest(BRONZE).write_bytes(b"{")
    archive.publish_status()
    said = shop.archive_status(archive)
    assert (said.streams, len(said.alarms)) == (before, 1)
    archive.stop()


def _fail(*_):
    raise HeadraceError("lake-failed", "The lake's table cannot be used.")
