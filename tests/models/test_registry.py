"""Registries: versions that appear whole, never change, and score before they are accepted."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import pytest

from headrace import __version__
from headrace.errors import DataError, HeadraceError, MachineError
from headrace.files import lock_file
from headrace.models import ModelColumn, Output, roles_file
from tests.models.models import COLUMNS, Halved, add, booster, registry, rows, rule

N = (ModelColumn("n", "float", ""),)


def written(folder, text):
    file = folder / "own.py"
    file.write_text(f"def score(row):\n    {text}\n")
    return file


def test_an_empty_registry_has_no_models(tmp_path):
    assert registry(tmp_path).models() == []


def test_a_version_is_kept_with_all_that_was_said_of_it(tmp_path):
    kept = registry(tmp_path)
    made = add(kept, rule(tmp_path), threshold=0.5, metrics={"auc": 0.9}, description="rules")
    assert made == kept.manifest("fraud", 1)
    assert (made.model, made.version, made.features, made.columns) == ("fraud", 1, "habits", COLUMNS)
    assert (made.created_at, made.headrace) == (1_767_225_600_000_000, __version__)
    assert (made.threshold, made.metrics, made.description) == (0.5, {"auc": 0.9}, "rules")


def test_versions_are_counted_for_each_model(tmp_path):
    kept = registry(tmp_path)
    numbers = [add(kept, rule(tmp_path), model).version for model in ("fraud", "fraud", "churn")]
    assert (numbers, kept.models(), kept.versions("fraud")) == ([1, 2, 1], ["churn", "fraud"], [1, 2])


def test_a_number_that_played_a_role_is_not_given_again(tmp_path):
    import shutil

    kept = registry(tmp_path)
    for _ in range(2):
        add(kept, rule(tmp_path))
    kept.promote("fraud", 2)
    shutil.rmtree(tmp_path / "models" / "fraud" / "2")
    assert add(kept, rule(tmp_path)).version == 3


@pytest.mark.parametrize("name", ["Fraud", "../fraud", "", "1st", 7])
def test_a_name_that_cannot_be_used_is_refused(tmp_path, name):
    with pytest.raises(DataError) as caught:
        add(registry(tmp_path), rule(tmp_path), name)
    assert caught.value.code == "bad-name"


@pytest.mark.parametrize(("model", "version"), [("other", 1), ("../x", 1), ("fraud", 2), ("fraud", 0)])
def test_what_is_not_there_is_refused(tmp_path, model, version):
    kept = registry(tmp_path)
    add(kept, rule(tmp_path))
    with pytest.raises(HeadraceError) as caught:
        kept.load(model, version)
    assert caught.value.code == "unknown-model"


@pytest.mark.parametrize("damage", ["changed", "truncated", "gone"])
def test_a_file_that_is_not_the_one_that_was_added_is_refused(tmp_path, damage):
    kept = registry(tmp_path)
    file = tmp_path / "models" / "fraud" / "1" / add(kept, booster()).file
    text = file.read_text()
    if damage == "gone":
        file.unlink()
    else:
        file.write_text(text.replace("leaf_value=", "leaf_value=1", 1) if damage == "changed" else text[:-10])
    with pytest.raises(DataError, match="not the one that was added") as caught:
        kept.load("fraud", 1)
    assert caught.value.code == "bad-model"


def test_a_manifest_of_an_unknown_format_is_refused(tmp_path):
    kept = registry(tmp_path)
    add(kept, rule(tmp_path))
    file = tmp_path / "models" / "fraud" / "1" / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": "tea"}))
    with pytest.raises(DataError, match="format that this version does not know"):
        kept.load("fraud", 1)


def test_the_source_may_change_without_a_version_changing(tmp_path):
    kept, source = registry(tmp_path), rule(tmp_path)
    add(kept, source)
    before = kept.load("fraud", 1).score(rows(3))
    source.write_text("def score(row):\n    return 0.0\n")
    assert kept.load("fraud", 1).score(rows(3)) == before


@pytest.mark.parametrize(
    ("text", "fields", "code", "hint"),
    [
        ("return 1 / row['n']", {"missing": "refuse"}, "model-failed", "must take zeros"),
        ("return 2.0", {}, "model-failed", "output="),
        ("return float('nan')", {"output": Output(None, None)}, "model-failed", "output="),
        ("return row['n'] + 0.5", {}, "model-failed", 'missing="refuse"'),
        ("return row['n'] / 2", {"missing": {"n": 3.0}}, "model-failed", "missing={...}"),
    ],
)
def test_a_model_that_has_no_score_for_plain_rows_is_refused(tmp_path, text, fields, code, hint):
    kept = registry(tmp_path)
    with pytest.raises(DataError) as caught:
        add(kept, written(tmp_path, text), columns=N, **fields)
    assert (caught.value.code, hint in str(caught.value.hint)) == (code, True)
    assert kept.models() == []


@pytest.mark.parametrize(
    ("kind", "told"), [("integer", "5"), ("float", "5.0"), ("decimal(4,1)", "Decimal('5.0')"), ("boolean", "True")]
)
def test_the_means_of_the_reference_are_tried_as_values_of_their_type(tmp_path, kind, told):
    text = "return 0.5 if repr(row['n']) == " + repr(told) + " else 1 / 0"
    source = written(tmp_path, text)
    fields = {"columns": (ModelColumn("n", kind, ""),), "missing": "refuse"}
    assert add(registry(tmp_path), source, reference={"n": {"mean": 5}}, **fields).version == 1
    with pytest.raises(DataError, match="no score for a row of plain values"):
        add(registry(tmp_path), source, **fields)


def test_a_model_that_takes_no_nan_is_refused_until_nulls_are(tmp_path):
    from sklearn.linear_model import LogisticRegression

    from tests.models.models import data

    kept, model = registry(tmp_path), LogisticRegression().fit(*data(50))
    with pytest.raises(DataError, match="no score for a row without values"):
        add(kept, model)
    assert add(kept, model, missing="refuse").version == 1


def test_a_model_that_is_refused_leaves_nothing_behind(tmp_path):
    kept = registry(tmp_path)
    with pytest.raises(DataError):
        add(kept, written(tmp_path, "return 2.0"))
    assert list((tmp_path / "models" / "fraud").iterdir()) == []


def test_two_processes_that_add_at_once_get_different_versions(tmp_path):
    rule(tmp_path)
    code = (
        "import sys; from pathlib import Path; from tests.models.models import add, registry\n"
        "place = Path(sys.argv[1]); kept = registry(place); sys.stdin.readline()\n"
        "print(*(add(kept, place / 'rules.py').version for _ in range(10)))"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    told = [each.communicate("go\n", timeout=60)[0].split() for each in started]
    assert sorted(int(number) for numbers in told for number in numbers) == list(range(1, 21))


def test_threads_that_add_and_promote_at_once_lose_nothing(tmp_path):
    kept, source = registry(tmp_path), rule(tmp_path)
    together = threading.Barrier(4)

    def work():
        together.wait()
        for _ in range(5):
            kept.promote("fraud", add(kept, source).version)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert kept.versions("fraud") == list(range(1, 21))
    assert sorted(change.version for change in kept.roles("fraud").history) == list(range(1, 21))


def test_whoever_waits_too_long_for_his_turn_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setattr(roles_file, "PATIENCE", 0.0)
    kept = registry(tmp_path)
    add(kept, rule(tmp_path))
    lock = tmp_path / "models" / "fraud" / roles_file.LOCK
    with lock_file(lock, MachineError("models-locked", "Held.")), pytest.raises(MachineError) as caught:
        kept.promote("fraud", 1)
    assert caught.value.code == "models-locked"
    assert kept.promote("fraud", 1).champion == 1


def test_a_pickle_is_loaded_in_another_process_as_well(tmp_path):
    kept = registry(tmp_path)
    add(kept, Halved(), allow_code=True, output=Output(None, None))
    code = (
        "import sys; from pathlib import Path; from tests.models.models import registry, rows\n"
        "kept = registry(Path(sys.argv[1]))\n"
        "print(kept.load('fraud', 1).score(rows(3)))"
    )
    told = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert told.stdout == f"{kept.load('fraud', 1).score(rows(3))}\n"
