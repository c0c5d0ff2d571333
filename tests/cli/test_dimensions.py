"""`check`, `plan`, `features` and `get` on a project with a dimension."""

from __future__ import annotations

import json

import pytest

from headrace.cli.main import main
from tests.lake.dimensions import written
from tests.moments import refuse_numbers_in
from tests.serve.test_dimensions_live import FEATURES


@pytest.fixture
def ask(tmp_path, monkeypatch, capsys):
    """Run a verb on the project and return (exit code, stdout, stderr)."""
    (tmp_path / "headrace.toml").write_text('[project]\nname = "shop"\n')
    (tmp_path / "features.py").write_text(FEATURES)
    monkeypatch.chdir(tmp_path)
    written(tmp_path, ("m", "food", 0.5, 1))

    def asked(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        said = capsys.readouterr()
        refuse_numbers_in(said.out)
        return code, said.out, said.err

    return asked


def test_check_counts_dimensions_and_their_features(ask):
    said = "shop: 1 stream, 1 view, 1 dimension, 3 features, 1 feature set. Nothing is wrong.\n"
    assert ask("check") == (0, said, "")


def test_check_says_what_is_wrong_with_a_table(ask, tmp_path):
    written(tmp_path, ("m", "food", 0.5, 1), ("m", "food", 0.7, 1))
    code, _, err = ask("check")
    assert code == 2
    assert "Two rows of dimension 'merchants' have one key and one 'since'." in err
    (tmp_path / "merchants.parquet").unlink()
    code, _, err = ask("check", "--json")
    error = json.loads(err)["error"]
    assert (code, error["code"], error["where"]) == (2, "bad-dimension", "merchants.parquet")


def test_plan_shows_where_a_dimension_comes_from(ask):
    code, out, _ = ask("plan")
    assert code == 0
    assert "  merchants.parquet by merchant, valid from since to until; at read time" in out
    (planned,) = json.loads(ask("plan", "--json")[1])["dimensions"]
    assert planned["features"] == [
        {"id": "merchants.category", "type": "string"},
        {"id": "merchants.risk", "type": "float"},
    ]


def test_its_features_are_listed_found_and_shown(ask):
    listed = json.loads(ask("features", "list", "--json")[1])["features"]
    assert [each["name"] for each in listed] == ["users.clicks_1h", "merchants.category", "merchants.risk"]
    assert (
        json.loads(ask("features", "search", "parquet", "risk", "--json")[1])["features"][0]["name"] == "merchants.risk"
    )
    shown = json.loads(ask("features", "show", "merchants", "--json")[1])
    assert (shown["kind"], shown["table"], shown["key"], shown["valid"]) == (
        "dimension",
        "merchants.parquet",
        "merchant",
        "from since to until",
    )
    assert ask("features", "show", "risk")[1].splitlines()[:3] == [
        "feature   merchants.risk",
        "meaning   risk of merchants.parquet as of since",
        "type      float",
    ]


def test_get_takes_a_dimensions_key(ask):
    code, _, err = ask("get", "merchants", "merchnat=m")
    assert code == 2
    assert "Dimension 'merchants' takes each column of its key once" in err
