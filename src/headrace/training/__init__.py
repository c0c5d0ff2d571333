"""Training sets: rows of keys, times and labels in, the features that were known at those times out.

    request                                 the arguments, checked before anything starts
    feature_columns                         the features behind names, and the names of their columns
    spine_source, spine_files, spine_sql    the spine: from pandas, Spark, files, Delta, or SQL over the lake
    spine_columns, spine_facts              the columns that a spine must have, and one pass that checks them
    row_selection                           samples, negatives left out, splits by time
    lake_tables                             the tables of the lake, each in one version
    build, result, reproduce                the steps in order, what they give, and the same set again
    output_folder, manifest                 data and manifest on disk

Values come from `spark.training.features`, on-demand features from `spark.on_demand`. `headrace training-set` is the
command line. Importing this loads no engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.public_calls import check_call

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.project import Project


@check_call
def training_set(  # noqa: PLR0913
    spine: Any,
    features: Any,
    *,
    time: str = "t",
    mode: str = "as_known",
    include_event: str | None = None,
    sample: float | None = None,
    downsample: str | None = None,
    split: str | Sequence[Any] | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    format: str = "parquet",
    project: Project | str | Path | None = None,
    spark: SparkSession | None = None,
) -> Any:
    """Give every row of a spine the features that were known at its time.

    A pandas DataFrame comes back as pandas, with its index and in its order; everything else as a Spark DataFrame.

    Parameters
    ----------
    spine
        Rows with keys, a time and whatever else, such as labels: a pandas or Spark DataFrame, the path of a CSV or
        Parquet file or of a folder, a Delta table, or SQL over the lake (`SELECT ... FROM payments_silver`).
    features
        The name of a view or a feature set, or a list of them.
    time
        The column that says when.
    mode
        "as_known" counts an event from its arrival, as serving did; "as_happened" from when it happened.
    include_event
        The stream whose events the rows are, with their `_arrived_at`, `_partition` and `_offset`: each counts itself.
    sample
        The share of rows to keep.
    downsample
        `COLUMN=VALUE:RATE`, as in "label=0:0.1": of such rows only a share stays. A column `weight` says how many rows
        each stands for.
    split
        Shares, "0.8,0.1,0.1", or moments between parts: a column `split` says train, validation or test, by time.
    seed
        Other rows are chosen by another seed.
    out
        A new folder to write the set to, with a manifest.
    format
        "parquet" or "delta".
    project
        A loaded project or its folder; the current folder when left out.
    spark
        The session to use, whose workers have Headrace installed; otherwise that of the spine, or one that is active,
        or a local one.
    """
    from headrace.training.request import read_request
    from headrace.training.result import make_result

    asked = read_request(
        features,
        time=time,
        mode=mode,
        include_event=include_event,
        sample=sample,
        downsample_by=downsample,
        split_by=split,
        seed=seed,
        format=format,
    )
    return make_result(asked, spine, out, project, spark)
