"""Models over tables: the one scorer in Spark's Python workers, some ten thousand rows at a time, as Arrow columns.

A worker loads a version once for each task it runs. A row that has no score has an error in the place of it, as JSON;
no row costs another its score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import DataError, shown
from headrace.models.manifest import Manifest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    Batches = Iterator[pa.RecordBatch]

SCORE, VERSION, ERROR = "score", "version", "error"
ADDED = (SCORE, VERSION, ERROR)


def scored(frame: DataFrame, folder: Path, manifest: Manifest) -> DataFrame:
    """Rows with their scores.

    Parameters
    ----------
    folder
        Where the version is kept; the workers must reach it.
    """
    from pyspark.sql.types import DoubleType, IntegerType, StringType, StructField, StructType

    taken = [name for name in ADDED if name in frame.columns]
    if taken:
        hint = "Rename them first."
        raise DataError(
            "bad-argument", "The table has columns of the names that scoring adds.", got=shown(taken), hint=hint
        )
    lacking = [name for name in manifest.names if name not in frame.columns]
    if lacking:
        hint = "Make it with `headrace training-set`, or rename its columns."
        raise DataError(
            "wrong-columns", f"The table lacks columns of {manifest.title}.", got=shown(lacking, 200), hint=hint
        )
    added = [StructField(SCORE, DoubleType()), StructField(VERSION, IntegerType()), StructField(ERROR, StringType())]
    schema = StructType([*frame.schema.fields, *added])
    # As one column: Spark would take a dot in the name of a column for a field of it.
    return frame.selectExpr("struct(*) AS row").mapInArrow(_scoring(str(folder)), schema)


def _scoring(folder: str) -> Callable[[Batches], Batches]:
    """What a task does. It runs in Spark's Python workers."""

    def score(given: Batches) -> Batches:
        import json

        import pyarrow as pa

        from headrace.models import formats, manifest
        from headrace.models.scorer import Scorer

        told = manifest.read(Path(folder))
        scorer = Scorer(told, formats.load(Path(folder), told))
        for batch in given:
            rows = pa.RecordBatch.from_struct_array(batch.column(0))
            scores, errors = scorer.score_columns({name: rows.column(name) for name in told.names})
            failed = [json.dumps(errors[at].as_json()) if at in errors else None for at in range(rows.num_rows)]
            columns = [
                pa.array(scores, pa.float64(), from_pandas=True),
                pa.array([told.version] * rows.num_rows, pa.int32()),
                pa.array(failed, pa.string()),
            ]
            yield pa.RecordBatch.from_arrays([*rows.columns, *columns], names=[*rows.schema.names, *ADDED])

    return score
