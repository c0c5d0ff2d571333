"""What the benchmark of serving stands on: a client that keeps to its schedule, keys that are read like real ones."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import Counter

import numpy as np
import pytest

from bench.serving.content import A, B, Content, Tile, card, content, messages, parts, shop
from bench.serving.open_loop import Asked, Client, Request, Schedule, whole
from bench.serving.reads import batches, singles, told
from bench.serving.saturate import per_s
from bench.serving.visible import latencies
from headrace.clock import SystemClock
from headrace.read.reader import Reader
from headrace.store import MemoryStore
from headrace.tiles.changelog import ProgressRow, TileRow
from headrace.tiles.changelog_format import decode

SECOND, MS = 10**9, 10**6
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


@contextlib.contextmanager
def server(answer):
    """A server of one connection at a time in a thread; `answer(number)` gives the bytes of each answer, or None."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run():
        number = 0
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                while connection.recv(65_536):
                    number += 1
                    said = answer(number)
                    if said is None:
                        break
                    connection.sendall(said)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def asked(answer, schedule):
    with server(answer) as port:
        client = Client(port, [Request("/x").raw], schedule)
        client.run()
        return client


def test_a_stall_of_the_server_counts_for_every_request_that_was_due_meanwhile():
    stall = 0.3

    def answer(number):
        if number == 20:
            time.sleep(stall)
        return ANSWER

    client = asked(answer, Schedule(rate=200, seconds=0.5, warm=0.0, connections=1))
    slow = client.took > stall / 2
    # A client that waits for its answers would have met the stall once.
    assert stall * 200 / 2 - 5 <= slow.sum() <= stall * 200
    assert client.failed == 0
    assert np.all(client.took > 0)


def test_a_request_that_had_to_wait_for_a_connection_was_sent_late():
    def answer(number):
        if number == 1:
            time.sleep(0.1)
        return ANSWER

    client = asked(answer, Schedule(rate=100, seconds=0.1, warm=0.0, connections=1))
    assert client.waited[1] > 0.05
    assert np.all(client.took >= client.waited)


def test_a_connection_that_the_server_ends_is_a_failure_and_the_schedule_goes_on():
    client = asked(
        lambda number: None if number == 5 else ANSWER, Schedule(rate=500, seconds=0.05, warm=0.0, connections=1)
    )
    assert client.failed == 1
    assert np.all(client.took > 0)


def test_an_answer_that_is_not_200_is_a_failure():
    refused = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
    client = asked(lambda _: refused, Schedule(rate=500, seconds=0.02, warm=0.0, connections=1))
    assert client.failed == 10


def test_an_answer_is_whole_when_as_much_has_come_as_it_says():
    assert [whole(bytearray(ANSWER[:end])) for end in (10, len(ANSWER) - 1, len(ANSWER))] == [False, False, True]
    with pytest.raises(RuntimeError, match="does not say how long"):
        whole(bytearray(b"HTTP/1.1 200 OK\r\n\r\n{}"))


def test_a_body_makes_a_request_a_post_that_says_its_length_in_bytes():
    assert b"GET /v1/features/cards/card-7 HTTP/1.1\r\n" in singles([card(7)])[0].raw
    head, _, body = Request("/x", '{"é":1}').raw.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /x HTTP/1.1\r\n")
    assert b"Content-Length: 8" in head
    assert len(body) == 8
    assert [len(each.body.split("card-")) - 1 for each in batches([card(n) for n in range(5)], each=2)] == [2, 2, 1]


def test_what_wrk_counted_is_told_and_many_failures_are_refused():
    assert per_s("x\ncounted 3000 2000000 3\n") == 1500
    with pytest.raises(RuntimeError, match="4 of 3000 requests failed"):
        per_s("counted 3000 2000000 4\n")
    with pytest.raises(RuntimeError, match="did not count"):
        per_s("unable to connect")


@pytest.fixture
def seen(tmp_path):
    """Events sent each second from second 0 on, at offsets from 100 on."""
    np.savez(tmp_path / "sent.npz", first=100, moments=np.arange(4) * SECOND, copies=0)

    def found(*rows, begin=0):
        np.save(tmp_path / "seen.npy", np.array(rows, dtype=np.int64).reshape(-1, 2))
        return list(latencies(tmp_path / "sent.npz", tmp_path / "seen.npy", begin))

    return found


def test_an_event_is_servable_when_the_store_first_says_that_its_offset_is_included(seen):
    assert seen((101, 5 * MS), (103, 2 * SECOND + MS), (200, 3 * SECOND + 9 * MS)) == [5, 1001, 1, 9]


def test_events_of_the_warm_up_do_not_count(seen):
    assert seen((102, SECOND + MS), (104, 3 * SECOND + 9 * MS), begin=2 * SECOND) == [1009, 9]


def test_an_event_that_never_became_servable_is_not_passed_over(seen):
    with pytest.raises(RuntimeError, match="1 of 4 events never"):
        seen((103, 9 * SECOND))


def test_keys_are_asked_for_in_proportion_to_their_tiles():
    tile = Tile(0, 0, 1, b"{}")
    held = Content(10, [[tile], [tile] * 9])
    counts = Counter(int(each.partition("-")[2]) % 2 for each in held.asked(2_000))
    assert held.rows == 50
    assert counts[1] / 2_000 == pytest.approx(0.9, abs=0.05)
    assert set(held.asked(2_000)) == {card(number) for number in range(10)}


@pytest.mark.parametrize("mix", [A, B], ids=lambda mix: mix.name)
def test_a_key_that_is_a_copy_is_read_like_any(tmp_path, mix):
    made = shop(tmp_path, mix)
    plan, held = made.plan(), content(made, mix, 12, templates=5)
    (tile_set,) = plan.tile_sets
    rows = [decode(each.key, each.value) for each in messages(tile_set, held)]
    starts = [row.tile for row in rows if isinstance(row, TileRow)]
    assert len(starts) == held.rows
    assert starts == sorted(starts)
    store, now = MemoryStore(), SystemClock().now()
    reader = Reader(plan, store)
    store.apply([*rows, ProgressRow(tile_set.fingerprint, "1", {0: 1}, now)], "changelog", {0: 1})
    for number in range(12):
        values = reader.read("cards", (card(number),), now).values
        assert len(values) == 20
        counts = [value for name, value in values.items() if name.startswith("count_")]
        assert max(counts) == sum(tile.events for tile in held.templates[number % 5])


def test_the_rows_of_the_changelog_say_what_a_pipeline_says(tmp_path):
    made = shop(tmp_path, A)
    (tile_set,) = made.plan().tile_sets
    before, after, value = parts(tile_set, Tile(10_000_000, 12_000_000, 3, b'{"x":1}'))
    row = decode(before + b"card-7" + after, value)
    assert (row.key, row.version, row.partials) == (("card-7",), 3, b'{"x":1}')
    assert (row.max_event_time, row.max_arrived_at) == (12_000_000, 12_001_000)


def test_rounds_become_percentiles_and_the_share_that_the_client_sent_late():
    rounds = [Asked(np.arange(101) / 100, failed=0, late_share=0.25)]
    made = {result.name: (result.value, result.target) for result in told("A.read.1k", rounds, {99: 1.5})}
    assert made == {
        "A.read.1k.p50_ms": (0.5, None),
        "A.read.1k.p99_ms": (0.99, 1.5),
        "A.read.1k.sent_late_share": (0.25, None),
    }
