"""`headrace backfill`: its table has every step, with all that it waited for, and it says how far it is."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

from headrace import batch
from headrace.cli import progress_bar
from headrace.cli.init import create
from headrace.cli.main import main
from headrace.cli.progress_bar import bar_or_lines
from headrace.spark.backfill.step import BEGIN, END, LATE, SPARK, BackfillStep, StepTimes
from headrace.tiles.changelog import FILLED, HandOver

TILES = "payments.by_card"
STEPS = [SPARK, BEGIN, TILES, LATE, END]


@pytest.fixture
def filled(tmp_path, monkeypatch):
    """A project whose backfill goes through its steps and does nothing."""
    create(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")

    def backfill(loaded, view, *, rate, progress):
        from headrace.spark.backfill.backfill import Filled

        (tile_set,) = loaded.plan().tile_sets
        made = HandOver(tile_set.fingerprint, "2", 0, {}, {}, 1, stage=FILLED, filled=0)
        for name, rows, share in [(SPARK, 0, 0.0), (BEGIN, 0, 0.0), (TILES, 0, 0.0), (TILES, 7, 1.0)]:
            progress(BackfillStep(name, rows, share))
        for lanes, rows in enumerate([0, 2, 5]):
            progress(BackfillStep(LATE, rows, 1.0, f"{lanes} of 2 lanes"))
        progress(BackfillStep(END, 0, 1.0))
        return [Filled(made, 0, 7)]

    monkeypatch.setattr(batch, "backfill", backfill)


@pytest.mark.usefixtures("filled")
def test_the_table_of_a_backfill_accounts_for_every_step(capsys):
    assert main(["backfill"]) == 0
    said = capsys.readouterr()
    rows = [line.split("  ")[0] for line in said.out.splitlines()]
    assert rows == ["step", *STEPS, "all"]
    assert [line[7:].partition(":")[0] for line in said.err.splitlines()[:-1]] == STEPS
    assert main(["backfill", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["steps"]) == STEPS
    assert told["seconds"] == pytest.approx(sum(told["steps"].values()), abs=0.01)
    assert [(run["tile_set"], run["rows"]) for run in told["runs"]] == [(TILES, 7)]


def test_where_nobody_looks_a_line_says_what_began_and_how_far_that_is_now_and_then(capsys, monkeypatch):
    with bar_or_lines("backfilling", 10) as advance:
        for done in range(5):
            advance(done, None, f"tiles: {done} rows")
        monkeypatch.setattr(progress_bar, "LINES_EVERY", 0.0)
        advance(5, None, "tiles: 5 rows")
    assert capsys.readouterr().err.splitlines() == ["  0 %  tiles: 0 rows", " 50 %  tiles: 5 rows"]


@pytest.mark.usefixtures("filled")
def test_a_backfill_says_how_far_its_late_lanes_are(capsys, monkeypatch):
    monkeypatch.setattr(progress_bar, "LINES_EVERY", 0.0)
    assert main(["backfill"]) == 0
    said = [line[7:] for line in capsys.readouterr().err.splitlines() if LATE in line]
    assert said == [f"{LATE}: 0 of 2 lanes", f"{LATE}: 2 rows, 1 of 2 lanes", f"{LATE}: 5 rows, 2 of 2 lanes"]


def test_the_steps_of_a_backfill_account_for_all_of_its_time(tmp_path, monkeypatch):
    create(tmp_path / "shop")
    now = [0.0]

    @contextmanager
    def session_of(*_):
        now[0] += 5.0
        yield None
        now[0] += 3.0

    def run_backfill(*_, progress, **__):
        for name in (BEGIN, TILES, LATE):
            progress(BackfillStep(name))
            now[0] += 2.0
        return []

    monkeypatch.setattr(batch, "session_of", session_of)
    monkeypatch.setattr("headrace.spark.backfill.project_backfill.run_backfill", run_backfill)
    times, steps = StepTimes(lambda: now[0]), list[str]()

    def take(step):
        times.take(step)
        steps.append(step.name)

    assert batch.backfill(tmp_path / "shop", progress=take) == []
    assert steps == [SPARK, BEGIN, TILES, LATE, END]
    times.end()
    assert times.seconds == {SPARK: 5.0, BEGIN: 2.0, TILES: 2.0, LATE: 2.0, END: 3.0}
    assert sum(times.seconds.values()) == now[0]
