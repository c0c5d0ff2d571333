"""Formats: each keeps and loads its models, scores a row the same in any batch, and refuses what is none of its own."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from headrace.errors import DataError, HeadraceError, MachineError
from headrace.models import ModelColumn, Output, formats
from headrace.models.libraries import library, needed
from tests.models.models import (
    COLUMNS,
    FORMATS,
    NAMES,
    Halved,
    add,
    booster,
    classifier,
    columns_of,
    data,
    graph,
    logistic,
    of_format,
    online,
    registry,
    rows,
    rule,
    sigmoid,
    tensor,
)

ANY = Output(low=None, high=None)


def options(form):
    return {"format": form, "allow_code": form in ("pickle", "python"), "output": ANY}


def refused(registry, source, **fields):
    with pytest.raises(HeadraceError) as caught:
        add(registry, source, **fields)
    assert registry.models() == []
    return caught.value


@pytest.mark.parametrize("form", FORMATS)
def test_a_model_scores_by_rows_and_by_columns_the_same_to_the_last_bit_in_any_batch(form, tmp_path):
    kept = registry(tmp_path)
    add(kept, of_format(form, tmp_path), **options(form))
    scorer, given = kept.load("fraud", 1), rows(37)
    together = scorer.score(given)
    scores, errors = scorer.score_columns(columns_of(given))
    assert together == scores.tolist() == [scorer.score([row])[0] for row in given]
    assert errors == {}
    assert len(set(together)) > 5


@pytest.mark.parametrize("form", FORMATS)
def test_a_format_is_found_out(form, tmp_path):
    kept = registry(tmp_path)
    made = add(kept, of_format(form, tmp_path), allow_code=True, output=ANY)
    assert (made.format, made.pickle) == (form, form == "pickle")


@pytest.mark.parametrize("form", ["onnx", "lightgbm", "sklearn", "python", "pickle"])
def test_the_format_of_a_file_is_found_out(form, tmp_path):
    kept = registry(tmp_path)
    made = add(kept, of_format(form, tmp_path), **options(form))
    file = tmp_path / "models" / "fraud" / "1" / made.file
    again = add(kept, str(file), allow_code=True, output=ANY)
    assert (again.format, again.sha256) == (form, made.sha256)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("content", ["nothing", "garbage", "half", "another format"])
def test_a_file_that_is_no_model_is_refused_in_words(form, content, tmp_path):
    kept = registry(tmp_path)
    name = formats.save(form, of_format(form, tmp_path), tmp_path)
    whole = (tmp_path / name).read_bytes()
    other = booster().model_to_string().encode() if form != "lightgbm" else sigmoid().SerializeToString()
    half = b"def score(row:" if form == "python" else whole[: len(whole) // 2]
    told = {"nothing": b"", "garbage": b"\x93 certainly no model \x00\xff", "half": half, "another format": other}
    file = tmp_path / f"broken{'.py' if form == 'python' else '.bin'}"
    file.write_bytes(told[content])
    error = refused(kept, file, **options(form))
    assert error.code == "bad-model"


def test_a_file_that_is_not_there_is_refused(tmp_path):
    assert refused(registry(tmp_path), tmp_path / "gone.onnx").message == "There is no such model file."
    assert refused(registry(tmp_path), tmp_path / "gone.txt", format="lightgbm").code == "bad-model"
    assert refused(registry(tmp_path), tmp_path / "gone.py").message == "The function's file cannot be found."


def test_what_nobody_knows_is_refused(tmp_path):
    error = refused(registry(tmp_path), object())
    assert (error.code, "onnx" in error.hint) == ("bad-model", True)
    assert refused(registry(tmp_path), sigmoid(), format="onx").hint == "Did you mean 'onnx'?"


@pytest.mark.parametrize("ask", [library, needed])
def test_a_missing_library_says_what_to_install(monkeypatch, ask):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MachineError, match="onnxruntime") as caught:
        ask("onnxruntime")
    assert (caught.value.code, "headrace[models]" in str(caught.value.hint)) == ("missing-package", True)


RENAMED = (*COLUMNS[:3], ModelColumn("day", "boolean", ""))
SWAPPED = (COLUMNS[1], COLUMNS[0], *COLUMNS[2:])


def split():
    """An ONNX model with one input for each column."""
    from onnx import helper

    nodes = [helper.make_node("Sum", list(NAMES), ["z"]), helper.make_node("Sigmoid", ["z"], ["p"])]
    return graph(nodes, [tensor(name, "n", 1) for name in NAMES], [tensor("p", "n", 1)])


@pytest.mark.parametrize("make", [booster, lambda: logistic(NAMES), split])
@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (COLUMNS[:3], ["'night' is missing"]),
        ((*COLUMNS, ModelColumn("more", "float", "")), ["'more' is extra"]),
        (RENAMED, ["'night' is missing", "'day' is extra"]),
        (SWAPPED, ["'payments' is in another place", "'spend' is in another place"]),
    ],
)
def test_names_that_a_model_carries_are_held_against_its_columns(make, columns, said, tmp_path):
    error = refused(registry(tmp_path), make(), columns=columns, missing="refuse")
    assert error.code == "wrong-columns"
    assert [sentence in error.got for sentence in said] == [True] * len(said)


@pytest.mark.parametrize("make", [lambda: booster(None), logistic, sigmoid])
def test_a_model_without_names_is_held_to_the_number_of_its_columns(make, tmp_path):
    error = refused(registry(tmp_path), make(), columns=COLUMNS[:3])
    assert (error.code, error.message) == ("wrong-columns", "The model takes 4 columns, not 3.")


@pytest.mark.parametrize("zipmap", [False, True])
def test_an_onnx_classifier_gives_the_probability_of_its_second_class(zipmap, tmp_path):
    kept = registry(tmp_path)
    add(kept, classifier(zipmap=zipmap), missing="refuse")
    given = rows(9)
    weights = [0.5 - 0.3 * place for place in range(len(NAMES))]
    z = [sum(w * float(row[name]) for w, name in zip(weights, NAMES, strict=True)) for row in given]
    assert kept.load("fraud", 1).score(given) == pytest.approx([1 / (1 + np.exp(-2 * each)) for each in z], abs=1e-6)


def test_an_onnx_model_may_have_an_input_for_each_column(tmp_path):
    kept = registry(tmp_path)
    add(kept, split(), missing="refuse")
    given = rows(3)
    sums = [sum(float(row[name]) for name in NAMES) for row in given]
    assert kept.load("fraud", 1).score(given) == pytest.approx([1 / (1 + np.exp(-each)) for each in sums], abs=1e-6)


def test_an_onnx_model_of_whole_numbers_refuses_a_null_for_that_row_alone(tmp_path):
    from onnx import helper

    nodes = [helper.make_node("Cast", ["x"], ["p"], to=1)]
    kept = registry(tmp_path)
    whole = graph(nodes, [tensor("x", "n", 1, kind=7)], [tensor("p", "n", 1)])
    add(kept, whole, columns=(ModelColumn("n", "integer", ""),), missing={"n": 0.0}, output=ANY)
    scorer = kept.load("fraud", 1)
    assert scorer.score([{"n": 3}, {"n": None}]) == [3.0, 0.0]
    good, bad = scorer.score([{"n": 3}, {"n": float("inf")}])
    assert (good, bad.code) == (3.0, "model-failed")


@pytest.mark.parametrize(
    ("inputs", "outputs", "said"),
    [
        ([("x", 1, 4)], 1, "fixed number of rows"),
        ([("x", "n", 4)], 3, "which output"),
    ],
)
def test_an_onnx_model_that_cannot_be_asked_is_refused(inputs, outputs, said, tmp_path):
    from onnx import helper

    nodes = [helper.make_node("Identity", ["x"], [f"p{place}"]) for place in range(outputs)]
    shape = inputs[0][1:]
    made = graph(nodes, [tensor(*each) for each in inputs], [tensor(f"p{place}", *shape) for place in range(outputs)])
    assert said in refused(registry(tmp_path), made).message


def test_an_onnx_model_of_texts_is_refused(tmp_path):
    from onnx import helper

    nodes = [helper.make_node("Identity", ["x"], ["p"])]
    made = graph(nodes, [tensor("x", "n", 4, kind=8)], [tensor("p", "n", 4, kind=8)])
    assert "takes no numbers" in refused(registry(tmp_path), made).message


def test_a_forest_of_several_classes_is_refused(tmp_path):
    import lightgbm

    x, _ = data(300)
    told = {"objective": "multiclass", "num_class": 3, "verbosity": -1, "num_threads": 1}
    made = lightgbm.train(told, lightgbm.Dataset(x, np.arange(300) % 3), 2)
    assert "several scores" in refused(registry(tmp_path), made).message


def test_a_forest_wants_the_categories_it_was_trained_with_in_their_order(tmp_path):
    import lightgbm
    import pandas as pd

    texts = pd.Series(["IN", "CH"] * 100, dtype="category")
    frame = pd.DataFrame({"country": texts, "n": np.arange(200.0)})
    told = {"objective": "binary", "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5}
    made = lightgbm.train(told, lightgbm.Dataset(frame, (texts == "CH").astype(int)), 5)
    columns = (ModelColumn("country", "string", ""), ModelColumn("n", "float", ""))
    error = refused(registry(tmp_path), made, columns=columns, categories={"country": ["IN", "CH"]})
    assert (error.code, "['CH', 'IN']" in error.hint) == ("wrong-columns", True)
    kept = registry(tmp_path)
    add(kept, made, columns=columns, categories={"country": ["CH", "IN"]})
    expected = made.predict(frame.iloc[:2], num_threads=1).tolist()
    assert kept.load("fraud", 1).score([{"country": "IN", "n": 0.0}, {"country": "CH", "n": 1.0}]) == expected


def test_a_scikit_learn_wrapper_of_lightgbm_is_kept_as_its_trees(tmp_path):
    import lightgbm

    x, y = data()
    made = lightgbm.LGBMClassifier(n_estimators=3, verbosity=-1, n_jobs=1).fit(x, y)
    kept = registry(tmp_path)
    assert add(kept, made).format == "lightgbm"
    assert kept.load("fraud", 1).score_columns(dict(zip(NAMES, x[:5].T, strict=True)))[0] == pytest.approx(
        made.booster_.predict(x[:5], num_threads=1)
    )


def test_scikit_learn_gives_the_probability_of_the_second_class(tmp_path):
    kept, (x, _) = registry(tmp_path), data(20)
    model = logistic(NAMES)
    add(kept, model)
    scores, _ = kept.load("fraud", 1).score_columns(dict(zip(NAMES, x.T, strict=True)))
    import pandas as pd

    assert scores == pytest.approx(model.predict_proba(pd.DataFrame(x, columns=list(NAMES)))[:, 1])


def test_a_scikit_learn_model_of_three_classes_is_refused(tmp_path):
    from sklearn.linear_model import LogisticRegression

    x, _ = data(30)
    error = refused(registry(tmp_path), LogisticRegression().fit(x, np.arange(30) % 3), missing="refuse")
    assert (error.code, error.got) == ("bad-model", "3 classes")


def test_types_that_nobody_trusts_are_named_until_they_are_trusted(tmp_path):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    x, y = data()
    made = make_pipeline(FunctionTransformer(double), logistic()).fit(x, y)
    error = refused(registry(tmp_path), made)
    assert error.code == "bad-model"
    assert "test_formats.double" in error.got
    assert add(registry(tmp_path), made, trusted=(error.got.strip("'"),)).trusted == (
        "tests.models.test_formats.double",
    )


def double(rows):
    return rows * 2


def test_threads_are_taken_from_a_model_of_scikit_learn(tmp_path):
    from sklearn.ensemble import RandomForestClassifier

    from headrace.models.formats.estimator import of_estimator
    from tests.models.models import manifest

    x, y = data(50)
    made = RandomForestClassifier(3, n_jobs=2).fit(x, y)
    of_estimator(made, manifest())
    assert made.n_jobs == 1


def test_an_online_model_says_what_river_says(tmp_path):
    kept, model, given = registry(tmp_path), online(), rows(5)
    assert add(kept, model).pickle is False
    assert kept.load("fraud", 1).score(given) == [model.predict_proba_one(row)[True] for row in given]


def test_an_online_regression_and_a_detector_are_scored(tmp_path):
    from river import anomaly, linear_model

    line, trees = linear_model.LinearRegression(), anomaly.HalfSpaceTrees(n_trees=3, height=3, window_size=5, seed=1)
    for row in rows(20):
        line.learn_one(row, row["spend"])
        trees.learn_one(row)
    kept = registry(tmp_path)
    add(kept, line, missing="refuse", output=ANY)
    add(kept, trees, missing="refuse", trusted=("functools.partial",))
    assert kept.load("fraud", 1).score(rows(3)) == [line.predict_one(row) for row in rows(3)]
    assert kept.load("fraud", 2).score(rows(3)) == [trees.score_one(row) for row in rows(3)]


def test_types_of_an_online_model_that_nobody_trusts_are_named(tmp_path):
    from river import anomaly

    error = refused(registry(tmp_path), anomaly.HalfSpaceTrees(n_trees=3, height=3, window_size=5, seed=1))
    assert (error.code, error.got) == ("bad-model", "'functools.partial'")


def test_an_online_model_that_has_learnt_nothing_is_refused(tmp_path):
    from river import tree

    error = refused(registry(tmp_path), tree.HoeffdingTreeClassifier(), missing="refuse")
    assert error.code == "model-failed"


@pytest.mark.parametrize(("source", "name"), [("{}", "score"), ("{}:rate", "rate"), ("rules_for_test:rate", "rate")])
def test_python_is_a_file_or_a_function_of_one(source, name, tmp_path, monkeypatch):
    file = tmp_path / "rules_for_test.py"
    file.write_text("def score(row):\n    return 0.25\n\ndef rate(row):\n    return 0.75\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    kept = registry(tmp_path)
    made = add(kept, source.format(file))
    assert (made.format, made.file) == ("python", f"{name}.py")
    file.unlink()
    assert kept.load("fraud", 1).score(rows(1)) == [0.25 if name == "score" else 0.75]


def steady(row):
    return 0.125


def test_python_may_be_a_function(tmp_path):
    kept = registry(tmp_path)
    assert add(kept, steady).file == "steady.py"
    assert kept.load("fraud", 1).score(rows(1)) == [0.125]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def other(row):\n    return 1", "has no function 'score'"),
        ("import sys\nsys.exit(3)", "ends the process"),
        ("1 / 0", "cannot be used as python"),
    ],
)
def test_python_that_cannot_be_run_is_refused(text, said, tmp_path):
    (tmp_path / "bad.py").write_text(text)
    error = refused(registry(tmp_path), tmp_path / "bad.py")
    assert (error.code, said in error.message) == ("bad-model", True)


@pytest.mark.parametrize("source", [lambda row: 0.5, "no_such_module:score"])
def test_a_function_without_a_file_of_its_own_is_refused(source, tmp_path):
    assert refused(registry(tmp_path), source).message == "The function's file cannot be found."


def test_a_pickle_needs_somebody_who_allows_it(tmp_path):
    assert refused(registry(tmp_path), Halved(), output=ANY, allow_code=False).code == "code-not-allowed"
    kept = registry(tmp_path)
    made = add(kept, Halved(), allow_code=True, output=ANY)
    assert (made.format, made.pickle) == ("pickle", True)


def test_a_pickle_is_not_opened_when_its_manifest_does_not_allow_it(tmp_path):
    kept = registry(tmp_path)
    add(kept, Halved(), allow_code=True, output=ANY)
    file = tmp_path / "models" / "fraud" / "1" / "manifest.json"
    file.write_text(file.read_text().replace('"pickle": true', '"pickle": false'))
    with pytest.raises(DataError) as caught:
        kept.load("fraud", 1)
    assert caught.value.code == "code-not-allowed"


def test_an_online_model_may_be_kept_as_a_pickle(tmp_path):
    kept, model = registry(tmp_path), online()
    add(kept, model, format="pickle", allow_code=True)
    assert kept.load("fraud", 1).score(rows(1)) == [model.predict_proba_one(rows(1)[0])[True]]


def test_a_pickle_of_what_does_not_predict_is_refused(tmp_path):
    (tmp_path / "list.pkl").write_bytes(pickle.dumps([1, 2]))
    error = refused(registry(tmp_path), tmp_path / "list.pkl", allow_code=True)
    assert (error.code, error.got) == ("bad-model", "list")


def test_importing_models_imports_no_library_of_them():
    import subprocess

    code = (
        "import sys, headrace.models\n"
        "print(sorted({'numpy', 'pandas', 'pyarrow', 'onnxruntime', 'lightgbm', 'sklearn', 'skops', 'river', 'pyspark'}"
        " & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


def test_a_rule_is_called_with_the_row_as_it_is(tmp_path):
    kept = registry(tmp_path)
    add(kept, rule(tmp_path))
    assert kept.load("fraud", 1).score([rows(1)[0] | {"spend": 3.0}]) == [0.25]


def wide_logistic():
    from sklearn.linear_model import LogisticRegression

    x = np.random.default_rng(1).normal(size=(200, 20))
    return LogisticRegression().fit(x, (x[:, 0] + x[:, 1] > 0).astype(int))


@pytest.mark.parametrize("make", [wide_logistic, lambda: sigmoid(20)])
def test_a_product_of_many_columns_is_the_same_alone_and_in_a_batch(make, tmp_path):
    columns = tuple(ModelColumn(f"f{place}", "float", "") for place in range(20))
    kept = registry(tmp_path)
    add(kept, make(), columns=columns, missing="refuse")
    scorer, numbers = kept.load("fraud", 1), np.random.default_rng(2).normal(size=(150, 20))
    together, _ = scorer.score_columns({f"f{place}": numbers[:, place] for place in range(20)})
    alone = [scorer.score([{f"f{place}": float(row[place]) for place in range(20)}])[0] for row in numbers]
    assert together.tolist() == alone
