"""Loading a project runs the user's Python: what it may not do ends in an error that says where."""

from __future__ import annotations

import click
import pytest

from headrace import project
from headrace.errors import DefinitionError, HeadraceError, ProjectError, SchemaError, user_location

GOOD = """
import headrace as hr

clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
users = hr.view("users", clicks.where("user <> ''"), by="user", features={"n": hr.count(over="1h")})
_hidden = hr.view("hidden", clicks, by="user", features={"n": hr.count(over="1h")})
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    def write_and_load(text, toml=""):
        (tmp_path / "headrace.toml").write_text(f'{toml}\n[project]\nname = "shop"\n')
        (tmp_path / "features.py").write_text(text)
        monkeypatch.chdir(tmp_path)
        return project.load()

    return write_and_load


def refused(load, text, **more):
    with pytest.raises(ProjectError) as caught:
        load(text, **more)
    return caught.value


def test_what_a_module_binds_is_what_the_project_defines(load):
    loaded = load(GOOD)
    assert [view.name for view in loaded.views] == ["users"]
    assert [stream.name for stream in loaded.streams] == ["clicks"]
    assert loaded.streams[0].filter is None
    assert loaded.plan().mode == "micro-batch"


def test_a_project_is_found_from_a_folder_below(load, tmp_path):
    load(GOOD)
    below = tmp_path / "tests" / "deep"
    below.mkdir(parents=True)
    assert project.load(below).config.name == "shop"


def test_a_features_file_may_import_its_neighbours(load, tmp_path):
    (tmp_path / "neighbour_of_features.py").write_text("GAP = '30m'")
    loaded = load(GOOD + "from neighbour_of_features import GAP\nlong = hr.session(gap=GAP)\n")
    assert loaded.views


def test_a_definition_error_names_the_line_in_the_features_file(load):
    with pytest.raises(DefinitionError) as caught:
        load(GOOD.replace('by="user", features={"n"', 'by="usr", features={"n"', 1))
    assert caught.value.where == "features.py:5"
    assert caught.value.hint == "Did you mean 'user'?"


def test_a_features_file_that_raises_says_where_and_what(load):
    error = refused(load, GOOD + "\ndef f():\n    return 1 / 0\n\nf()\n")
    assert (error.code, error.where) == ("broken-features", "features.py:9")
    assert error.got == "'ZeroDivisionError: division by zero'"


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("clicks.wehre('n > 0')", "Did you mean 'where'?"),
        ("hr.cuont(over='1h')", "Did you mean 'count'?"),
        ("from headrace import cuont", "Did you mean 'count'?"),
        ("hr.stream('clicks', feilds={})", "Did you mean 'fields'?"),
        ("clikcs.where('n > 0')", "Did you mean 'clicks'?"),
    ],
)
def test_a_misspelt_name_in_a_features_file_has_its_line_and_the_right_name(load, line, hint):
    with pytest.raises(HeadraceError) as caught:
        load(f"{GOOD}{line}\n")
    assert (caught.value.where, caught.value.hint) == ("features.py:7", hint)


def test_a_features_file_that_exits_is_broken_and_does_not_end_the_program(load):
    assert refused(load, "raise SystemExit(3)").code == "broken-features"


def test_a_features_file_with_a_syntax_error_says_which_line(load):
    error = refused(load, GOOD + "\nusers = = 3\n")
    assert (error.code, error.where) == ("broken-features", "features.py:8")


def test_a_features_file_that_prints_is_refused_because_stdout_is_data(load, capsys):
    error = refused(load, GOOD + "\nprint('hello')\n")
    assert (error.code, error.got) == ("noisy-features", "'hello\\n'")
    assert capsys.readouterr().out == ""


def test_a_features_file_that_hangs_is_stopped(load):
    error = refused(load, GOOD + "\nimport time\ntime.sleep(60)\n", toml='load_timeout = "200ms"')
    assert error.code == "slow-features"
    assert error.message == "The features file took longer than 200ms to load."


def test_a_features_file_without_a_view_is_refused(load):
    assert refused(load, "import headrace as hr\n").code == "no-definitions"


def test_a_missing_features_file_is_said_to_be_missing(load, tmp_path, monkeypatch):
    load(GOOD)
    (tmp_path / "features.py").unlink()
    with pytest.raises(ProjectError) as caught:
        project.load()
    assert caught.value.code == "broken-features"


def test_something_is_found_by_its_name_or_the_closest_is_named(load):
    loaded = load(GOOD)
    assert loaded.find("users") is loaded.views[0]
    with pytest.raises(ProjectError) as caught:
        loaded.find("user")
    assert caught.value.hint == "Did you mean 'users'?"


def test_a_schema_change_that_breaks_its_readers_is_refused_with_the_difference(load):
    load(GOOD).register_schemas()
    changed = load(GOOD.replace('"user": str', '"user": str, "cost": int'))
    with pytest.raises(SchemaError) as caught:
        changed.check_schemas()
    assert caught.value.code == "incompatible-schema"
    assert "+ cost integer" in str(caught.value)


TWICE = {
    "stream": """
