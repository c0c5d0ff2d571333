"""The bounds of a buffer: what is under way counts towards them, and what is in the log does not."""

from __future__ import annotations

import threading

import pytest

from headrace.clock import SECOND
from headrace.errors import HeadraceError
from headrace.ingest.send.buffer import Buffer, BufferBounds
from headrace.log import MemoryLog, Message


@pytest.fixture
def log():
    log = MemoryLog()
    log.create_topic("clicks")
    return log


def test_an_event_that_is_in_the_log_makes_room_for_the_next(log):
    buffer = Buffer(lambda messages: log.append_batch("clicks", messages), BufferBounds(0, 100, 2, 10**6, SECOND))
    for number in range(5):
        assert buffer.put(Message(b"{}")).result(timeout=10).offset == number
    buffer.close(timeout=10)


def test_the_bound_in_bytes_counts_the_event_that_asks_for_room(log):
    opened = threading.Event()

    def append(messages):
        opened.wait(10)
        return log.append_batch("clicks", messages)

    buffer = Buffer(append, BufferBounds(0, 100, 1_000, 150, SECOND // 20))
    first = buffer.put(Message(b"x" * 100))
    with pytest.raises(HeadraceError) as caught:
        buffer.put(Message(b"y" * 100))
    assert caught.value.code == "buffer-full"
    opened.set()
    assert first.result(timeout=10).offset == 0
    assert buffer.put(Message(b"y" * 100)).result(timeout=10).offset == 1
    buffer.close(timeout=10)
