"""ONNX: one input with all columns, or one input for each; one score for each row, or the probabilities of two classes.

A session has one thread: a batch is small, and many are asked for at once. Numbers are cast to what the inputs take,
mostly float32.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import DataError
from headrace.models.columns import name_differences, refuse_differences
from headrace.models.formats.files import copied, is_file, of_library
from headrace.models.libraries import library
from headrace.models.manifest import Manifest
from headrace.models.predictors import BLOCK, OfMatrix
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.models.predictors import Matrix

FILE = "model.onnx"
CASTS = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
}
"""What inputs may take, as numpy names it."""
LABELS = ("tensor(int64)", "tensor(string)", "tensor(bool)")
"""What the labels of a classifier are, which come before its probabilities."""


def fits(source: Any) -> bool:
    """Whether a source is of this format."""
    return of_library(source, "onnx") or is_file(source, ".onnx", begins=b"")


def save(source: Any, folder: Path) -> str:
    """Keep an `onnx.ModelProto` or a file."""
    if isinstance(source, str | Path):
        return copied(source, folder, FILE)
    (folder / FILE).write_bytes(source.SerializeToString())
    return FILE


def load(folder: Path, manifest: Manifest) -> OfMatrix:
    """Open a session."""
    runtime = library("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 4  # what is wrong is raised as well
    content = (folder / manifest.file).read_bytes()
    session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    feed, output = _feed(session.get_inputs(), manifest), _output(session.get_outputs())

    def call(matrix: Matrix) -> Any:
        return _scores(session.run([output], feed(matrix))[0])

    return OfMatrix(call, BLOCK)


def _feed(inputs: list[Any], manifest: Manifest) -> Callable[[Matrix], dict[str, Any]]:
    """How a matrix becomes the inputs of the session."""
    names, width = [each.name for each in inputs], len(manifest.columns)
    for each in inputs:
        if each.type not in CASTS:
            hint = "Export it with inputs of numbers."
            raise DataError("bad-model", f"Input {each.name!r} takes no numbers.", got=each.type, hint=hint)
        if not each.shape or isinstance(each.shape[0], int):
            message = f"Input {each.name!r} takes a fixed number of rows."
            raise DataError("bad-model", message, got=str(each.shape), hint="Export it with a free first dimension.")
    if len(inputs) == 1 and (names[0] not in manifest.names or width > 1):
        wide = inputs[0].shape[-1] if len(inputs[0].shape) == 2 else 1
        if isinstance(wide, int) and wide != width:
            hint = "Add the model with the feature set that it was trained on."
            raise DataError("wrong-columns", f"The model takes {show_count(wide, 'column')}, not {width}.", hint=hint)
        cast = CASTS[inputs[0].type]
        return lambda matrix: {names[0]: _cast(matrix, cast)}
    refuse_differences(name_differences(names, manifest.names), "The ONNX model")
    parts = [(each.name, CASTS[each.type], len(each.shape)) for each in inputs]

    def by_name(matrix: Matrix) -> dict[str, Any]:
        return {
            name: _cast(matrix[:, place] if rank == 1 else matrix[:, place : place + 1], cast)
            for place, (name, cast, rank) in enumerate(parts)
        }

    return by_name


def _cast(values: Matrix, cast: str) -> Any:
    import numpy as np

    if cast.startswith("int") and not np.isfinite(values).all():
        raise ValueError("An input takes whole numbers, and a value is missing.")
    with np.errstate(over="ignore"):  # what is too great for float32 is infinite there
        return np.ascontiguousarray(values, dtype=cast)


def _output(outputs: list[Any]) -> str:
    """The output with the scores: the only one, or that which follows the labels."""
    if len(outputs) == 2 and outputs[0].type in LABELS:
        return str(outputs[1].name)
    if len(outputs) == 1:
        return str(outputs[0].name)
    got = ", ".join(f"{each.name} {each.type}" for each in outputs)
    hint = "Export it with one output, or with a label and its scores."
    raise DataError("bad-model", "Nobody can tell which output has the scores.", got=got, hint=hint)


def _scores(found: Any) -> Any:
    import numpy as np

    if isinstance(found, list):  # a dict of probabilities by class for each row
        if found and len(found[0]) != 2:
            raise ValueError(f"The model tells {show_count(len(found[0]), 'class', 'classes')} apart, not two.")
        return np.array([each[max(each)] for each in found], dtype=np.float64)
    if found.ndim == 2 and found.shape[1] <= 2:
        return found[:, -1]
    return found
