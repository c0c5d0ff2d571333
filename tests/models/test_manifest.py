"""Manifests: what is written is read, and what nobody knows is refused."""

from __future__ import annotations

import json

import pytest

from headrace.errors import DataError
from headrace.models import ModelColumn, Output
from headrace.models.manifest import FILE, checked, read, write
from tests.models.models import manifest

TEXT = ModelColumn("country", "string", "9")


def test_a_manifest_is_read_as_it_was_written(tmp_path):
    made = manifest(
        columns=(TEXT, ModelColumn("n", "integer", "1")),
        created_at=1_767_225_600_000_001,
        missing={"n": 0.5},
        categories={"country": ("CH", "IN")},
        output=Output(low=None, high=9.0),
        threshold=0.5,
        training_set={"id": "ab", "rows": 7},
        reference={"n": {"mean": 2.0}},
        metrics={"auc": 0.9},
        description="first",
        trusted=("shop.Scaler",),
    )
    write(tmp_path, made)
    assert read(tmp_path) == made


def test_moments_are_readable_in_the_file(tmp_path):
    write(tmp_path, manifest(created_at=1_767_225_600_000_000))
    assert json.loads((tmp_path / FILE).read_text())["created_at"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"manifest": 2}, "form that this version does not know"),
        ({"model": 7}, "does not say what a manifest says"),
        ({"surprise": 1}, "does not say what a manifest says"),
        ({"created_at": "yesterday"}, "does not say what a manifest says"),
        ({"file": "../other"}, "outside its folder"),
    ],
)
def test_a_manifest_that_says_something_else_is_refused(tmp_path, change, said):
    write(tmp_path, manifest())
    told = json.loads((tmp_path / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps(told | change))
    with pytest.raises(DataError, match=said) as caught:
        read(tmp_path)
    assert caught.value.code == "bad-model"


@pytest.mark.parametrize("text", [None, "", "{", "[]", "\xff"])
def test_a_manifest_that_cannot_be_read_is_refused(tmp_path, text):
    if text is not None:
        (tmp_path / FILE).write_text(text, encoding="latin-1")
    with pytest.raises(DataError) as caught:
        read(tmp_path)
    assert caught.value.code == "bad-model"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"columns": ()}, "wrong-columns"),
        ({"columns": (TEXT, TEXT)}, "wrong-columns"),
        ({"missing": "drop"}, "bad-argument"),
        ({"missing": {"nobody": 1.0}}, "wrong-columns"),
        ({"missing": {"spend": float("nan")}}, "bad-argument"),
        ({"categories": {"nobody": ("a",)}}, "wrong-columns"),
        ({"categories": {"spend": ("a",)}}, "bad-argument"),
        ({"columns": (TEXT,), "categories": {"country": ("a", "a")}}, "bad-argument"),
        ({"output": Output(low=1.0, high=0.0)}, "bad-argument"),
    ],
)
def test_what_cannot_be_is_refused(fields, code):
    with pytest.raises(DataError) as caught:
        checked(manifest(**fields))
    assert caught.value.code == code


def test_a_decision_is_made_from_the_threshold_on():
    made = manifest(threshold=0.5)
    assert (made.decision(0.5), made.decision(0.49), manifest().decision(0.5)) == (True, False, None)
