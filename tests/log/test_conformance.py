"""What `Log` promises, tried on every log.

What a log does when it is told to clean, and with a clock that goes back, is tried where that can be told: on the local
logs. What Kafka's brokers do in their own time is tried in `test_kafka`.
"""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.clock import SECOND
from headrace.errors import HeadraceError
from headrace.log import Message, Position, Record, Retention, follow
from headrace.log import record as record_module
from headrace.log.partitioner import partition_of
from headrace.log.read_slice import bounded
from tests.log.conftest import START

some_bytes = st.none() | st.binary(max_size=20)
names = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=5)
headers = st.lists(st.tuples(names, st.binary(max_size=5)), max_size=3).map(tuple)
messages = st.builds(Message, some_bytes, some_bytes, headers)


def all_records(log, topic="t", limit=1000) -> list[Record]:
    return [
        record for records in follow(log, topic, log.start_offsets(topic), limit=limit, idle=0) for record in records
    ]


def values(records) -> list[bytes | None]:
    return [record.value for record in records]


def refusal(action) -> str:
    with pytest.raises(HeadraceError) as caught:
        action()
    return caught.value.code


# topics


def test_a_topic_is_created_once(log):
    made = log.create_topic("payments", partitions=3)
    assert log.create_topic("payments", partitions=3) == made
    assert log.topics() == {"payments": made}


def test_creating_a_topic_again_keeps_its_records(log):
    log.create_topic("t")
    log.append("t", b"1")
    log.create_topic("t")
    assert values(all_records(log)) == [b"1"]


def test_another_number_of_partitions_is_refused(log):
    log.create_topic("t", partitions=2)
    assert refusal(lambda: log.create_topic("t", partitions=3)) == "topic-mismatch"


def test_another_compaction_is_refused(log):
    log.create_topic("t", compacted=True)
    assert refusal(lambda: log.create_topic("t", compacted=False)) == "topic-mismatch"


def test_a_new_retention_replaces_the_old_one(log):
    log.create_topic("t")
    log.create_topic("t", retention=Retention(age=5 * SECOND))
    assert log.topics()["t"].retention == Retention(age=5 * SECOND)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "x" * 201, ".hidden", None])
def test_a_name_that_is_no_file_name_is_refused(log, name):
    assert refusal(lambda: log.create_topic(name)) == "bad-name"


@pytest.mark.parametrize("partitions", [0, -1, 1025, 1.5, True])
def test_a_number_of_partitions_that_makes_no_sense_is_refused(log, partitions):
    assert refusal(lambda: log.create_topic("t", partitions=partitions)) == "bad-argument"


def test_a_compacted_topic_bounded_by_size_is_refused(log):
    assert refusal(lambda: log.create_topic("t", compacted=True, retention=Retention(size=5))) == "bad-argument"


def test_an_unknown_topic_is_refused_with_the_closest_name(log):
    log.create_topic("payments")
    with pytest.raises(HeadraceError) as caught:
        log.append("payment", b"")
    assert (caught.value.code, caught.value.hint) == ("unknown-topic", "Did you mean 'payments'?")


@pytest.mark.parametrize("partition", [-1, 2, True])
def test_an_unknown_partition_is_refused(log, partition):
    log.create_topic("t", partitions=2)
    assert refusal(lambda: log.append("t", b"", partition=partition)) == "unknown-partition"
    assert refusal(lambda: log.read("t", partition, 0)) == "unknown-partition"
    assert refusal(lambda: log.commit("g", "t", {partition: 0})) == "unknown-partition"


# appending


@pytest.mark.generated
def test_what_goes_in_comes_out_where_the_log_said(fresh):
    @given(batches=st.lists(st.lists(messages, max_size=8), max_size=6), limit=st.integers(1, 5))
    def holds(batches, limit):
        log, clock = fresh()
        with closing(log):
            log.create_topic("t", partitions=3)
            expected: dict[Position, tuple[Message, int, int]] = {}
            for batch in batches:
                clock.tick(1)
                before = clock.now()
                positions = log.append_batch("t", batch)
                for position, message in zip(positions, batch, strict=True):
                    assert position not in expected
                    expected[position] = (message, before, clock.now())
            found = {Position(r.partition, r.offset): r for r in all_records(log, limit=limit)}
            assert found.keys() == expected.keys()
            for position, (message, before, after) in expected.items():
                record = found[position]
                assert Message(record.value, record.key, record.headers) == message
                assert before <= record.arrived_at <= after
            ends = log.end_offsets("t")
            assert sorted(expected) == [(partition, offset) for partition in ends for offset in range(ends[partition])]

    fresh.holds(holds)


