"""Copies are found in the lake and in the batch, and the first is the one that was there first."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headrace.clock import DAY, HOUR
from headrace.lake.copies import copies
from headrace.lake.files import filesystem
from headrace.lake.table import LakeTable
from tests.lake.conftest import SHAPE, add, keys


def found(batch, silver):
    return [tuple(row.values()) for row in copies(keys(batch), silver).to_pylist()]


def test_a_copy_of_what_the_lake_has_names_it(silver):
    add(silver, [("a", HOUR, 1, HOUR, 0, 7, 5)])
    assert found([("a", HOUR, 1, 2 * HOUR, 1, 3, 5)], silver) == [(1, 3, 0, 7, False, False)]


def test_what_the_lake_has_is_first_even_if_it_arrived_later_and_the_copy_says_so(silver):
    add(silver, [("a", HOUR, 1, 3 * HOUR, 0, 7, 5)])
    assert found([("a", HOUR, 1, 2 * HOUR, 1, 3, 6)], silver) == [(1, 3, 0, 7, True, True)]


def test_within_a_batch_the_least_arrival_then_partition_then_offset_is_first(silver):
    batch = [("a", 0, 1, 9, 1, 0, 5), ("a", 0, 1, 8, 2, 4, 5), ("a", 0, 1, 8, 2, 3, 5), ("a", 0, 1, 8, 1, 9, 5)]
    assert found(batch, silver) == [
        (1, 0, 1, 9, False, False),
        (2, 3, 1, 9, False, False),
        (2, 4, 1, 9, False, False),
    ]


def test_what_was_appended_again_stands_where_it_was_appended_and_says_that_it_arrived_before(silver):
    batch = keys([("a", 0, 1, 8, 0, 4, 5), ("a", 0, 1, 7, 0, 5, 5)])
    appended = batch.set_column(batch.schema.get_field_index("order"), "order", [[8, 9]])
    (row,) = copies(appended, silver).to_pylist()
    assert tuple(row.values()) == (0, 5, 0, 4, False, True)


def test_one_id_at_two_times_is_two_events(silver):
    add(silver, [("a", HOUR, 1, HOUR, 0, 0, 5)])
    assert found([("a", HOUR + 1, 1, HOUR, 0, 1, 5), ("a", DAY, 1, DAY, 0, 2, 5)], silver) == []


def test_two_ids_with_one_hash_are_two_events(silver):
    add(silver, [("a", HOUR, 1, HOUR, 0, 0, 5)])
    assert found([("b", HOUR, 1, HOUR, 0, 1, 5), ("c", HOUR, 1, HOUR, 0, 2, 5)], silver) == []


def test_a_batch_of_nothing_has_no_copies(silver):
    add(silver, [("a", HOUR, 1, HOUR, 0, 0, 5)])
    assert found([], silver) == []


def test_only_files_of_the_batchs_own_times_are_opened(silver, monkeypatch):
    for day in range(5):
        add(silver, [(f"{day}", day * DAY + HOUR, day, 0, 0, day, 0)])
    opened = []

    def spy(uri, options):
        opened.append(uri)
        return filesystem(uri, options)

    monkeypatch.setattr("headrace.lake.copies.filesystem", spy)
    assert found([("3", 3 * DAY + HOUR, 3, 9, 1, 0, 0)], silver) == [(1, 0, 0, 3, False, False)]
    assert len(opened) == 1


EVENTS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from([0, HOUR, DAY]), st.integers(0, 5), st.integers(0, 2)),
    max_size=30,
)


@given(EVENTS, st.integers(0, 30))
def test_batch_by_batch_gives_what_one_look_at_everything_gives(tmp_path_factory, events, cut):
    # Hashes collide on purpose; arrival rises as the archive's slices make it.
    sent = [
        (name, time, ord(name) % 2, place, partition, place, content)
        for place, (name, time, content, partition) in enumerate(events)
    ]
    first: dict[Any, Any] = {}
    expected = []
    for event in sent:
        name, time, _, _, partition, offset, content = event
        seen = first.setdefault((name, time), event)
        if seen is not event:
            expected.append((partition, offset, seen[4], seen[5], content != seen[6], False))
    silver = LakeTable(str(tmp_path_factory.mktemp("lake")), SHAPE)
    got = []
    for batch in (sent[:cut], sent[cut:]):
        told = found(batch, silver)
        got += told
        places = {(row[0], row[1]) for row in told}
        add(silver, [event for event in batch if (event[4], event[5]) not in places])
    assert sorted(got) == sorted(expected)
