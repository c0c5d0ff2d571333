"""The numbers that are watched of windows."""

from __future__ import annotations

import math

import msgspec
import pytest

from headrace.drift import DriftWindow, Reference, Statistics, counted, series
from headrace.drift.window import Measuring
from headrace.errors import DataError
from tests.drift.worlds import AMOUNT, REFERENCES, amounts, hour

SHIFTED = Reference(
    rows=9, null_rate=0.0, mean=0.0, stddev=1.0, edges=(-9.0, -1.0, 0.0, 1.0, 4.0), counts=AMOUNT.counts
)


def test_numbers_and_texts_have_their_measures():
    found = series(amounts(3), REFERENCES)
    assert sorted(found) == [
        "mean of amount",
        "new share of country",
        "null rate of amount",
        "null rate of country",
        "psi of amount",
        "psi of country",
    ]
    assert {len(values) for values in found.values()} == {3}


def test_an_empty_window_is_none_in_every_series():
    windows = [*amounts(1), DriftWindow(*hour(1), columns={"amount": Statistics(), "country": Statistics()})]
    assert {values[1] for values in series(windows, REFERENCES).values()} == {None}


def test_a_window_of_few_rows_says_nothing():
    few = DriftWindow(*hour(0), columns={"amount": counted([1.0] * 29, AMOUNT)})
    assert set(Measuring(REFERENCES, min_rows=30).inputs(few).values()) == {None}
    assert None not in Measuring(REFERENCES, min_rows=29).inputs(few).values()


def test_a_window_of_another_feature_version_is_refused():
    window = DriftWindow(*hour(0), columns={"amount": counted([1.0] * 50, SHIFTED)})
    with pytest.raises(DataError) as error:
        series([window], REFERENCES)
    assert error.value.code == "wrong-reference"
    assert "2026-01-05T00:00:00Z" in str(error.value)


def test_a_window_with_another_number_of_bins_is_refused():
    window = DriftWindow(*hour(0), columns={"amount": Statistics(count=50, counts=(25, 25))})
    with pytest.raises(DataError):
        series([window], REFERENCES)


def test_a_column_without_a_reference_has_only_its_nulls():
    window = DriftWindow(*hour(0), columns={"age": Statistics(count=50, nulls=5)})
    assert series([window], {}) == {"null rate of age": [0.1]}


def test_a_segment_with_one_class_only_has_no_measure():
    window = DriftWindow(*hour(0), measures={"auc[country=DE]": (math.nan, 0.0), "log_loss": (0.4, 0.01)})
    assert series([window], {}) == {"auc[country=DE]": [None], "log_loss": [0.4]}


def test_a_segment_is_held_against_the_reference_of_its_column():
    window = DriftWindow(*hour(0), columns={"amount[country=DE]": counted([1.0] * 50, AMOUNT)})
    assert series([window], REFERENCES)["mean of amount[country=DE]"] == [1.0]


def test_a_measure_may_not_look_like_a_column():
    with pytest.raises(DataError):
        series([DriftWindow(*hour(0), measures={"mean of amount": (1.0, 1.0)})], {})


def test_windows_can_be_kept_as_json():
    for window in amounts(2):
        assert msgspec.json.decode(msgspec.json.encode(window), type=DriftWindow) == window