def test_an_append_says_where_it_went(log):
    log.create_topic("t", partitions=2)
    log.append("t", b"0", partition=1)
    assert log.append("t", b"1", partition=1) == Position(1, 1)


def test_a_large_batch_comes_back_whole_and_in_order(log):
    log.create_topic("t")
    batch = [Message(b"%d" % i + b"x" * (i % 300)) for i in range(10_000)]
    log.append_batch("t", batch)
    assert values(all_records(log)) == [message.value for message in batch]


def test_batches_that_are_begun_are_in_order_and_safe_when_their_places_are_told(log):
    log.create_topic("t")
    begun = [log.begin_batch("t", [Message(f"{batch}.{n}".encode()) for n in range(3)]) for batch in range(20)]
    places = [each.positions() for each in begun]
    assert all(each.over for each in begun)
    assert places == [[Position(0, batch * 3 + n) for n in range(3)] for batch in range(20)]
    assert values(all_records(log)) == [f"{batch}.{n}".encode() for batch in range(20) for n in range(3)]


def test_a_batch_that_cannot_be_begun_is_refused(log):
    log.create_topic("t")
    assert refusal(lambda: log.begin_batch("u", [Message(b"1")])) == refusal(lambda: log.append("u", b"1"))
    assert log.begin_batch("t", []).positions() == []


def test_an_empty_batch_adds_nothing(log):
    log.create_topic("t")
    assert log.append_batch("t", []) == []
    assert log.end_offsets("t") == {0: 0}


def test_arrival_is_the_logs_clock(log, clock):
    log.create_topic("t")
    times = []
    for value in (b"1", b"2"):
        before = clock.now()
        log.append("t", value)
        times.append((before, clock.now()))
        clock.tick(7)
    found = [record.arrived_at for record in all_records(log)]
    assert [before <= at <= after for at, (before, after) in zip(found, times, strict=True)] == [True, True]
    assert found[1] - found[0] >= 7 * clock.unit


def test_arrival_never_goes_back_when_the_clock_does(local_log, hand_clock):
    local_log.create_topic("t")
    local_log.append("t", b"1")
    hand_clock.time -= SECOND
    local_log.append("t", b"2")
    assert [record.arrived_at for record in all_records(local_log)] == [START, START]


def test_a_key_lives_in_the_partition_kafka_would_give_it(log):
    log.create_topic("t", partitions=7)
    keys = [b"key-%d" % i for i in range(50)]
    positions = log.append_batch("t", [Message(b"", key=key) for key in keys])
    assert [position.partition for position in positions] == [partition_of(key, 7) for key in keys]


def test_batches_without_keys_stay_together_and_spread_over_partitions(log):
    log.create_topic("t", partitions=3)
    batches = [log.append_batch("t", [Message(b"1"), Message(b"2")]) for _ in range(3)]
    assert [len({position.partition for position in batch}) for batch in batches] == [1, 1, 1]
    assert {position.partition for batch in batches for position in batch} == {0, 1, 2}


not_bytes: list[dict[str, Any]] = [
    {"value": "text"},
    {"value": b"", "key": "text"},
    {"value": b"", "headers": (("a", "text"),)},
    {"value": b"", "headers": ((b"a", b""),)},
    {"value": b"", "headers": (("a\0b", b""),)},
]


@pytest.mark.parametrize("bad", not_bytes)
def test_a_batch_with_a_message_that_is_not_bytes_is_refused_whole(log, bad):
    log.create_topic("t")
    assert refusal(lambda: log.append_batch("t", [Message(b"good"), Message(**bad)])) == "bad-message"
    assert log.end_offsets("t") == {0: 0}


