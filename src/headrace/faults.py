"""Fault points: the named instants between two durable changes, at which a process may be killed.

Code that changes files, logs or tables is handed a `FaultPoints` and reaches a point by its name. In operation that
does nothing. A test hands over one that copies every folder at each point: a crash image. It then recovers from the
copy with fresh objects and checks the outcome (`tests/faults`). The point is no exception, because an exception runs
`finally` blocks and flushes, and a killed process does neither.

A name is component.step.before or component.step.after: what is just about to happen, or has just happened. Two points
without a durable change between them are the same instant, so there is only one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

POINTS: Mapping[str, str] = MappingProxyType(
    {
        # A small file that is replaced whole (`files`).
        "file.write.before": "Nothing is written yet; the old file is in place.",
        "file.rename.before": "The new text lies in a file beside the old one.",
        "file.rename.after": "The new file is in place.",
        # The embedded log (`log`).
        "log.topic.before": "A new topic's file is there and empty.",
        "log.topic.after": "A new topic's file has its tables.",
        "log.commit.before": "An append, a group's position or a cleaning is written and not committed.",
        "log.commit.after": "It is committed, and whoever waits for it does not know yet.",
        # The LMDB store (`store`).
        "store.open.after": "The note that the store was closed properly is gone; a process writes.",
        "store.commit.before": "A transaction of rows and positions is written and not committed.",
        "store.commit.after": "The transaction is committed.",
        "store.rebuild.after": "The store was emptied on demand, and the demand is gone.",
        "store.close.before": "The files are closed, and nothing says so.",
        "store.close.after": "The note that the store was closed properly is there.",
        "store.aside.after": "One of the files of a damaged store was moved aside.",
        # The registry of models and their roles (`score`).
        "models.file.after": "A new version's model file is written, in a folder that is no version yet.",
        "models.manifest.after": "Its manifest is beside it, still in that folder.",
        "models.version.after": "The folder has the version's name.",
        "models.roles.before": "A change of roles is decided and not written.",
        "models.roles.after": "The roles are written.",
        # The tables of a stream (`lake`, `spark.archive.lake_writer`).
        "lake.staging.after": "A batch lies staged as Arrow files beside the tables.",
        "lake.files.after": "Its Parquet files are written, and no commit names them.",
        "lake.bronze.before": "Staged files are gone, refused records are in their topics; nothing is committed.",
        "lake.bronze.after": "Bronze is committed, silver is not.",
        "lake.silver.after": "Both tables are committed.",
        "lake.mend.before": "The files that silver lacks after a crash are written, and no commit names them.",
        "keep.compact.before": "A table's small files are about to be merged.",
        "keep.compact.after": "The merged files are committed; the small ones are still on disk.",
        "keep.forget.after": "The table says that old days are forgotten; their rows are still there.",
        "keep.delete.after": "The rows of the forgotten days are taken away.",
        "keep.vacuum.after": "Files that no version needs are removed.",
        # Refused and late records on their way to their topics (`spark.archive.refused_records`).
        "refused.dead.after": "A part of a batch's dead letters is appended; the batch is not committed.",
        "refused.late.after": "A part of a batch's late records is appended; the batch is not committed.",
        # Imports of history (`spark.imports.history_import`).
        "import.rows.after": "A batch of rows lies in the scratch folder.",
        "import.batch.after": "The batch is committed, and its rows are gone from the scratch folder.",
        # The tile pipeline in micro-batches (`spark.pipeline.publish`, `spark.progress`).
        "tiles.append.before": "Spark has noted a batch's offsets and computed its tiles; none is appended.",
        "tiles.append.after": "Tiles and progress are appended; Spark has not committed the batch.",
        "checkpoint.offsets.after": "A batch's offsets are rewritten for another source; their old sum is still there.",
        "checkpoint.sum.after": "The old sum is removed.",
        # The late lane (`spark.late.late_lane`).
        "late.tiles.before": "A pass is about to append the tiles of a lane.",
        "late.tiles.after": "A part of a pass's tiles is appended; the checkpoint files are the old ones.",
        "late.checkpoint.after": "One lane's checkpoint file says how far the pass has come; the next one's does not.",
        # Backfills (`spark.backfill.backfill`).
        "backfill.begin.after": "A new run's hand-over is published; it has no tile.",
        "backfill.tiles.after": "A part of a span's tiles is appended; the run does not say so.",
        "backfill.span.after": "The run says that the span is filled.",
        "backfill.rest.after": "The late lanes of all runs are published; no run is said to be filled.",
        "backfill.filled.after": "The run is said to be filled.",
        # Runs that take each other's place (`spark.pipeline.switch`, `spark.pipeline.retire`).
        "change_over.first.after": "A filled run serves at once, where none has read the log before.",
        "change_over.serving.before": "A run has caught up; the old one is still said to serve.",
        "change_over.serving.after": "The new run is said to serve; the old one has its rows and its checkpoint.",
        "retire.rows.after": "A part of an old run's rows is taken out of the changelog.",
        "retire.clean.after": "The changelog is compacted.",
        "retire.checkpoint.after": "The old run's checkpoint is removed.",
        "retire.run.after": "The old run's hand-over is taken away.",
        # Scoring in the stream (`instream`).
        "scoring.begin.after": "A model's first position is stored; nothing is scored.",
        "scoring.predictions.before": "Events are scored; nothing is appended.",
        "scoring.failures.after": "Events without a prediction are appended with the reason; predictions are not.",
        "scoring.predictions.after": "Predictions are appended; the position is the old one.",
        "scoring.position.after": "The position is stored.",
        # Evaluation (`evaluate`).
        "looks.commit.before": "An evaluation's figures are computed and not committed.",
        "looks.commit.after": "The figures are committed, together with how far the evaluation saw.",
        "looks.compact.after": "The table's many files are merged into few.",
        "looks.vacuum.after": "Files that no recent version needs are removed.",
        "looks.checkpoint.after": "The table's log has a new checkpoint.",
        "alerts.append.before": "New alerts are worked out and not appended.",
        "alerts.append.after": "New alerts are appended.",
        "alerts.post.after": "A receiver has taken an alert; the position is the old one.",
        "alerts.position.after": "The position is behind the alert.",
        # Replays of dead letters (`letters`).
        "letters.note.after": "Letters carry where the stream ends; none is appended to it.",
        "letters.records.after": "Their records are appended; the letters are still there.",
        "letters.done.after": "The letters are taken out.",
        "letters.settle.after": "Letters are taken out whose record an earlier replay had appended.",
        "letters.drop.after": "A part of the letters to drop is taken out.",
        # Samples of what was served (`serve.served_samples`).
        "samples.append.before": "Samples of one view are taken from the buffer and not appended.",
        "samples.append.after": "The samples are appended.",
    }
)
"""Every fault point, and what is durable when it is reached."""


class FaultPoints:
    """Hears of every fault point that is reached, and does nothing.

    Examples
    --------
    >>> FaultPoints().reach("late.tiles.after")
    """

    def reach(self, name: str) -> None:
        """A point is reached.

        Raises
        ------
        ValueError
            For a name that is not in `POINTS`.
        """
        if name not in POINTS:
            raise ValueError(f"{name!r} is no fault point: add it to headrace.faults.POINTS")


NO_FAULTS = FaultPoints()
"""What code is handed outside of tests."""
