"""`check`, `plan` and `features` on the project that `init` makes, and on broken ones."""

from __future__ import annotations

import json

import pytest

from headrace.cli.init import create
from headrace.cli.main import main
from tests.moments import refuse_numbers_in


@pytest.fixture
def shop(tmp_path, monkeypatch):
    create(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


@pytest.fixture
def ask(capsys):
    """Run a verb and return (exit code, stdout, stderr)."""

    def asked(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        said = capsys.readouterr()
        refuse_numbers_in(said.out)
        return code, said.out, said.err

    return asked


@pytest.mark.usefixtures("shop")
def test_check_says_that_nothing_is_wrong(ask):
    said = "shop: 1 stream, 1 view, 5 features, 1 on-demand feature, 1 feature set. Nothing is wrong.\n"
    assert ask("check") == (0, said, "")


@pytest.mark.usefixtures("shop")
def test_check_counts_in_json(ask):
    code, out, err = ask("check", "--json", "--env", "staging")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "ok": True,
        "project": "shop",
        "env": "staging",
        "streams": 1,
        "views": 1,
        "dimensions": 0,
        "features": 5,
        "on_demand_features": 1,
        "feature_sets": 1,
        "models": 0,
    }


def test_check_shows_file_line_sentence_and_hint_of_a_broken_definition(shop, ask, golden):
    file = shop / "features.py"
    file.write_text(file.read_text().replace('hr.sum("amount", over="1h")', 'hr.sum("amuont", over="1h")'))
    code, out, err = ask("check")
    assert (code, out) == (2, "")
    golden("cli/broken_features", err)


def test_check_of_a_broken_project_gives_the_same_as_json(shop, ask):
    (shop / "features.py").write_text("import headrace as hr\n1 / 0\n")
    code, out, err = ask("check", "--json")
    assert (code, out) == (2, "")
    error = json.loads(err)["error"]
    assert (error["code"], error["where"]) == ("broken-features", "features.py:2")


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("verb", [("check",), ("up",), ("up", "--detach"), ("run", "spark"), ("run", "pipeline")])
def test_real_time_mode_on_the_embedded_log_is_refused_by_every_verb_that_would_run_it(ask, golden, monkeypatch, verb):
    monkeypatch.setenv("HEADRACE_PIPELINE_MODE", "real-time")
    code, out, err = ask(*verb)
    assert (code, out) == (2, "")
    golden("cli/real_time_embedded", err)


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("more", [(), ("--detach",)])
def test_up_refuses_the_flag_for_real_time_mode_on_the_embedded_log(ask, golden, monkeypatch, more):
    monkeypatch.setenv("HEADRACE_PIPELINE_MODE", "micro-batch")  # the flag goes before it, and is forgotten afterwards
    code, out, err = ask("up", "--mode", "real-time", *more)
    assert (code, out) == (2, "")
    golden("cli/real_time_embedded", err)


def test_a_project_elsewhere_can_be_named(shop, ask, monkeypatch):
    monkeypatch.chdir(shop.parent)
    assert ask("check")[0] == 2
    assert ask("check", "--project", "shop")[0] == 0


@pytest.mark.usefixtures("shop")
def test_plan_is_the_same_text_every_time(ask, golden):
    code, out, err = ask("plan")
    assert (code, err) == (0, "")
    golden("cli/plan", out)


@pytest.mark.usefixtures("shop")
def test_plan_as_json_is_one_object_with_every_feature(ask):
    code, out, _ = ask("plan", "--json")
    assert code == 0
    planned = json.loads(out)
    assert planned["mode"] == "micro-batch"
    assert len(planned["features"]) == 5


@pytest.mark.usefixtures("shop")
def test_plan_obeys_the_configured_mode(ask, monkeypatch):
    monkeypatch.setenv("HEADRACE_PIPELINE_MODE", "real-time")
    assert json.loads(ask("plan", "--json")[1])["mode"] == "real-time"


@pytest.mark.usefixtures("shop")
def test_features_list_shows_meaning_and_owner_of_each(ask, golden):
    code, out, err = ask("features", "list")
    assert (code, err) == (0, "")
    golden("cli/features_list", out)


@pytest.mark.usefixtures("shop")
def test_features_list_as_json_has_the_same_features(ask):
    listed = json.loads(ask("features", "list", "--json")[1])["features"]
    assert [feature["name"] for feature in listed] == [
        "card_activity.payments_10m",
        "card_activity.spend_1h",
        "card_activity.countries_1d",
        "card_activity.visit_spend",
        "card_activity.median_7d",
        "amount_vs_median",
    ]
    assert {feature["owner"] for feature in listed[:5]} == {"fraud-team"}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["SPEND"], ["card_activity.spend_1h", "card_activity.visit_spend"]),
        (["fraud", "session"], ["card_activity.visit_spend"]),
        (["median"], ["card_activity.median_7d", "amount_vs_median"]),
        (["median", "nothing"], []),
    ],
)
@pytest.mark.usefixtures("shop")
def test_search_finds_features_in_which_every_word_occurs(ask, words, found):
    listed = json.loads(ask("features", "search", *words, "--json")[1])["features"]
    assert [feature["name"] for feature in listed] == found


@pytest.mark.usefixtures("shop")
def test_a_search_without_a_match_says_so(ask):
    assert ask("features", "search", "unicorns") == (0, "", "Nothing matches.\n")


@pytest.mark.parametrize("name", ["payments", "card_activity", "spend_1h", "amount_vs_median", "fraud"])
@pytest.mark.usefixtures("shop")
def test_show_tells_everything_about_one_thing(ask, golden, name):
    code, out, err = ask("features", "show", name)
    assert (code, err) == (0, "")
    golden(f"cli/show_{name}", out)


@pytest.mark.usefixtures("shop")
def test_show_of_a_full_name_and_a_short_one_are_the_same(ask):
    assert ask("features", "show", "card_activity.spend_1h") == ask("features", "show", "spend_1h")


@pytest.mark.usefixtures("shop")
def test_show_of_an_unknown_name_names_the_closest(ask):
    code, _, err = ask("features", "show", "spend_1d")
    assert code == 2
    assert "hint: Did you mean 'spend_1h'?" in err


def test_show_of_a_name_that_two_views_have_asks_which(shop, ask):
    file = shop / "features.py"
    other = 'hr.view("countries", payments, by="country", features={"spend_1h": hr.sum("amount", over="1h")})'
    file.write_text(f"{file.read_text()}\n\ncountries = {other}\n")
    code, _, err = ask("features", "show", "spend_1h")
    assert code == 2
    assert "hint: Say which: card_activity.spend_1h, countries.spend_1h." in err
