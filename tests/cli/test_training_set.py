"""`headrace training-set` as a user runs it: refusals, and a set in a folder. The guide runs --again."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from headrace.cli.init import create
from headrace.cli.main import main
from tests.test_imports import HEAVY, loaded
from tests.training.shop import SPINE, expected, make_shop

PATIENCE = 180.0


@pytest.fixture
def shop(tmp_path, monkeypatch):
    create(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    (tmp_path / "shop/labels.csv").write_text("card,t,label\n42,2026-01-01T12:00:00Z,1\n")
    return tmp_path / "shop"


def test_the_help_loads_no_engine():
    modules = loaded("from headrace.cli.main import main; main(['training-set', '--help'])")
    assert "headrace.cli.training_set" in modules
    assert modules & (HEAVY - {"click"}) == set()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--out", "set"], "A training set needs a spine."),
        (["labels.csv", "--out", "set", "--split", "0.9,0.2"], "The split cannot be used."),
        (["labels.csv", "--out", "set", "--sample", "2"], "The rate of a sample lies above 0 and at most at 1."),
        (["labels.csv", "--out", "set", "--downsample", "label"], "Downsampling takes a column, a value and a rate."),
        (["labels.csv", "--out", "s3://bucket/set"], "A training set is written to a folder."),
        (["labels.csv", "--out", "."], "The folder for the training set is there, and has something in it."),
        (["--again", ".", "--out", "set"], "The folder holds no training set"),
        (["--again", ".", "--out", "set", "--seed", "1"], "says all that was asked for"),
    ],
)
@pytest.mark.usefixtures("shop")
def test_what_cannot_be_made_is_refused_before_anything_starts(capsys, arguments, told):
    assert main(["training-set", *arguments]) == 2
    assert told in capsys.readouterr().err


def ask(folder, *arguments):
    """Its exit code, what it printed and what it said."""
    command = [sys.executable, "-P", "-m", "headrace.cli.main", "training-set", *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.spark
def test_a_set_is_made_from_csv_with_the_values_of_the_reference(spark, tmp_path):
    made = make_shop(tmp_path / "shop", spark)
    lines = [f"{row['card']},{row['shop']},{row['t'].isoformat()},{row['amount']},{row['label']}" for row in SPINE]
    (tmp_path / "shop/labels.csv").write_text("\n".join(["card,shop,when,amount,label", *lines]) + "\n")
    asked = ["labels.csv", "--out", "one", "--features", "fraud", "--time", "when", "--split", "0.5,0.5", "--json"]
    code, out, err = ask(tmp_path / "shop", *asked)
    assert code == 0, err
    told = json.loads(out)
    assert (told["rows"], told["splits"], told["asked"]["mode"]) == (20, {"train": 10, "test": 10}, "as_known")
    assert told["columns"]["payments_1h"]["null_rate"] == 0.0
    assert err.startswith("20 of 20 rows of the spine in one, in ")
    rows = pq.read_table(tmp_path / "shop/one/data").sort_by("when").to_pylist()
    wanted = expected(made, "fraud")
    assert [{name: row[name] for name in wanted[0]} for row in rows] == wanted
    assert [row["label"] for row in rows] == [row["label"] for row in SPINE]
