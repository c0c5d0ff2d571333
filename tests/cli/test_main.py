"""How the command line speaks: data on stdout, talk on stderr, one exit code for each kind of failure."""

from __future__ import annotations

import importlib
import io
import json

import pytest

from headrace import machine
from headrace.cli import output
from headrace.cli.main import VERBS, main, module_of
from headrace.errors import ConfigError, MachineError


@pytest.fixture
def failing(monkeypatch):
    """Make `headrace doctor` raise what is given."""

    def with_error(error: BaseException) -> None:
        def find_java() -> machine.Java:
            raise error

        monkeypatch.setattr(machine, "find_java", find_java)

    return with_error


def test_help_lists_every_verb_with_its_meaning(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert all(verb in shown.out and meaning in shown.out for verb, meaning in VERBS.items())


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_says_of_itself_what_the_list_says_of_it(verb):
    command = importlib.import_module(f"headrace.cli.{module_of(verb)}").command
    assert command.name == verb
    assert command.help.splitlines()[0] == VERBS[verb]


def test_an_unknown_verb_is_refused_with_the_closest_one(capsys, golden):
    assert main(["plna"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    golden("cli/unknown_verb", shown.err)


def test_an_unknown_option_is_refused_in_the_same_form(capsys, golden):
    assert main(["doctor", "--loud"]) == 2
    golden("cli/unknown_option", capsys.readouterr().err)


def test_an_error_shows_sentence_place_what_came_code_and_hint(capsys, golden, failing):
    failing(ConfigError("bad-setting", "A thing is wrong.", got="7", hint="Do another.", where="headrace.toml"))
    assert main(["doctor"]) == 2
    golden("cli/error", capsys.readouterr().err)


def test_an_error_with_json_is_one_object_on_stderr(capsys, failing):
    failing(ConfigError("bad-setting", "A thing is wrong.", got="7"))
    assert main(["doctor", "--json"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    expected = {"code": "bad-setting", "message": "A thing is wrong.", "where": None, "got": "7", "hint": None}
    assert json.loads(shown.err) == {"error": expected}


def test_a_defect_is_short_and_says_how_to_see_more(capsys, golden, failing):
    failing(RuntimeError("the sky fell"))
    assert main(["doctor"]) == 70
    golden("cli/defect", capsys.readouterr().err)


def test_a_defect_shows_its_traceback_when_asked(failing, monkeypatch):
    failing(RuntimeError("the sky fell"))
    monkeypatch.setenv("HEADRACE_DEBUG", "1")
    with pytest.raises(RuntimeError, match="the sky fell"):
        main(["doctor"])


def test_an_interrupt_exits_130(capsys, failing):
    failing(KeyboardInterrupt())
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err.strip() == "Interrupted."


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("variable", "coloured"), [("", True), ("1", False)])
def test_a_terminal_gets_colour_unless_no_color_says_otherwise(monkeypatch, variable, coloured):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("NO_COLOR", variable)
    output.fail(MachineError("no-java", "No Java."), as_json=False)
    assert ("\x1b[" in terminal.getvalue()) is coloured


def test_a_table_cuts_nothing_off_in_a_pipe_and_takes_brackets_as_they_are(capsys):
    output.table(("name", "meaning"), [("a", "[bold]" + "x" * 300), ("longer", "y")])
    header, first, second = capsys.readouterr().out.splitlines()
    assert header == "name    meaning"
    assert first == "a       [bold]" + "x" * 300
    assert second == "longer  y"
