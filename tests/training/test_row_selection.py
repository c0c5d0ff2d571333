"""Samples, downsampling and splits, as users write them and as they are found by counting."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.clock import micros
from headrace.errors import DataError, DefinitionError, UsageError
from headrace.training.request import read_request, wish_of
from headrace.training.row_selection import Split, chance, downsample, moments_of, rate_of, split

NEW_YEAR = "2026-01-01T00:00:00Z"


def counting(times):
    def counts(low, high, width):
        return Counter((t - low) // width for t in times if low <= t <= high)

    return counts


@given(
    st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=60),
    st.lists(st.integers(1, 9), min_size=2, max_size=3),
    st.sampled_from([60, 10**9]),
)
def test_the_moment_between_two_parts_is_that_of_the_first_row_after_the_share(times, weights, rows):
    shares = tuple(Fraction(weight, sum(weights)) for weight in weights)
    found = moments_of(Split(shares=shares), counting(times), min(times), max(times), rows)
    ordered = sorted(times)
    assert found == [ordered[int(sum(shares[: at + 1]) * len(times))] for at in range(len(shares) - 1)]


@given(st.lists(st.integers(0, 20), min_size=5, max_size=60))
def test_rows_of_one_moment_are_never_parted_and_no_part_exceeds_its_share(times):
    (moment,) = moments_of(split("0.7,0.3"), counting(times), min(times), max(times), len(times))
    train = [t for t in times if t < moment]
    assert len(train) <= 0.7 * len(times)
    assert not set(train) & {t for t in times if t >= moment}


def test_moments_that_are_given_are_taken_as_they_are():
    chosen = split([NEW_YEAR, datetime(2026, 2, 1, tzinfo=UTC)])
    assert chosen.parts == ("train", "validation", "test")
    assert moments_of(chosen, counting([]), 0, 0, 0) == [micros(NEW_YEAR), micros("2026-02-01T00:00:00Z")]
    assert chosen.expression("t", [1, 2]) == (
        "CASE WHEN unix_micros(`t`) < 1 THEN 'train' WHEN unix_micros(`t`) < 2 THEN 'validation' ELSE 'test' END"
    )


def test_nothing_left_to_split_is_refused():
    with pytest.raises(DataError, match="left to split"):
        moments_of(split("0.5,0.5"), counting([]), 0, 10, 0)


@pytest.mark.parametrize(
    "written",
    [
        "0.8,0.1",
        "0.8,0.1,0.1,0.0",
        "1",
        "1,0",
        "",
        "half,half",
        f"{NEW_YEAR},{NEW_YEAR}",
        "2026-01-01T00:00:00",
        "-1,2",
    ],
)
def test_a_split_that_is_none_is_refused_with_both_ways_to_write_it(written):
    with pytest.raises(UsageError) as refused:
        split(written)
    assert refused.value.code == "bad-usage"
    assert "0.8,0.1,0.1" in str(refused.value.hint)


def test_a_naive_moment_between_parts_is_refused():
    with pytest.raises(DefinitionError, match="offset"):
        split([datetime(2026, 1, 1)])  # noqa: DTZ001


@pytest.mark.parametrize(
    "written", ["label", "label=0", "label:0.1", "=0:0.1", "label=0:0", "label=0:1.5", "label=0:x"]
)
def test_downsampling_that_cannot_be_read_is_refused(written):
    with pytest.raises(UsageError):
        downsample(written)


def test_downsampling_reads_values_with_equals_signs_and_colons():
    found = downsample("kind=a=b:c:0.25")
    assert (found.column, found.value, found.rate) == ("kind", "a=b:c", 0.25)


@pytest.mark.parametrize("rate", [0, -0.1, 1.1, "nan", "inf", True, "0.1x", None])
def test_a_rate_outside_of_0_to_1_is_refused(rate):
    with pytest.raises(UsageError):
        rate_of(rate, "a sample")


def test_a_rate_of_one_takes_every_row():
    assert rate_of("1", "a sample") == rate_of(1.0, "a sample") == 1.0


def test_the_chance_of_a_row_depends_on_the_seed_and_on_what_for():
    texts = {chance(0, "sample", ["card", "t"]), chance(1, "sample", ["card", "t"]), chance(0, "downsample", ["card"])}
    assert len(texts) == 3
    assert "`card`, `t`" in chance(0, "sample", ["card", "t"])


@pytest.mark.parametrize(
    "asked",
    [
        {"features": "fraud"},
        {"features": ["a", "b"], "time": "at", "mode": "as_happened", "include_event": "clicks", "seed": -3},
        {"features": "a", "sample": "0.1234567", "downsample_by": "y=0:0.3", "split_by": "0.7,0.2,0.1"},
        {"features": "a", "split_by": NEW_YEAR, "format": "delta"},
    ],
)
def test_a_manifest_keeps_a_wish_whole(asked):
    made = read_request(**asked)
    assert wish_of(made.as_json()) == made


@pytest.mark.parametrize(
    "asked",
    [{"mode": "as_was"}, {"format": "csv"}, {"seed": 2**63}, {"seed": True}, {"features": [3]}],
)
def test_a_wish_that_cannot_be_granted_is_refused(asked):
    with pytest.raises(UsageError):
        read_request(**{"features": "a"} | asked)


def test_a_definition_stands_for_its_name():
    class Named:
        name = "fraud"

    assert read_request(Named()).features == ("fraud",)
    assert read_request(None).features == ()
