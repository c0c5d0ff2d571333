"""Some work, some wait, the rest come back later; and nothing takes longer than it may."""

from __future__ import annotations

import asyncio
import threading

import pytest

from headrace.config.serve_settings import ServeSettings
from headrace.errors import DataError
from headrace.serve.event_intake import Intake
from headrace.serve.limits import BusyError
from headrace.serve.request_queue import Gate, done_within, sent_within
from tests.serve.conftest import World
from tests.serve.test_app import EVENT, error_of


def test_so_many_work_so_many_wait_in_order_and_one_more_is_sent_away():
    async def many():
        gate, order, go = Gate(2, 2, 30.0), [], asyncio.Event()

        async def one(number):
            async with gate.slot():
                order.append(number)
                await go.wait()

        tasks = [asyncio.create_task(one(number)) for number in range(5)]
        for _ in range(3):
            await asyncio.sleep(0)
        assert (order, gate.working, gate.waiting, gate.rejected) == ([0, 1], 2, 2, 1)
        go.set()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert order == [0, 1, 2, 3]
        assert (gate.working, gate.waiting) == (0, 0)
        return done[4]

    refused = asyncio.run(many())
    assert isinstance(refused, BusyError)
    assert (refused.status, refused.seconds, refused.error.code) == (503, 1, "too-busy")


def test_a_wait_that_takes_too_long_ends_and_leaves_its_place():
    async def waited():
        gate, go = Gate(1, 5, 0.01), asyncio.Event()

        async def one():
            async with gate.slot():
                await go.wait()

        first = asyncio.create_task(one())
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="too long"):
            await one()
        assert (gate.working, gate.waiting) == (1, 0)
        go.set()
        await first
        assert gate.working == 0

    asyncio.run(waited())


async def three_in_line(gate, go):
    """One that works until it may go, and two that wait for its slot."""

    async def one():
        async with gate.slot():
            await go.wait()

    tasks = [asyncio.create_task(one()) for _ in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


def test_one_that_goes_away_while_it_waits_costs_nobody_a_slot():
    async def left():
        gate, go = Gate(1, 5, 30.0), asyncio.Event()
        tasks = await three_in_line(gate, go)
        tasks[1].cancel()
        go.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (gate.working, gate.waiting) == (0, 0)

    asyncio.run(left())


def test_one_that_goes_away_as_its_turn_comes_hands_it_on():
    async def left():
        gate, go = Gate(1, 5, 30.0), asyncio.Event()
        tasks = await three_in_line(gate, go)
        gate._next()  # the slot of the first goes to the second, which is cancelled before it knows
        tasks[1].cancel()
        gate.working += 1  # and the first will give back what it no longer has
        go.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (gate.working, gate.waiting) == (0, 0)

    asyncio.run(left())


def test_what_is_not_sent_in_time_is_refused():
    async def never():
        await asyncio.Event().wait()

    with pytest.raises(DataError, match=r"not sent within 0\.01 s"):
        asyncio.run(sent_within(never(), 0.01))


def test_work_that_takes_too_long_goes_on_and_its_caller_is_told():
    async def slow():
        done, go = [], asyncio.Event()

        async def work():
            await go.wait()
            done.append(1)
            raise ValueError

        with pytest.raises(BusyError, match="not answered within"):
            await done_within(work, 0.01)
        go.set()
        await asyncio.sleep(0.01)
        return done

    assert asyncio.run(slow()) == [1]


def test_an_append_that_hangs_is_answered_and_holds_its_slot(monkeypatch):
    world, go = World(ServeSettings(timeout=0.05, concurrency=1, queue=0)), threading.Event()
    monkeypatch.setattr(Intake, "take", lambda *_, **__: go.wait(30) and [])

    async def asked():
        import httpx

        transport = httpx.ASGITransport(world.serving.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            first = await client.post("/v1/events/clicks", json=EVENT)
            second = await client.post("/v1/events/clicks", json=EVENT)
            go.set()
            return first, second

    first, second = asyncio.run(asked())
    assert (first.status_code, error_of(first)["code"]) == (503, "too-slow")
    assert "count once" in error_of(first)["hint"]
    assert (second.status_code, error_of(second)["code"]) == (503, "too-busy")
