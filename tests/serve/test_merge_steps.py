"""The order of merges: every window has all of its bands once, and no row is merged more often than it must be."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.plan.build import build
from headrace.read.merge_steps import finishes, run, steps

clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
OVERS = ("10m", "20m", "1h", "3h", "1d")
users = hr.view("users", clicks, by="user", features={f"n_{over}": hr.count(over=over) for over in OVERS})
FEATURES = build([users]).view("users")
WINDOWS = [planned.terms[0].term.window for planned in FEATURES]
(NAME,) = {column.name for planned in FEATURES for column in planned.terms[0].columns}


def made(bands):
    return steps(FEATURES, [[WINDOWS[number] for number in band] for band in bands], [[NAME]] * len(bands))


@given(bands=st.lists(st.sets(st.sampled_from(range(len(OVERS))), min_size=1), max_size=8), data=st.data())
def test_whatever_bands_windows_have_each_counts_all_of_its_rows_once(bands, data):
    rows = [data.draw(st.lists(st.integers(1, 9), max_size=3)) for _ in bands]
    listed, places = made(bands)
    states = run(listed, [[held] if held else [] for held in rows])
    for number, (name, finish) in enumerate(finishes(FEATURES, places)):
        inside = [held for held, windows in zip(rows, bands, strict=True) if number in windows]
        assert finish is not None
        assert finish(states, 0) == sum(map(sum, inside)), name


@given(bands=st.lists(st.sets(st.sampled_from(range(len(OVERS))), min_size=1), max_size=8))
def test_no_band_is_merged_twice(bands):
    uses = Counter(band for step in made(bands)[0] for band, _ in step.rows)
    assert all(count == 1 for count in uses.values())


def test_windows_in_one_another_go_on_where_the_smaller_one_ended():
    listed, _ = made([{4}, {3, 4}, {2, 3, 4}, {1, 2, 3, 4}, {0, 1, 2, 3, 4}])
    assert [(step.before, [band for band, _ in step.rows]) for step in listed] == [
        ((), [4]),
        ((0,), [3]),
        ((1,), [2]),
        ((2,), [1]),
        ((3,), [0]),
    ]
