"""The scorer: a score or an error for each row, the same by rows and by columns, and none at another's cost."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import DataError, HeadraceError
from headrace.models import ModelColumn, Output, Scorer
from headrace.models.predictors import OfMatrix, OfRow
from tests.budget import examples
from tests.models.models import manifest

N = (ModelColumn("n", "integer", ""),)
EVERY = (
    ModelColumn("i", "integer", ""),
    ModelColumn("f", "float", ""),
    ModelColumn("b", "boolean", ""),
    ModelColumn("d", "decimal(38,10)", ""),
    ModelColumn("t", "timestamp", ""),
    ModelColumn("s", "string", ""),
)
ANY = Output(low=None, high=None)
ARROW = {
    "i": pa.int64(),
    "f": pa.float64(),
    "b": pa.bool_(),
    "d": pa.decimal128(38, 10),
    "t": pa.timestamp("us", "UTC"),
    "s": pa.string(),
}


def first(columns=N, call=lambda matrix: matrix[:, 0], **fields):
    """A scorer whose score is the first column."""
    return Scorer(manifest(columns, **{"output": ANY} | fields), OfMatrix(call))


def codes(outcomes):
    return [each.code if isinstance(each, HeadraceError) else each for each in outcomes]


def test_columns_come_in_any_order():
    scorer = first((ModelColumn("a", "float", ""), ModelColumn("b", "float", "")), lambda matrix: matrix @ [10.0, 1.0])
    assert scorer.score([{"b": 2.0, "a": 1.0}, {"a": 1.0, "b": 2.0}]) == [12.0, 12.0]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({}, "it lacks 'n'"),
        ({"n": 1, "m": 2}, "it has 'm' besides"),
        ({"m": 2}, "it lacks 'n' and it has 'm' besides"),
        ({"n": "1"}, "'n' of a row is no number"),
        ({"n": [1]}, "'n' of a row is no number"),
        ({"n": 10**400}, "'n' of a row is no number"),
        ({"n": Decimal("sNaN")}, "'n' of a row is no number"),
    ],
)
def test_a_row_that_does_not_fit_is_an_error_that_names_it(row, said):
    outcome, other = first().score([row, {"n": 1}])
    assert (outcome.code, other) == ("wrong-columns", 1.0)
    assert said in outcome.message


def test_a_row_with_other_columns_is_an_error_for_a_model_of_rows_too():
    outcome = Scorer(manifest(N), OfRow(lambda row: 0.5)).score([{"m": 1}])[0]
    assert outcome.message == "The row has not the columns of the model: it lacks 'n' and it has 'm' besides."


@pytest.mark.parametrize(
    ("value", "number"), [(True, 1.0), (3, 3.0), (2.5, 2.5), (Decimal("0.1"), 0.1), (np.float32(0.5), 0.5)]
)
def test_values_become_numbers(value, number):
    assert first().score([{"n": value}]) == [number]


def test_texts_become_their_place_among_the_categories():
    scorer = first((EVERY[5],), categories={"s": ("CH", "IN")}, missing={"s": -1.0})
    assert scorer.score([{"s": "IN"}, {"s": "CH"}, {"s": "XX"}, {"s": None}]) == [1.0, 0.0, -1.0, -1.0]
    scores, errors = scorer.score_columns({"s": pa.array(["IN", "CH", "XX", None])})
    assert (scores.tolist(), errors) == ([1.0, 0.0, -1.0, -1.0], {})
    assert codes(scorer.score([{"s": 3}])) == ["wrong-columns"]


def test_a_text_column_without_categories_is_refused_by_a_model_of_numbers():
    with pytest.raises(DataError, match="takes numbers") as caught:
        first((EVERY[5],))
    assert "categories=" in str(caught.value.hint)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_null_is_passed_on_as_nan(missing):
    scorer = first(call=lambda matrix: np.isnan(matrix[:, 0]) * 1.0, missing="nan")
    assert scorer.score([{"n": missing}, {"n": 1}]) == [1.0, 0.0]


def test_a_null_is_passed_on_as_none_to_a_model_of_rows():
    scorer = Scorer(manifest(N), OfRow(lambda row: 1.0 if row["n"] is None else 0.0))
    assert scorer.score([{"n": None}, {"n": float("nan")}, {"n": 1}]) == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("predict", [OfMatrix(lambda matrix: matrix[:, 0]), OfRow(lambda row: row["n"])])
def test_a_null_is_refused_where_none_is_taken_and_is_not_the_models_fault(predict):
    scorer = Scorer(manifest(N, missing="refuse", output=ANY), predict)
    assert codes(scorer.score([{"n": None}, {"n": 4}])) == ["missing-value", 4.0]
    scores, errors = scorer.score_columns({"n": pa.array([None, 4])})
    assert (np.isnan(scores[0]), scores[1], codes(errors.values())) == (True, 4.0, ["missing-value"])


@pytest.mark.parametrize(
    "predict", [OfMatrix(lambda matrix: matrix.sum(axis=1)), OfRow(lambda row: row["a"] + row["b"])]
)
def test_a_null_becomes_the_value_of_its_column_and_is_refused_in_any_other(predict):
    columns = (ModelColumn("a", "float", ""), ModelColumn("b", "float", ""))
    scorer = Scorer(manifest(columns, missing={"a": 10.0}, output=ANY), predict)
    outcomes = scorer.score([{"a": None, "b": 1.0}, {"a": 1.0, "b": None}])
    assert codes(outcomes) == [11.0, "missing-value"]
    assert "'b'" in outcomes[1].message
    assert "'a'" not in outcomes[1].message


@pytest.mark.parametrize("bad", [[], [0], [7], [2, 3, 11], list(range(12))])
def test_a_row_on_which_the_model_raises_costs_no_other_its_score(bad):
    def call(matrix):
        if np.isin(matrix[:, 0], bad).any():
            raise ZeroDivisionError("no")
        return matrix[:, 0]

    outcomes = first(call=call).score([{"n": n} for n in range(12)])
    assert codes(outcomes) == ["model-failed" if n in bad else float(n) for n in range(12)]
    if bad:
        assert outcomes[bad[0]].message == "The model 'fraud' version 3 raised ZeroDivisionError."


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -float("inf"), 1.1, -0.1])
@pytest.mark.parametrize("kind", ["matrix", "row"])
def test_what_is_no_score_in_range_is_the_models_error(score, kind):
    told = {0: 0.5, 1: score}
    predict = (
        OfMatrix(lambda matrix: [told[int(n)] for n in matrix[:, 0]])
        if kind == "matrix"
        else OfRow(lambda row: told[row["n"]])
    )
    assert codes(Scorer(manifest(N), predict).score([{"n": 0}, {"n": 1}])) == [0.5, "model-failed"]


def test_a_score_that_is_off_by_rounding_is_on_the_bound():
    scorer = first(output=Output())
    assert scorer.score([{"n": 1.0000001}, {"n": -0.0000001}]) == [1.0, 0.0]


@pytest.mark.parametrize("output", [None, "0.5", [0.5]])
def test_what_is_no_number_is_the_models_error(output):
    assert codes(Scorer(manifest(N), OfRow(lambda row: output)).score([{"n": 1}])) == ["model-failed"]


def test_scores_of_a_wrong_shape_are_the_models_error():
    assert codes(first(call=lambda matrix: np.zeros((len(matrix), 3))).score([{"n": 1}])) == ["model-failed"]


def test_no_rows_have_no_scores():
    assert first().score([]) == []
    scores, errors = first().score_columns({"n": np.array([], dtype=float)})
    assert (scores.tolist(), errors) == ([], {})


def test_a_batch_is_filled_up_to_whole_blocks_whose_surplus_is_dropped():
    seen = []

    def call(matrix):
        seen.append(len(matrix))
        return matrix[:, 0]

    scorer = Scorer(manifest(N, output=ANY), OfMatrix(call, block=8))
    assert scorer.score([{"n": n} for n in range(11)]) == [float(n) for n in range(11)]
    assert seen == [16]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({}, "it lacks 'n'"),
        ({"n": np.array([1]), "m": np.array([1])}, "it has 'm' besides"),
        ({"n": np.array(["a"])}, "holds no numbers"),
        ({"n": pa.array([[1]])}, "holds no numbers"),
        ({"n": [1, "a"]}, "cannot be read"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_whole(columns, said):
    with pytest.raises(DataError, match=said) as caught:
        first().score_columns(columns)
    assert caught.value.code == "wrong-columns"


def test_columns_of_several_lengths_are_refused():
    with pytest.raises(DataError, match="several lengths"):
        first((ModelColumn("a", "float", ""), ModelColumn("b", "float", ""))).score_columns(
            {"a": [1.0], "b": [1.0, 2.0]}
        )


CELLS = {
    "i": st.integers(-(2**63), 2**63 - 1),
    "f": st.floats(allow_nan=False),
    "b": st.booleans(),
    "d": st.decimals(-(10**27), 10**27, places=10),
    "t": st.integers(-(2**55), 2**55),
    "s": st.sampled_from(["CH", "IN", "XX"]),
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | cells for name, cells in CELLS.items()}), min_size=1)


@given(rows=ROWS)
def test_rows_and_columns_become_the_same_numbers_to_the_last_bit(rows):
    seen = []

    def call(matrix):
        seen.append(matrix.tobytes())
        return np.zeros(len(matrix))

    scorer = first(EVERY, call, categories={"s": ("CH", "IN")})
    scorer.score(rows)
    scorer.score_columns({name: pa.array([row[name] for row in rows], kind) for name, kind in ARROW.items()})
    assert seen[0] == seen[1]


@examples(1 / 2)
@given(rows=ROWS)
def test_a_model_of_rows_is_given_the_same_row_from_columns(rows):
    seen = []

    def call(row):
        seen.append(row)
        return 0.0

    scorer = Scorer(manifest(EVERY), OfRow(call))
    scorer.score(rows)
    scorer.score_columns({name: pa.array([row[name] for row in rows], kind) for name, kind in ARROW.items()})
    half = len(rows)
    assert seen[:half] == seen[half:] == rows
    assert [list(map(type, row.values())) for row in seen[:half]] == [
        list(map(type, row.values())) for row in seen[half:]
    ]


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (np.array([1, 2], dtype=np.int32), [1.0, 2.0]),
        (np.array([True, False]), [1.0, 0.0]),
        (np.array([0.5, np.nan], dtype=np.float32), [0.5, -1.0]),
        (np.array([Decimal("0.1"), None], dtype=object), [0.1, -1.0]),
        (np.array(["1970-01-01T00:00:01", "NaT"], dtype="datetime64[ns]"), [1e6, -1.0]),
        (pa.chunked_array([[1], [None]], pa.int64()), [1.0, -1.0]),
        (pa.array([2**53 + 1, None]), [float(2**53 + 1), -1.0]),
        (pa.array([1, None]).dictionary_encode(), [1.0, -1.0]),
        (pa.nulls(2), [-1.0, -1.0]),
        (pa.array([1_000, None], pa.timestamp("ms", "UTC")), [1e6, -1.0]),
    ],
)
def test_columns_of_every_kind_become_numbers(values, numbers):
    scores, errors = first(missing={"n": -1.0}).score_columns({"n": values})
    assert (scores.tolist(), errors) == (numbers, {})
