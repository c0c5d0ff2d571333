"""An import after a crash: every row of the source is in the lake once, and the same import goes on where it was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.clock import SystemClock
from headrace.lake.imports import imports
from tests.faults.image import CrashImages, at_each_point
from tests.spark.test_history import line, opened, rows, wish, writer

pytestmark = pytest.mark.spark

ROWS = 14
AT_ONCE = 9


def bring(spark, folder, lake):
    """The import of one file, into a lake, with its scratch folder."""
    from headrace.spark.imports.history_import import bring as run

    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    asked = wish(folder / "old.jsonl", [line(number) for number in range(ROWS)])
    return run(writer(spark, lake), asked, scratch, most=AT_ONCE, clock=SystemClock())


@pytest.fixture(scope="module")
def images(spark, tmp_path_factory):
    """The first of two batches."""
    folder = tmp_path_factory.mktemp("import")
    made = CrashImages(folder / "world", folder / "images", "import", turns=(0,))
    (folder / "world").mkdir()
    bring(spark, folder / "world", replace(opened(folder / "world" / "lake"), faults=made))
    return made


@at_each_point("import")
def test_the_same_import_goes_on_and_every_row_is_there_once(images, spark, name):
    (taken,) = images.of(name)
    lake = opened(taken.folder / "lake")
    done = bring(spark, taken.folder, lake)
    assert (done.before, done.rows) == ((AT_ONCE, ROWS - AT_ONCE) if name == "import.batch.after" else (0, ROWS))
    fresh = opened(taken.folder / "lake")
    assert [(row["partition"], row["offset"]) for row in rows(fresh.bronze)] == [(-1, at) for at in range(ROWS)]
    assert [row["_event_id"] for row in rows(fresh.silver)] == [f"p{number}" for number in range(ROWS)]
    (known,) = imports(fresh.bronze)
    assert (known.rows, known.ended, known.verdicts["admitted"]) == (ROWS, True, ROWS)
    assert not any((taken.folder / "scratch").iterdir())