again = hr.stream("clicks", fields={"user": str, "n": int, "at": hr.Timestamp}, event_time="at")
""",
    "view": """
again = hr.view("users", clicks, by="user", features={"n": hr.count(over="2h")})
""",
    "dimension": """
people = hr.dimension("people", "people.parquet", by="user", fields={"user": str, "age": int}, valid_from="since")
again = hr.dimension("people", "others.parquet", by="user", fields={"user": str, "age": int}, valid_from="since")
""",
    "feature set": """
habits = hr.feature_set("habits", [users])
again = hr.feature_set("habits", [users], owner="us")
""",
    "model": """
churn = hr.model("churn", hr.feature_set("habits", [users]))
again = hr.model("churn", hr.feature_set("habits", [users]), owner="us")
""",
    "label": """
buys = hr.model("buys", hr.feature_set("habits", [users]), stream=clicks)
bought = hr.label("bought", clicks, of=buys, on="user", horizon="7d")
again = hr.label("bought", clicks, of=buys, on="user", horizon="8d")
""",
    "view and dimension": """
again = hr.dimension("users", "people.parquet", by="user", fields={"user": str, "age": int}, valid_from="since")
""",
}


@pytest.mark.parametrize("kind", TWICE)
def test_a_name_that_is_given_twice_is_located_in_the_features_file(load, kind):
    text = GOOD + TWICE[kind]
    line = text.rstrip().count("\n") + 1
    with click.Context(click.Command("check")) as context, pytest.raises(DefinitionError) as caught:
        context.invoke(load, text)  # as the command line loads it: the innermost caller is click
    assert caught.value.code == "duplicate-name"
    assert caught.value.where == f"features.py:{line}"
    assert "features.py:" in str(caught.value.hint)


def test_an_error_that_no_code_of_the_users_raised_names_none_of_clicks():
    with click.Context(click.Command("check")) as context:
        assert context.invoke(user_location) is None


def test_a_schema_change_that_breaks_its_readers_is_located_at_the_stream(load):
    load(GOOD).register_schemas()
    changed = load(GOOD.replace('"user": str', '"user": int').replace("user <> ''", "user > 0"))
    with pytest.raises(SchemaError) as caught:
        changed.check_schemas()
    assert caught.value.where == "features.py:4"


def test_a_compatible_schema_change_becomes_the_next_version(load):
    load(GOOD).register_schemas()
    load(GOOD.replace('"user": str', '"user": str, "cost": int | None')).register_schemas()
    assert load(GOOD).registry.versions("clicks") == [1, 2]


def test_checking_writes_nothing(load, tmp_path):
    load(GOOD).check_schemas()
    assert not (tmp_path / "schemas").exists()
