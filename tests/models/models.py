"""Small models of every format, and the manifests and registries that tests of them need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from headrace.models import Manifest, ModelColumn, ModelRegistry
from headrace.testing import FakeClock

NAMES = ("payments", "spend", "ratio", "night")
TYPES = ("integer", "float", "float", "boolean")
COLUMNS = tuple(
    ModelColumn(name, kind, f"f{place}") for place, (name, kind) in enumerate(zip(NAMES, TYPES, strict=True))
)
FORMATS = ("onnx", "lightgbm", "sklearn", "river", "python", "pickle")


class Halved:
    """An estimator of nobody's library: half the first column, and an error for a negative one."""

    def predict(self, rows: Any) -> Any:
        if (rows[:, 0] < 0).any():
            raise ValueError("negative")
        return np.nan_to_num(rows[:, 0]) / 2


def manifest(columns: tuple[ModelColumn, ...] = COLUMNS, **fields: Any) -> Manifest:
    made = Manifest(
        model="fraud",
        version=3,
        created_at=0,
        headrace="0",
        format="python",
        file="score.py",
        sha256="",
        features="habits",
        columns=columns,
    )
    return replace(made, **fields)


def registry(folder: Path) -> ModelRegistry:
    return ModelRegistry(folder / "models", FakeClock("2026-01-01T00:00:00Z"))


def data(rows: int = 400) -> tuple[Any, Any]:
    """Numbers and labels that any model can learn."""
    made = np.random.default_rng(7).normal(size=(rows, len(NAMES)))
    return made, (made[:, 0] + made[:, 1] * made[:, 2] > 0).astype(int)


def booster(names: tuple[str, ...] | None = NAMES) -> Any:
    import lightgbm

    x, y = data()
    told = "auto" if names is None else list(names)
    options = {"objective": "binary", "verbosity": -1, "num_threads": 1, "num_leaves": 7, "min_data_in_leaf": 5}
    return lightgbm.train(options, lightgbm.Dataset(x, y, feature_name=told), 10)


def logistic(names: tuple[str, ...] | None = None) -> Any:
    import pandas as pd
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    x, y = data()
    x = x if names is None else pd.DataFrame(x, columns=list(names))
    return make_pipeline(SimpleImputer(), LogisticRegression()).fit(x, y)


def online() -> Any:
    from river import compose, linear_model, preprocessing, stats

    x, y = data(100)
    model = compose.Pipeline(
        preprocessing.StatImputer(*((name, stats.Mean()) for name in NAMES)), linear_model.LogisticRegression()
    )
    for row, label in zip(x, y, strict=True):
        model.learn_one(dict(zip(NAMES, row.tolist(), strict=True)), bool(label))
    return model


def graph(nodes: list[Any], inputs: list[Any], outputs: list[Any], constants: list[Any] = []) -> Any:  # noqa: B006
    from onnx import helper

    made = helper.make_graph(nodes, "tiny", inputs, outputs, constants)
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(made, opset_imports=sets, ir_version=9)


def tensor(name: str, *shape: Any, kind: int = 1) -> Any:
    """An input or output; kind 1 is float32, 7 int64, 8 text."""
    from onnx import helper

    return helper.make_tensor_value_info(name, kind, list(shape))


def sigmoid(width: int = len(NAMES)) -> Any:
    """A logistic regression whose one output is [n, 1]; a missing value counts as zero."""
    from onnx import helper

    weights = helper.make_tensor("w", 1, [width, 1], [0.5 - 0.3 * place for place in range(width)])
    zero = helper.make_tensor("zero", 1, [1], [0.0])
    nodes = [
        helper.make_node("IsNaN", ["x"], ["gone"]),
        helper.make_node("Where", ["gone", "zero", "x"], ["there"]),
        helper.make_node("MatMul", ["there", "w"], ["z"]),
        helper.make_node("Sigmoid", ["z"], ["p"]),
    ]
    return graph(nodes, [tensor("x", "n", width)], [tensor("p", "n", 1)], [weights, zero])


def classifier(*, zipmap: bool) -> Any:
    """A linear classifier of two classes, its probabilities as [n, 2] or as a dict for each row."""
    from onnx import helper

    width = len(NAMES)
    weights = [0.5 - 0.3 * place for place in range(width)]
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["label", "p"],
            domain="ai.onnx.ml",
            coefficients=[-each for each in weights] + weights,
            intercepts=[0.0, 0.0],
            classlabels_ints=[0, 1],
            multi_class=0,
            post_transform="SOFTMAX",
        )
    ]
    label = tensor("label", "n", kind=7)
    if not zipmap:
        return graph(nodes, [tensor("x", "n", width)], [label, tensor("p", "n", 2)])
    nodes.append(helper.make_node("ZipMap", ["p"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=[0, 1]))
    kind = helper.make_sequence_type_proto(helper.make_map_type_proto(7, helper.make_tensor_type_proto(1, [])))
    return graph(nodes, [tensor("x", "n", width)], [label, helper.make_value_info("maps", kind)])


RULE = """
def score(row):
    spend = row["spend"] or 0.0
    return 1.0 / (1.0 + abs(spend))
"""


def rule(folder: Path) -> Path:
    file = folder / "rules.py"
    file.write_text(RULE, encoding="utf-8")
    return file


def of_format(form: str, folder: Path) -> Any:
    """A model of a format, as it is handed to `ModelRegistry.add`."""
    made: dict[str, Any] = {
        "onnx": sigmoid,
        "lightgbm": booster,
        "sklearn": logistic,
        "river": online,
        "python": lambda: rule(folder),
        "pickle": Halved,
    }
    return made[form]()


def add(registry: ModelRegistry, source: Any, model: str = "fraud", **fields: Any) -> Manifest:
    return registry.add(model, source, features="habits", **{"columns": COLUMNS, "allow_code": True} | fields)


def rows(count: int = 5) -> list[dict[str, Any]]:
    numbers = np.random.default_rng(3).normal(size=(count, 2))
    return [
        {"payments": place, "spend": float(a), "ratio": float(b), "night": place % 2 == 0}
        for place, (a, b) in enumerate(numbers)
    ]


def columns_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: np.array([row[name] for row in rows]) for name in NAMES}
