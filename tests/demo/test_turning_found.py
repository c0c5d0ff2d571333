"""Thieves change their ways, and the watch over the lake says so: `headrace demo --drift` without its live processes.

History is imported, a model trained as the demo trains it; what it would have been given for every later payment comes
from the lake as it was known at its arrival. Predictions and labels are then looked at as evaluation does.
"""

from __future__ import annotations

import json
import runpy
import sys

import pandas as pd
import pytest

from headrace import training_set
from headrace.cli import drift, import_
from headrace.clock import DAY, micros, show_time
from headrace.config.config import names
from headrace.lake.location import open_lake
from headrace.project_models import models_of
from headrace.spark.archive.archive import StreamArchive
from headrace.testing import FakeClock
from headrace.topics import create as create_topics
from headrace.topics import open_log, topics
from headrace_demo import turning
from headrace_demo.world.files import write_payments
from tests.demo.test_turning import shop
from tests.evaluation.predicted import predicted

pytestmark = [pytest.mark.prove, pytest.mark.spark]

SPINE = """
SELECT id, card, merchant, amount, lat, lon, at, _arrived_at AS t, _arrived_at, _partition, _offset
FROM payments_silver WHERE amount > 0 AND _arrived_at >= TIMESTAMP '{}'
"""


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """The demo's project, which verbs find because it is the current folder."""
    made = shop(tmp_path / "shop")
    monkeypatch.chdir(made.config.root)
    monkeypatch.syspath_prepend(str(made.config.root))
    yield made
    sys.modules.pop("features", None)


def imported(file, stream):
    assert import_.command.main([file, "--stream", stream], standalone_mode=False) == 0


def predictions(loaded, rows):
    """What the champion says of payments, as records."""
    features, champion = loaded.plan().model("risk").features, models_of(loaded).load("risk", 1)
    given = rows[list(features.columns)].astype(object).where(rows[list(features.columns)].notna(), None)
    scores = champion.score(given.to_dict("records"))
    for row, values, score in zip(rows.to_dict("records"), given.to_dict("records"), scores, strict=True):
        yield predicted(
            row["id"],
            score,
            row["t"].value // 1_000,
            event_time=row["at"].value // 1_000,
            card=row["card"],
            decision=champion.manifest.decision(score),
            features=values,
        )


def test_patient_thieves_are_one_incident_that_names_the_cause(loaded, spark, capsys):
    folder, naming = loaded.config.root, names(loaded.config)
    replay = turning.written(folder, turning.world_of(7))
    imported("history.jsonl", "payments")
    runpy.run_path("train.py", run_name="__main__")

    write_payments(replay.payments, folder / "replay.jsonl")
    (folder / "disputes.jsonl").write_bytes(b"\n".join(turning.dispute(each) for each in replay.labels))
    imported("replay.jsonl", "payments")
    imported("disputes.jsonl", "disputes")
    spine = SPINE.format(show_time(turning.BEGIN))
    rows = training_set(spine, "fraud", include_event="payments", out="sets/replay").toPandas()
    for moment in ("t", "at"):
        rows[moment] = pd.to_datetime(rows[moment], utc=True)

    stream = loaded.plan().model("risk").predictions
    clock = FakeClock(turning.world_of(7).start)
    with open_log(loaded.config, clock) as log:
        create_topics(log, topics(loaded.plan(), naming, 1))
        log.append_batch(naming.topic(stream.name), list(predictions(loaded, rows)))
        clock.advance("1m")  # an append may take a moment to be seen
        archive = StreamArchive(stream, naming.topic(stream.name), log, open_lake(loaded.config, stream), spark, clock)
        while archive.step(1_000_000):
            pass
    capsys.readouterr()
    assert drift.command.main(["--json"], standalone_mode=False) == 1
    (told,) = json.loads(capsys.readouterr().out)
    (incident,) = told["incidents"]
    assert incident["kind"] == "concept"
    assert abs(micros(incident["since"]) - replay.turned) <= DAY
