"""A model watched over the windows in the lake: one incident for a cause, the same after any restart."""

from __future__ import annotations

import json
import random

import msgspec
import pytest

from headrace import project
from headrace.cli import drift, incidents
from headrace.cli.init import create
from headrace.clock import DAY, HOUR
from headrace.drift.incident import DriftAlarm
from headrace.drift.reference import Reference
from headrace.drift.statistics import Statistics
from headrace.drift.watcher import Watching
from headrace.drift.window import SCORE, DriftWindow
from headrace.evaluation import drift_watch
from headrace.evaluation.alerts import publish_alerts
from headrace.evaluation.cells import Cells
from headrace.evaluation.drift_watch import IncidentAction, WatchedVersion, do, find_versions
from headrace.evaluation.pass_table import PassTable
from headrace.evaluation.spreads import SpreadTable, references
from headrace.log import MemoryLog
from headrace.spark.evaluation.outcomes import PassPosition
from headrace.spark.evaluation.spreads import score_reference
from headrace.testing import FakeClock
from headrace.topics import ALERTS, INCIDENTS
from tests.evaluation.shop import by_id, plan, risk
from tests.moments import refuse_numbers_in
from tests.streams import BASE

AMOUNT = Reference(
    rows=1_000,
    null_rate=0.0,
    mean=10.0,
    stddev=2.0,
    edges=(0.0, 8.0, 10.0, 12.0, 20.0),
    counts=(0, 200, 300, 300, 200, 0),
)
START = BASE - BASE % DAY
CHANGED = 40 * 24


class World:
    def __init__(self, folder):
        self.folder = folder
        create(folder)
        (folder / "features.py").write_text("from tests.evaluation.shop import *\n")
        self.config = project.load(folder).config
        self.log = MemoryLog(clock=FakeClock(BASE))
        for topic in (ALERTS, INCIDENTS):
            self.log.create_topic(topic)
        self.looks, self.written = PassTable(self.config, "model.risk"), 0

    def write(self, hours, mean, upto=0):
        """Windows of a day's rhythm with some noise; `mean` says how far they are off at each."""
        rows = []
        for hour in hours:
            chance, off = random.Random(hour), mean(hour)
            level = 10.0 + 2.0 * off + (0.6 if 8 <= hour % 24 < 20 else -0.6) + chance.gauss(0, 0.05)
            counts = tuple(int(100 * share) for share in (0, 2, 3, 3, 2, 0))
            held = {
                "amount": Statistics(1_000, 0, level, 4_000.0, counts, against=AMOUNT.fingerprint),
                SCORE: Statistics(1_000, 0, 0.1, 10.0, (0, 1_000, *(0,) * 20), against=score_reference().fingerprint),
            }
            for name, each in held.items():
                told = msgspec.json.encode(each).decode()
                rows.append({"window": START + hour * HOUR, "version": 1, "part": name, "value": "", "told": told})
        self.written += 1
        self.looks.append(rows, json.dumps({"positions": {"0": upto}, "version": self.written}), self.written)

    def watch(self):
        (found,) = find_versions(plan, self.config, self.log, None, risk)
        return found


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(drift_watch, "references", lambda *_: {1: {"amount": AMOUNT, SCORE: score_reference()}})
    return World(tmp_path / "shop")


def changed(hour):
    return 0.8 if hour >= CHANGED else 0.0


def test_a_rhythm_is_no_incident(world):
    world.write(range(60 * 24), lambda _: 0.0)
    assert world.watch().incidents == []


def test_a_change_is_one_incident_that_says_what_moved_and_since_when(world):
    world.write(range(60 * 24), changed)
    (found,) = world.watch().incidents
    assert found.moved.series == "mean of amount"
    assert found.moved.effect == pytest.approx(0.8, abs=0.1)
    assert abs(found.since - (START + CHANGED * HOUR)) <= 6 * HOUR
    assert found.kind == "inputs"


def test_it_is_the_same_incident_however_the_windows_came(world, tmp_path, monkeypatch):
    world.write(range(60 * 24), changed)
    parts = World(tmp_path / "other")
    for first in range(0, 60 * 24, 400):
        parts.write(range(first, min(60 * 24, first + 400)), changed)
        parts.watch()
    assert [each.id for each in parts.watch().incidents] == [each.id for each in world.watch().incidents]


def test_what_people_do_is_remembered_and_a_closed_one_is_watched_from_its_new_level(world):
    world.write(range(50 * 24), changed)
    (found,) = world.watch().incidents
    upto = START + 50 * 24 * HOUR
    do(world.config, world.log, IncidentAction(found.id, "acknowledged", "kim", "looking", BASE, upto - DAY))
    assert world.watch().incidents[0].state == "acknowledged"
    do(world.config, world.log, IncidentAction(found.id, "closed", "kim", "a new tariff", BASE, upto - DAY))
    world.write(range(50 * 24, 80 * 24), changed)
    (closed,) = world.watch().incidents
    assert (closed.state, [each.who for each in closed.changes]) == ("closed", ["kim", "kim"])


