"""Models over tables: scores of Spark are those of the scorer itself, and errors stand in their place."""

from __future__ import annotations

import json

import pytest

from headrace.errors import DataError
from headrace.models.columns import ModelColumn
from headrace.models.registry import ModelRegistry
from headrace.spark.score import scored
from headrace.testing import FakeClock

pytestmark = pytest.mark.spark

COLUMNS = (ModelColumn("n", "integer", "1"), ModelColumn("spend", "float", "2"), ModelColumn("new", "boolean", "3"))


@pytest.fixture
def registry(tmp_path):
    return ModelRegistry(tmp_path, FakeClock(0))


def trained(rows):
    import lightgbm
    import numpy as np

    matrix = np.array([[row["n"], row["spend"], row["new"]] for row in rows], dtype=float)
    labels = (matrix[:, 0] * matrix[:, 1] > 40).astype(int)
    data = lightgbm.Dataset(matrix, labels, feature_name=["n", "spend", "new"])
    return lightgbm.train({"objective": "binary", "verbose": -1, "num_threads": 1}, data, num_boost_round=20)


def rows(count):
    return [{"n": at % 17, "spend": (at * 7 % 101) / 4, "new": at % 3 == 0} for at in range(count)]


def test_scores_of_a_table_are_bit_for_bit_those_of_single_rows(spark, registry):
    given = rows(2_000)
    made = registry.add("risk", trained(given), features="habits", columns=COLUMNS)
    scorer = registry.load("risk", 1)
    frame = spark.createDataFrame(
        [(each["n"], each["spend"], each["new"]) for each in given], "n INT, spend DOUBLE, new BOOLEAN"
    )
    found = scored(frame.repartition(3), registry.place("risk", 1), made).collect()
    assert len(found) == len(given)
    for row in found:
        assert row.score == scorer.score([{"n": row.n, "spend": row.spend, "new": row.new}])[0]
        assert (row.version, row.error) == (1, None)


def test_a_row_that_cannot_be_scored_has_an_error_and_costs_no_other_its_score(spark, registry, tmp_path):
    file = tmp_path / "model.py"
    file.write_text("def score(row):\n    return row['n'] / (7 - row['n'])\n")
    made = registry.add("risk", file, features="habits", columns=COLUMNS[:1], missing="refuse", allow_code=True)
    frame = spark.createDataFrame([(0, "a"), (7, "b"), (None, "c"), (1, "d")], "n INT, `a.b` STRING")
    found = {row["a.b"]: row for row in scored(frame, registry.place("risk", 1), made).collect()}
    assert (found["a"].score, found["d"].score) == (0.0, 1 / 6)
    assert json.loads(found["b"].error)["code"] == "model-failed"
    assert json.loads(found["c"].error)["code"] == "missing-value"


def test_a_table_that_lacks_a_column_is_refused_before_anything_runs(spark, registry):
    made = registry.add("risk", trained(rows(100)), features="habits", columns=COLUMNS)
    frame = spark.createDataFrame([(1, 2.0)], "n INT, spend DOUBLE")
    with pytest.raises(DataError, match="lacks columns") as refused:
        scored(frame, registry.place("risk", 1), made)
    assert "new" in str(refused.value.got)
