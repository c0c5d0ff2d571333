"""The real thing: Spark's own `to_json` of every partial column, read without Spark."""

from __future__ import annotations

import pytest

from tests.aggregate.cases import folded, same
from tests.aggregate.test_spark import CASES, Tiles, tiles  # noqa: F401 - a fixture
from tests.serve.shape import decoder

pytestmark = pytest.mark.spark


def test_what_spark_writes_is_read_as_the_state_it_stands_for(tiles: Tiles) -> None:  # noqa: F811
    names = ", ".join(f"m{place}" for place in range(len(CASES)))
    read = decoder((f"m{place}", monoid) for place, (monoid, _) in enumerate(CASES))
    written = tiles.frame.selectExpr("key", "tile", f"to_json(struct({names})) AS partials").collect()
    assert len(written) >= 16
    for row in written:
        found = read(row["partials"].encode())
        for place, (monoid, kind) in enumerate(CASES):
            events = tiles.events[row["key"], kind][row["tile"]]
            assert same(monoid, found[f"m{place}"], folded(monoid, events), events), (row["key"], monoid)
