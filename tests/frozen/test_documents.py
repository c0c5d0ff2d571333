"""The JSON documents that Headrace keeps: the files of a model, and an incident."""

from __future__ import annotations

import json

import msgspec

from headrace.drift.incident import DriftAlarm, Incident, IncidentChange
from headrace.drift.reference import Reference
from headrace.drift.series_watch import Point
from headrace.models.columns import ModelColumn
from headrace.models.manifest import Output
from headrace.models.registry import ModelRegistry
from headrace.plan.feature_digest import set_digests
from headrace.testing import FakeClock
from headrace.version import VERSION
from tests.frozen.shop import BASE, MINUTE, plan, risk

SCORE = "def score(row):\n    return 0.5\n"


def indented(document) -> str:
    """A document with a field on each line, in the order in which it is written."""
    return json.dumps(json.loads(msgspec.json.encode(document)), indent=1)


def test_a_model_has_the_files_that_it_had(golden, tmp_path):
    (tmp_path / "risk.py").write_text(SCORE)
    registry = ModelRegistry(tmp_path / "models", FakeClock(BASE), check=lambda folder, made: None)
    digests = set_digests(plan, risk.features)
    columns = tuple(ModelColumn(name, str(kind), digests[name]) for name, kind in risk.columns)
    for _ in range(3):
        registry.add(
            "risk",
            tmp_path / "risk.py",
            features="fraud",
            columns=columns,
            allow_code=True,
            missing={"spent_1h": 0.0},
            output=Output(0.0, None),
            threshold=0.5,
            reference={"spent_1h": msgspec.to_builtins(Reference(4, 0.0, 2.0, 1.0, (0.0, 2.0), (0, 1, 3)))},
            metrics={"auc": 0.9},
            description="Half of everything.",
        )
    registry.promote("risk", 1, "the first")
    registry.challenge("risk", 2, 0.25)
    registry.shadow("risk", 3)
    files = sorted(file for file in (tmp_path / "models").rglob("*") if file.is_file())
    lines = [file.relative_to(tmp_path).as_posix() for file in files]
    for file in ("1/manifest.json", "roles.json"):
        lines += ["", file, (tmp_path / "models" / "risk" / file).read_text().replace(VERSION, "VERSION")]
    golden("frozen/model_files", "\n".join(lines))


def test_an_incident_has_the_form_that_it_had(golden):
    evidence = (Point(BASE, 0.6, 0.1, 0.2),)
    moved = DriftAlarm("mean of amount", BASE, BASE + MINUTE, 0.5, 0.1, 0.6, 2.5, (("DE", 0.4),), evidence, "ab12")
    changes = (IncidentChange("acknowledged", "kim", "looking at it", BASE + 2 * MINUTE),)
    incident = Incident("ab12", "risk", 1, BASE, BASE + MINUTE, (moved,), True, None, changes)
    golden("frozen/incident", indented(incident))
