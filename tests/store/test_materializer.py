"""From the changelog into a store: batches, faults, gaps, foreign logs, and the loop that waits."""

from __future__ import annotations

import threading
import time

import msgspec
import pytest

from headrace.clock import MINUTE
from headrace.errors import HeadraceError
from headrace.log import MemoryLog, Message, Retention
from headrace.store import Materialiser, MemoryStore
from headrace.testing import FakeClock
from headrace.tiles.changelog import ProgressRow, TileRow
from headrace.tiles.changelog_format import encode
from headrace.tiles.latency import SHARES, summarize_latency

TOPIC = "changelog.cards"


def row(n, version=1):
    return TileRow("aa11", "r1", (f"k{n}",), 0, "on_time", version, max_event_time=4_000, max_arrived_at=10_000)


def put(log, *rows):
    log.append_batch(
        TOPIC, [Message(value, key) for key, value in (encode(each, ("card",)[: _width(each)]) for each in rows)]
    )


def _width(each):
    return 1 if isinstance(each, TileRow) else 0


@pytest.fixture
def log():
    log = MemoryLog()
    log.create_topic(TOPIC, compacted=True)
    return log


def test_a_step_applies_what_there_is_and_remembers_where_it_was(log):
    store = MemoryStore()
    put(log, row(1), row(2), ProgressRow("aa11", "r1", {0: 2}, 7))
    filler = Materialiser(log, store, [TOPIC], clock=FakeClock(30))
    assert (filler.step(), filler.step()) == (3, 0)
    assert store.position(TOPIC) == {0: 3}
    assert dict(filler.counts) == {"tiles": 2, "progress": 1}
    assert filler.applied_at == {TOPIC: 30}


def test_how_long_events_took_is_told_step_by_step_of_the_run_that_serves():
    log = MemoryLog(clock=FakeClock(12_000))
    log.create_topic(TOPIC, compacted=True)
    put(log, row(1), msgspec.structs.replace(row(2), run="r2", max_arrived_at=1))
    filler = Materialiser(log, MemoryStore(), [TOPIC], clock=FakeClock(15_000))
    filler.latency[TOPIC].run = "r1"
    assert filler.step() == 2
    found = summarize_latency(filler.latency.values(), 15_000)
    assert {step: {round(value) for value in each.values()} for step, each in found.items()} == {
        "happened_to_arrival": {6},
        "arrival_to_emitted": {2},
        "emitted_to_servable": {3},
        "arrival_to_servable": {5},
    }
    assert summarize_latency(filler.latency.values(), 10 * MINUTE)["arrival_to_servable"] == dict.fromkeys(SHARES)


def test_another_materialiser_goes_on_at_the_stores_position(log):
    store = MemoryStore()
    put(log, row(1))
    Materialiser(log, store, [TOPIC]).step()
    put(log, row(2))
    assert Materialiser(log, store, [TOPIC]).step() == 1


def test_a_malformed_record_is_counted_logged_and_passed(log, caplog):
    store = MemoryStore()
    log.append(TOPIC, b"{}", key=b"what")
    put(log, row(1))
    filler = Materialiser(log, store, [TOPIC])
    assert filler.step() == 2
    assert dict(filler.counts) == {"malformed": 1, "tiles": 1}
    assert store.position(TOPIC) == {0: 2}
    assert "changelog.cards/0 at 0" in caplog.text


def test_it_has_caught_up_when_it_was_once_at_the_end_of_every_topic(log):
    filler = Materialiser(log, MemoryStore(), [TOPIC, "changelog.other"])
    put(log, row(1))
    filler.step()
    assert (filler.caught_up, filler.lag()) == (False, 0)
    log.create_topic("changelog.other", compacted=True)
    filler.step()
    assert filler.caught_up
    put(log, row(2))
    assert (filler.caught_up, filler.lag()) == (True, 1)


def test_an_apply_that_fails_is_tried_again_from_the_same_record(log):
    class Failing(MemoryStore):
        broken = True

        def apply(self, rows, topic, positions):
            if self.broken and rows:
                raise OSError
            super().apply(rows, topic, positions)

    store = Failing()
    put(log, row(1))
    filler = Materialiser(log, store, [TOPIC])
    with pytest.raises(OSError):  # noqa: PT011 - any failure of a store
        filler.step()
    assert store.position(TOPIC) == {}
    store.broken = False
    assert (filler.step(), store.stats().tiles, store.position(TOPIC)) == (1, 1, {0: 1})


def test_records_that_retention_took_before_they_were_read_are_a_counted_gap(caplog):
    clock = FakeClock(0)
    log = MemoryLog(clock=clock)
    log.create_topic(TOPIC, compacted=True, retention=Retention(age=1_000_000))
    store = MemoryStore()
    put(log, row(1))
    Materialiser(log, store, [TOPIC]).step()
    put(log, row(2))
    clock.advance("10s")
    put(log, row(3))
    log.clean(TOPIC)
    filler = Materialiser(log, store, [TOPIC])
    assert (filler.step(), filler.counts["gaps"]) == (1, 1)
    assert "records 1 to 1 were removed unread" in caplog.text


def test_a_store_that_is_further_than_the_log_is_refused(log):
    store = MemoryStore()
    store.apply([], TOPIC, {0: 5})
    with pytest.raises(HeadraceError) as refused:
        Materialiser(log, store, [TOPIC]).step()
    assert refused.value.code == "store-ahead"


def test_the_loop_folds_what_comes_and_stops_when_told():
    log, store, stop = MemoryLog(), MemoryStore(), threading.Event()
    thread = threading.Thread(target=Materialiser(log, store, [TOPIC]).run, args=(stop,))
    thread.start()
    try:
        log.create_topic(TOPIC, compacted=True)
        put(log, row(1))
        deadline = time.monotonic() + 10
        while not store.stats().tiles and time.monotonic() < deadline:
            log.wait({TOPIC: {0: 1}}, 0.01)
        assert store.stats().tiles == 1
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()