def test_a_message_that_is_too_large_is_refused(log, monkeypatch):
    monkeypatch.setattr(record_module, "LARGEST_MESSAGE", 10)
    log.create_topic("t")
    log.append("t", b"12345", key=b"123", headers=(("1", b"2"),))
    assert refusal(lambda: log.append("t", b"12345", key=b"123", headers=(("1", b"23"),))) == "bad-message"


def test_a_compacted_topic_refuses_a_message_without_a_key(log):
    log.create_topic("t", compacted=True)
    assert refusal(lambda: log.append("t", b"1")) == "bad-message"


# reading


def test_a_read_starts_at_its_offset_and_ends_at_its_limit(log):
    log.create_topic("t")
    log.append_batch("t", [Message(b"%d" % i) for i in range(10)])
    assert values(log.read("t", 0, 3, limit=4)) == [b"3", b"4", b"5", b"6"]


def test_a_look_gives_what_a_read_would_and_disturbs_no_reader(log):
    log.create_topic("t")
    log.append_batch("t", [Message(b"%d" % i) for i in range(10)])
    assert values(log.read("t", 0, 0, limit=3)) == [b"0", b"1", b"2"]
    for _ in range(2):
        assert values(log.peek("t", 0, 8)) == [b"8"]
        assert values(log.peek("t", 0, 3, limit=20)) == [b"%d" % i for i in range(3, 10)]
        assert log.peek("t", 0, 10) == []
    assert refusal(lambda: log.peek("t", 0, 11)) == "offset-out-of-range"
    assert values(log.read("t", 0, 3, limit=2)) == [b"3", b"4"]


def test_a_read_is_bounded_in_bytes_but_gives_at_least_one_record(log):
    log.create_topic("t")
    for value in (b"a" * 100, b"b" * 100, b"c" * 100):
        log.append("t", value)
    assert len(log.read("t", 0, 0, max_bytes=1)) == 1
    assert len(log.read("t", 0, 0, max_bytes=250)) == 2


def test_a_read_at_the_end_is_empty(log):
    log.create_topic("t")
    log.append("t", b"1")
    assert log.read("t", 0, 1) == []


@pytest.mark.parametrize("offset", [-1, 2])
def test_a_position_that_is_not_in_the_log_is_refused(log, offset):
    log.create_topic("t")
    log.append("t", b"1")
    assert refusal(lambda: log.read("t", 0, offset)) == "offset-out-of-range"


def test_a_limit_of_nothing_is_refused(log):
    log.create_topic("t")
    assert refusal(lambda: log.read("t", 0, 0, limit=0)) == "bad-argument"


@pytest.mark.generated
def test_a_time_is_found_where_the_first_record_at_or_after_it_is(fresh):
    @given(steps=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=20))
    def holds(steps):
        log, clock = fresh()
        with closing(log):
            log.create_topic("t", partitions=2)
            for number, (wait, count) in enumerate(steps):
                clock.tick(wait)
                log.append_batch("t", [Message(b"")] * count, partition=number % 2)
            records, ends = all_records(log), log.end_offsets("t")
            stamps = {record.arrived_at for record in records} | {START}
            for time in sorted({stamp + near for stamp in stamps for near in (-1, 0, 1)}):
                expected = {
                    partition: min(
                        (r.offset for r in records if r.partition == partition and r.arrived_at >= time), default=end
                    )
                    for partition, end in ends.items()
                }
                assert log.offset_at("t", time) == expected

    fresh.holds(holds)


# tailing


def test_following_wakes_up_for_a_record_that_was_not_there(log):
    log.create_topic("t", partitions=2)
    records = follow(log, "t", {0: 0, 1: 0}, idle=30)
    writer = threading.Timer(0.05, lambda: log.append("t", b"late", partition=1))
    writer.start()
    assert values(next(records)) == [b"late"]
    writer.join()


def test_following_ends_when_told_to(log):
    log.create_topic("t")
    log.append("t", b"1")
    told = threading.Event()
    seen = []
    for records in follow(log, "t", {0: 0}, stop=told.is_set):
        seen += values(records)
        told.set()
    assert seen == [b"1"]


