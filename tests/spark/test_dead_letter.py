"""Letters in parts: by number, and by bytes where they are large."""

from __future__ import annotations

from headrace.log import MemoryLog
from headrace.spark.dead_letter import PART_BYTES, DeadLetter, in_parts, walk


def letter(number: int, size: int) -> DeadLetter:
    return DeadLetter(0, number, 0, "malformed", "it is not JSON", None, b"{", (), size)


def test_large_letters_go_a_few_at_a_time_and_none_is_left_out():
    given = [letter(number, PART_BYTES // 2 + number) for number in range(5)]
    parts = list(in_parts(given, most=100))
    assert [len(part) for part in parts] == [2, 2, 1]
    assert [each for part in parts for each in part] == given


def test_a_letter_larger_than_a_part_goes_alone():
    given = [letter(0, 3 * PART_BYTES), letter(1, 1), letter(2, 1)]
    assert [len(part) for part in in_parts(given, most=100)] == [1, 2]


def test_a_walk_ends_where_the_topic_ended_when_it_began():
    log = MemoryLog()
    log.create_topic("payments.dead", compacted=True)
    log.append("payments.dead", b"1", key=b"a")
    walked = []
    for record in walk(log, "payments.dead"):
        walked.append(record.offset)
        if len(walked) < 3:
            log.append("payments.dead", b"2", key=b"b")
    assert walked == [0]
