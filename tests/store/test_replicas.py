"""Two replicas that fill one Redis: whatever happens between their steps, it is the fold of what lies before it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from headrace.log import MemoryLog, Message
from headrace.store import Materialiser, RedisStore, materializer
from headrace.tiles.changelog import TileRow
from headrace.tiles.changelog_format import decode, encode
from tests.budget import examples
from tests.store.rows import TOPIC, contents, fold, rows

PARTITIONS = 2


class Interrupted(RedisStore):
    """A store in which something else happens between reading the log and applying what was read."""

    between: Callable[[], object] = staticmethod(lambda: None)

    def apply(self, rows, topic, positions):
        self.between()
        super().apply(rows, topic, positions)


def put(log, given_rows):
    pairs = (encode(each, tuple("ab"[: len(getattr(each, "key", ()))])) for each in given_rows)
    log.append_batch(TOPIC, [Message(value, key) for key, value in pairs])


def before(log, positions):
    """The rows that lie before the positions; what belongs together lies in one partition."""
    return [
        decode(record.key, record.value)
        for partition, end in positions.items()
        for record in log.read(TOPIC, partition, 0, limit=10_000)
        if record.offset < end
    ]


numbers = itertools.count()
actions = st.lists(st.tuples(st.sampled_from(["one", "other", "other inside one"]), rows, rows), max_size=6)


@examples(1 / 2, quiet=[HealthCheck.function_scoped_fixture])
@given(steps=actions, batch=st.integers(1, 8))
def test_the_store_is_at_every_moment_the_fold_up_to_its_position(redis_server, monkeypatch, steps, batch):
    monkeypatch.setattr(materializer, "BATCH", batch)
    log = MemoryLog()
    log.create_topic(TOPIC, partitions=PARTITIONS, compacted=True)
    name = f"replicas-{next(numbers)}"
    with Interrupted(redis_server.url, namespace=name) as one, RedisStore(redis_server.url, namespace=name) as other:
        first, second = Materialiser(log, one, [TOPIC]), Materialiser(log, other, [TOPIC])
        reached = 0

        def check():
            nonlocal reached
            with RedisStore(redis_server.url, namespace=name) as looking:
                at = looking.position(TOPIC)
                assert contents(looking) == fold(before(log, at))
                assert sum(at.values()) >= reached, "it went back"
                reached = sum(at.values())

        def meanwhile(more):
            put(log, more)
            second.step()
            check()

        for what, now, later in steps:
            put(log, now)
            one.between = partial(meanwhile, later) if what == "other inside one" else lambda: None
            (second if what == "other" else first).step()
            check()
        one.between = lambda: None
        while first.step():
            check()
        assert one.position(TOPIC) == log.end_offsets(TOPIC) or not one.position(TOPIC)


def test_the_one_that_was_second_drops_its_batch_and_goes_on(redis_server, namespace):
    log = MemoryLog()
    log.create_topic(TOPIC, compacted=True)
    row = TileRow("aa11", "r1", ("42",), 0, "on_time", 1)
    put(log, [row])
    with (
        Interrupted(redis_server.url, namespace=namespace) as one,
        RedisStore(redis_server.url, namespace=namespace) as other,
    ):
        first, second = Materialiser(log, one, [TOPIC]), Materialiser(log, other, [TOPIC])
        one.between = second.step
        assert first.step() == 1
        assert (first.counts["tiles"], second.counts["tiles"]) == (0, 1)
        assert (first.step(), first.caught_up, first.lag()) == (0, True, 0)


def test_any_other_failure_of_a_store_still_ends_the_run(redis_server, namespace):
    log = MemoryLog()
    log.create_topic(TOPIC, compacted=True)
    put(log, [TileRow("aa11", "r1", ("42",), 0, "on_time", 1)])
    with Interrupted(redis_server.url, namespace=namespace) as store:

        def fail():
            raise OSError

        store.between = fail
        with pytest.raises(OSError):  # noqa: PT011 - any failure of a store
            Materialiser(log, store, [TOPIC]).step()