def test_waiting_ends_at_once_when_there_is_something_and_after_the_timeout_when_not(log):
    log.create_topic("t")
    log.append("t", b"1")
    assert log.wait({"t": {0: 0}}, 30.0) == {"t": {0: 0}}
    assert log.wait({"t": {0: 1}}, 0.01) == {}


def test_waiting_on_several_topics_ends_when_one_of_them_has_something(log):
    for topic in ("quiet", "busy"):
        log.create_topic(topic)
        log.append(topic, b"1")
    late = threading.Timer(0.2, lambda: log.append("busy", b"2"))
    late.start()
    assert log.wait({"quiet": {0: 1}, "busy": {0: 1}}, 30.0) == {"busy": {0: 1}}
    late.join()
    assert log.wait({"quiet": {0: 1}, "busy": {0: 2}}, 0.01) == {}


def test_what_came_to_several_partitions_at_once_is_read_as_a_whole_after_waiting(log):
    log.create_topic("t", partitions=3)
    for number in range(6):
        log.append_batch("t", [Message(b"%d" % number)], partition=number % 2)
    come = log.wait({"t": {0: 0, 1: 0, 2: 0}}, 30.0)["t"]
    assert come
    assert come.keys() <= {0, 1}
    assert [values(log.read("t", number, 0)) for number in (0, 1)] == [[b"0", b"2", b"4"], [b"1", b"3", b"5"]]


def test_only_the_partitions_named_are_followed(log):
    log.create_topic("t", partitions=2)
    log.append("t", b"0", partition=0)
    log.append("t", b"1", partition=1)
    assert [values(records) for records in follow(log, "t", {1: 0}, idle=0)] == [[b"1"]]


def test_readers_are_independent(log):
    log.create_topic("t")
    log.append_batch("t", [Message(b"%d" % i) for i in range(4)])
    first, second = follow(log, "t", {0: 0}, limit=1, idle=0), follow(log, "t", {0: 2}, limit=1, idle=0)
    assert [values(next(reader)) for reader in (first, second, first, second)] == [[b"0"], [b"2"], [b"1"], [b"3"]]


# positions


def test_a_group_goes_on_where_it_committed(log):
    log.create_topic("t", partitions=2)
    log.append_batch("t", [Message(b"")] * 5, partition=0)
    log.append_batch("t", [Message(b"")] * 5, partition=1)
    log.commit("g", "t", {0: 3, 1: 1})
    log.commit("g", "t", {1: 5})
    assert log.committed("g", "t") == {0: 3, 1: 5}


def test_groups_and_topics_do_not_share_positions(log):
    for topic in ("t", "u"):
        log.create_topic(topic)
        log.append(topic, b"")
    log.commit("g", "t", {0: 1})
    assert (log.committed("h", "t"), log.committed("g", "u")) == ({}, {})


def test_a_group_may_go_back(log):
    log.create_topic("t")
    log.append("t", b"")
    log.commit("g", "t", {0: 1})
    log.commit("g", "t", {0: 0})
    assert log.committed("g", "t") == {0: 0}


def test_a_commit_past_the_end_is_refused_whole(log):
    log.create_topic("t", partitions=2)
    log.append("t", b"", partition=0)
    assert refusal(lambda: log.commit("g", "t", {0: 1, 1: 1})) == "offset-out-of-range"
    assert log.committed("g", "t") == {}


# retention


def test_records_past_their_age_are_removed_and_younger_ones_stay(local_log, hand_clock):
    local_log.create_topic("t", retention=Retention(age=10))
    for value in (b"1", b"2", b"3"):
        local_log.append("t", value)
        hand_clock.time += 5
    local_log.clean("t")
    assert values(all_records(local_log)) == [b"2", b"3"]
    assert (local_log.start_offsets("t"), local_log.end_offsets("t")) == ({0: 1}, {0: 3})


