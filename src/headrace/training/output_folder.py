"""A training set in its folder: the data as Parquet or Delta, and beside it, last, the manifest.

The folder must be new or empty. What is half written when something fails is taken away; what a kill leaves behind has
no manifest, and is refused by whoever looks for one.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import DataError, UsageError, shown
from headrace.training.manifest import DATA, FILE
from headrace.training.request import TrainingRequest
from headrace.training.row_selection import SPLIT, WEIGHT

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def folder_of(out: str | Path) -> Path:
    """The folder of a training set that is to be made; one with something in it is refused."""
    if "://" in str(out):
        hint = "Name a folder that Spark's tasks can reach, and copy it when it is done."
        raise UsageError("bad-usage", "A training set is written to a folder.", got=shown(str(out)), hint=hint)
    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        message = "The folder for the training set is there, and has something in it."
        left = folder.is_dir() and (folder / DATA).exists() and not (folder / FILE).exists()
        hint = "Name another; a training set is never written over."
        if left:
            hint = "It has no manifest, so it was cut off while it was made: remove it, or name another."
        raise DataError("training-set-there", message, got=shown(str(out)), hint=hint)
    return folder


@contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """The data's folder, to be filled; it is taken away if that fails."""
    there = folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder / DATA
    except BaseException:
        shutil.rmtree(folder / DATA if there else folder, ignore_errors=True)
        raise


def files_in(data: Path) -> list[str]:
    """The files with the rows of a training set."""
    return sorted(str(each.resolve()) for each in data.glob("*.parquet"))


def write_arrow(rows: pa.Table, data: Path) -> None:
    """Write rows that are in memory."""
    import pyarrow.parquet as pq

    data.mkdir()
    pq.write_table(rows, data / "part-00000.parquet", compression="zstd")


def as_delta(data: Path) -> None:
    """Make a Delta table of a folder of Parquet files, where it lies."""
    from deltalake import convert_to_deltalake

    convert_to_deltalake(str(data))


def content(
    session: SparkSession, data: Path, wish: TrainingRequest, columns: list[str]
) -> tuple[DataFrame, dict[str, Any]]:
    """The rows that were written, and what a manifest says of them."""
    from headrace.spark.training.column_summary import summary
    from headrace.spark.training.spine import answers, read_back

    frame = read_back(session, files_in(data))
    asked = {"rows": "count(*)"}
    if wish.downsample is not None:
        asked["weight"] = f"sum({WEIGHT})"
    if wish.split is not None:
        asked |= {part: f"count_if({SPLIT} = '{part}')" for part in wish.split.parts}
    said = answers(frame, asked)
    told = {"rows": said.pop("rows")}
    told |= {"weight": said.pop("weight")} if wish.downsample is not None else {}
    told |= {"splits": said} if wish.split is not None else {}
    return frame, told | {"columns": summary(frame, columns)}