def test_predictions_that_labels_were_not_joined_with_are_left_for_later(world):
    world.write(range(10), lambda _: 0.0, upto=100)
    world.write(range(10, 30), lambda _: 0.0, upto=300)
    table = SpreadTable(world.config, risk)
    assert [len(table.windows(1, table.last_within([{0: offset}]))) for offset in (99, 100, 299, 300)] == [
        0,
        10,
        10,
        30,
    ]
    seen = PassPosition(
        known_until=START + 400 * HOUR, predictions={0: 299}, labels={}, prediction_version=1, label_version=1
    )
    Cells(world.config, by_id).restate({}, seen, 1)
    assert len(world.watch().windows) == 9  # the newest is not over


def test_alerts_of_an_incident_are_told_once(world):
    world.write(range(60 * 24), changed)
    assert publish_alerts(world.config, world.log, world.watch().incidents) == 1
    assert publish_alerts(world.config, world.log, world.watch().incidents) == 0


def asked(world, *words):
    """What a verb says of the project."""
    from click.testing import CliRunner

    verb, *rest = words
    command = {"drift": drift.command, "incidents": incidents.command}[verb]
    found = CliRunner().invoke(command, [*rest, "--project", str(world.folder)], standalone_mode=False)
    refuse_numbers_in(found.output)
    return found


def test_the_verbs_show_an_incident_and_let_people_close_it(world, tmp_path):
    world.write(range(60 * 24), changed)
    (found,) = world.watch().incidents
    said = asked(world, "drift", "--no-look")
    assert found.id in said.output
    assert "mean of amount" in said.output
    assert said.return_value == 1
    told = json.loads(asked(world, "drift", "--no-look", "--json").output)
    assert told[0]["incidents"][0]["id"] == found.id
    page, picture = tmp_path / "drift.html", tmp_path / "evidence.svg"
    asked(world, "drift", "--no-look", "--html", str(page))
    assert found.id in page.read_text()
    assert found.id in asked(world, "incidents", "list").output
    assert "mean of amount" in asked(world, "incidents", "show", found.id, "--svg", str(picture)).output
    assert picture.read_text().startswith("<svg")
    asked(world, "incidents", "acknowledge", found.id, "--why", "looking", "--who", "kim")
    asked(world, "incidents", "close", found.id, "--why", "a new tariff", "--who", "kim")
    assert "closed by kim" in asked(world, "incidents", "show", found.id).output
    assert found.id not in asked(world, "incidents", "list").output
    assert found.id in asked(world, "incidents", "list", "--all").output
    assert asked(world, "drift", "--no-look").return_value == 0


def test_every_incident_is_listed_page_by_page(world, monkeypatch, tmp_path):
    watching = Watching("risk", 1, {})
    for at in range(38):
        moved = DriftAlarm("mean of amount", at * DAY, at * DAY, effect=0.5, before=0.0, now=0.5, times_least=2.5)
        watching._state.ledger.add(moved, 0)
    monkeypatch.setattr(drift, "watched", lambda *_: [WatchedVersion(risk, 1, [DriftWindow(0, HOUR)], watching)])
    every, first = [each.id for each in reversed(watching.incidents)], [True] * 20 + [False] * 18
    assert len(json.loads(asked(world, "incidents", "list", "--json").output)) == 38
    assert len(json.loads(asked(world, "drift", "--no-look", "--json").output)[0]["incidents"]) == 38
    page = tmp_path / "drift.html"
    told = asked(world, "drift", "--no-look", "--html", str(page)).output
    assert [name in told for name in every] == first
    assert "18 older ones are not shown: `headrace incidents list --all` lists them" in told
    assert [name in page.read_text() for name in every] == [True] * 38
    listing = asked(world, "incidents", "list").output
    assert [name in listing.partition("older ones")[0] for name in every] == first
    assert f"18 older ones: `headrace incidents list --after {every[19]}`." in listing
    rest = asked(world, "incidents", "list", "--after", every[19]).output
    assert [name in rest for name in every] == [not each for each in first]
    assert asked(world, "incidents", "list", "--after", "nothing").exception.code == "not-found"


@pytest.mark.parametrize("verb", [["incidents", "list"], ["drift", "--no-look"]], ids=" ".join)
def test_a_model_that_has_no_version_yet_is_left_out_and_hides_no_other(world, monkeypatch, verb):
    world.write(range(60 * 24), changed)
    (found,) = world.watch().incidents
    risks = {1: {"amount": AMOUNT, SCORE: score_reference()}}
    monkeypatch.setattr(drift_watch, "references", lambda *of: risks if of[1].name == "risk" else references(*of))
    monkeypatch.setenv("HEADRACE_DRIFT_WATCH", "all")
    young = 'import headrace as hr\nyoung = hr.model("young", risk.features, stream=payments)\n'
    with (world.folder / "features.py").open("a") as features:
        features.write(young)
    said = asked(world, *verb)
    assert said.exception is None
    assert found.id in said.stdout
    assert "Model 'young' has no version yet, and is left out" in said.stderr


def test_an_incident_that_is_not_there_is_told(world):
    world.write(range(60 * 24), changed)
    refused = asked(world, "incidents", "close", "nothing", "--why", "x").exception
    assert refused.code == "not-found"


def test_before_the_reference_period_is_over_nothing_is_watched(world):
    world.write(range(5 * 24), lambda _: 0.0)
    assert world.watch().incidents == []
    assert asked(world, "drift", "--no-look").return_value == 0