def test_a_position_that_retention_has_passed_is_an_error_and_not_a_gap(local_log, hand_clock):
    local_log.create_topic("t", retention=Retention(age=10))
    local_log.append("t", b"1")
    hand_clock.time += 11
    local_log.append("t", b"2")
    local_log.clean("t")
    assert refusal(lambda: local_log.read("t", 0, 0)) == "offset-out-of-range"
    assert local_log.offset_at("t", 0) == {0: 1}


def test_offsets_and_arrival_go_on_after_everything_has_expired(local_log, hand_clock):
    local_log.create_topic("t", retention=Retention(age=10))
    local_log.append_batch("t", [Message(b"1"), Message(b"2")])
    hand_clock.time += 11
    local_log.clean("t")
    local_log.clean("t")
    assert (all_records(local_log), local_log.start_offsets("t"), local_log.end_offsets("t")) == ([], {0: 2}, {0: 2})
    assert local_log.offset_at("t", 0) == {0: 2}
    hand_clock.time -= SECOND
    local_log.append("t", b"3")
    assert [(r.offset, r.arrived_at) for r in all_records(local_log)] == [(2, START)]


def test_the_oldest_records_go_when_a_partition_is_too_large(local_log):
    local_log.create_topic("t", partitions=2, retention=Retention(size=350))
    for i in range(10):
        local_log.append("t", b"%d" % i * 100, partition=0)
    local_log.append("t", b"other", partition=1)
    local_log.clean("t")
    local_log.clean("t")
    assert [(value or b"")[:1] for value in values(local_log.read("t", 0, local_log.start_offsets("t")[0]))] == [
        b"7",
        b"8",
        b"9",
    ]
    assert local_log.start_offsets("t") == {0: 7, 1: 0}


def test_the_newest_append_stays_however_large(local_log):
    local_log.create_topic("t", retention=Retention(size=10))
    local_log.append("t", b"a" * 100)
    local_log.append("t", b"b" * 100)
    local_log.clean("t")
    local_log.clean("t")
    assert [(value or b"")[:1] for value in values(all_records(local_log))] == [b"b"]


def test_without_a_retention_nothing_is_removed(local_log, hand_clock):
    local_log.create_topic("t")
    local_log.append("t", b"1")
    hand_clock.time += 10**15
    local_log.clean("t")
    assert values(all_records(local_log)) == [b"1"]


# compaction


