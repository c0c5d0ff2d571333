"""A query that takes nothing is noticed; one that waits or moves is left alone."""

from __future__ import annotations

import pytest

from headrace.clock import SECOND
from headrace.errors import MachineError
from headrace.spark.stall import StallDetector

LIMIT = 60 * SECOND


def check(detector, reached, ends, seconds):
    detector.check("cards", reached, ends, now=seconds * SECOND, limit=LIMIT)


def test_a_query_that_moves_is_left_alone_however_far_behind_it_is():
    detector = StallDetector()
    for minute in range(10):
        check(detector, {0: minute}, {0: 1_000_000}, minute * 60)


def test_a_query_that_has_everything_may_stand_still_and_has_the_whole_limit_when_records_come():
    detector = StallDetector()
    for seconds in (0, 1_000):
        check(detector, {0: 5}, {0: 5}, seconds)
    check(detector, {0: 5}, {0: 6}, 1_059)
    with pytest.raises(MachineError, match="has taken nothing for 1m"):
        check(detector, {0: 5}, {0: 6}, 1_060)


def test_a_new_query_of_the_same_name_has_the_whole_limit_again():
    detector = StallDetector()
    check(detector, {0: 5}, {0: 6}, 0)
    with pytest.raises(MachineError):
        check(detector, {0: 5}, {0: 6}, 60)
    check(detector, {0: 5}, {0: 6}, 61)
    check(detector, {0: 5}, {0: 6}, 120)
    with pytest.raises(MachineError):
        check(detector, {0: 5}, {0: 6}, 121)