def test_compaction_keeps_the_greatest_offset_of_each_key(local_log):
    local_log.create_topic("t", compacted=True)
    for key, value in ((b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4"), (b"b", b"5")):
        local_log.append("t", value, key=key)
    local_log.clean("t")
    assert [(r.offset, r.key, r.value) for r in all_records(local_log)] == [
        (2, b"a", b"3"),
        (3, b"c", b"4"),
        (4, b"b", b"5"),
    ]
    assert (local_log.start_offsets("t"), local_log.end_offsets("t")) == ({0: 0}, {0: 5})


def test_a_compacted_record_keeps_its_arrival_and_headers(local_log, hand_clock):
    local_log.create_topic("t", compacted=True)
    local_log.append_batch("t", [Message(b"1", b"a"), Message(b"2", b"b", (("h", b"x"),)), Message(b"3", b"a")])
    hand_clock.time += 5
    local_log.append("t", b"4", key=b"c")
    local_log.clean("t")
    assert all_records(local_log)[0] == Record("t", 0, 1, START, b"b", b"2", (("h", b"x"),))


def test_a_time_is_found_among_what_compaction_has_left(local_log, hand_clock):
    local_log.create_topic("t", compacted=True)
    local_log.append("t", b"1", key=b"c")
    hand_clock.time += 5
    local_log.append_batch("t", [Message(b"2", b"a"), Message(b"3", b"a"), Message(b"4", b"b")])
    local_log.clean("t")
    assert [local_log.offset_at("t", START + wait) for wait in (0, 1, 5, 6)] == [{0: 0}, {0: 2}, {0: 2}, {0: 4}]


def test_a_tombstone_removes_its_key_and_later_itself(local_log, hand_clock):
    local_log.create_topic("t", compacted=True, retention=Retention(tombstone_age=10))
    local_log.append("t", b"1", key=b"a")
    local_log.append("t", None, key=b"a")
    local_log.append("t", b"2", key=b"b")
    hand_clock.time += 10
    local_log.clean("t")
    assert [r.value for r in all_records(local_log)] == [None, b"2"]
    hand_clock.time += 1
    local_log.clean("t")
    assert [r.value for r in all_records(local_log)] == [b"2"]


def test_the_last_record_survives_compaction_so_that_readers_reach_the_end(local_log, hand_clock):
    local_log.create_topic("t", compacted=True, retention=Retention(tombstone_age=10))
    local_log.append("t", b"1", key=b"a")
    local_log.append("t", None, key=b"a")
    hand_clock.time += 11
    local_log.clean("t")
    assert [(r.offset, r.value) for r in local_log.read("t", 0, 0)] == [(1, None)]


@pytest.mark.generated
def test_compaction_loses_no_key_and_blocks_no_reader(fresh_local):
    @given(
        steps=st.lists(
            st.tuples(
                st.integers(0, 4), st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), some_bytes)), st.booleans()
            ),
            max_size=8,
        ),
        age=st.none() | st.integers(0, 8),
        tombstone_age=st.integers(0, 5),
    )
    def holds(steps, age, tombstone_age):
        log, clock = fresh_local()
        with closing(log):
            log.create_topic("t", compacted=True, retention=Retention(age=age, tombstone_age=tombstone_age))
            written: list[Record] = []
            for wait, batch, cleaned in steps:
                clock.tick(wait)
                positions = log.append_batch("t", [Message(value, key) for key, value in batch])
                written += [
                    Record("t", 0, position.offset, clock.time, key, value)
                    for position, (key, value) in zip(positions, batch, strict=True)
                ]
                if not cleaned:
                    continue
                log.clean("t")
                young = [r for r in written if age is None or r.arrived_at >= clock.time - age]
                latest = {r.key: r for r in young}
                kept = [
                    r
                    for r in young
                    if latest[r.key] is r
                    and (r.value is not None or r.arrived_at >= clock.time - tombstone_age or r is written[-1])
                ]
                assert all_records(log) == kept
                start, end = log.start_offsets("t")[0], log.end_offsets("t")[0]
                assert end == len(written)
                for offset in range(start, end):
                    assert log.read("t", 0, offset) == [r for r in kept if r.offset >= offset]

    fresh_local.holds(holds)


# bounded slices


@pytest.mark.generated
def test_bounded_reads_take_everything_once_in_the_order_of_arrival(fresh):
    @given(
        steps=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 4)), max_size=20),
        most=st.integers(1, 9),
    )
    def holds(steps, most):
        log, clock = fresh()
        with closing(log):
            log.create_topic("t", partitions=3)
            for wait, partition, count in steps:
                clock.tick(wait)
                log.append_batch("t", [Message(b"")] * count, partition=partition)
            records = sorted(all_records(log), key=lambda r: (r.arrived_at, r.partition, r.offset))
            at, taken = log.start_offsets("t"), 0
            while at != (end := log.end_offsets("t")):
                at = bounded(log, "t", at, end, most=most)
                taken = min(taken + most, len(records))
                expected = dict.fromkeys(end, 0)
                for record in records[:taken]:
                    expected[record.partition] = record.offset + 1
                assert at == expected
            assert taken == len(records)

    fresh.holds(holds)


def test_a_bounded_read_passes_a_range_that_compaction_has_emptied(local_log):
    local_log.create_topic("t", compacted=True)
    for value in (b"1", b"2", b"3"):
        local_log.append("t", value, key=b"a")
    target = local_log.end_offsets("t")
    local_log.append("t", b"4", key=b"a")
    local_log.clean("t")
    assert bounded(local_log, "t", {0: 0}, target, most=1) == target


def test_a_bounded_read_does_not_pass_an_end_inside_a_batch(log):
    log.create_topic("t", partitions=2)
    log.append_batch("t", [Message(b"")] * 5, partition=0)
    log.append_batch("t", [Message(b"")] * 5, partition=1)
    assert bounded(log, "t", {0: 0, 1: 0}, {0: 2, 1: 4}, most=5) == {0: 2, 1: 3}
