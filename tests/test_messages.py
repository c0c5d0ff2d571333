"""Messages are tested: every one in the package is read by a lint, and the lint is tried on bad ones."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TypeGuard

import pytest

from headrace import errors
from scripts.messages import lint

ROOT = Path(__file__).parent.parent
KINDS = {name for name in vars(errors) if name.endswith("Error")}
FOLDERS = ("src", "examples/headrace_demo")
MODULES = sorted(path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_the_messages_of_a_module_are_sound(module):
    source = (ROOT / module).read_text(encoding="utf-8")
    found = [f"{module}:{problem.line}: {problem.text}" for problem in lint(source, errors.CODES, KINDS)]
    # The worlds of a demo have never one payment, card or label.
    assert [each for each in found if not ("examples/headrace_demo" in each and "show_count" in each)] == []


ACTED_ON = (
    "cli/",
    "ingest/files/",
    "ingest/send/",
    "training/",
    "models/formats/",
    "config/config.py",
    "models/roles.py",
    "serve/access.py",
)
"""Modules whose errors are about what somebody has written or named, and can mend."""
REFUSALS = {"ConfigError", "DataError", "ProjectError", "UsageError"}
WITH_ADVICE = {
    "--all means all of them: leave the others out.",
    "--last is of the log: say --live with it.",
    "--raw takes lines as they are: JSON lines alone, and without --rebase.",
    "--state-budget is for an outage: say --outage with it.",
    "--value mends the one letter that is named.",
    "Dropping cannot be undone: say --yes.",
    "Name one letter, as PARTITION/OFFSET.",
    "Removing cannot be undone: say --yes, or --dry-run to see what would go.",
    "Say --json or --csv, not both.",
    "The producer is closed; the event was not taken.",
}
"""Messages that say themselves what to do, or that only a program can do something about."""


def is_refusal(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in REFUSALS


@pytest.mark.parametrize(
    "module", [each for each in MODULES if each.removeprefix("src/headrace/").startswith(ACTED_ON)]
)
def test_an_error_that_a_user_can_act_on_says_what_to_do(module):
    calls = [node for node in ast.walk(ast.parse((ROOT / module).read_text(encoding="utf-8"))) if is_refusal(node)]
    hintless = [call for call in calls if "hint" not in {each.arg for each in call.keywords}]
    without = {ast.unparse(call.args[1]).strip("'") for call in hintless}
    assert without <= WITH_ADVICE


def test_every_error_code_is_raised_somewhere():
    sources = [(ROOT / module).read_text(encoding="utf-8") for module in MODULES if not module.endswith("errors.py")]
    assert [code for code in errors.CODES if not any(f'"{code}"' in source for source in sources)] == []


@pytest.mark.parametrize("meaning", errors.CODES.values())
def test_an_error_code_is_explained_in_a_sentence(meaning):
    assert meaning.endswith(".")


@pytest.mark.parametrize(
    ("source", "finding"),
    [
        ('text = "There is no {name}."', "no f before it"),
        ('text = "There is no {name.first!r:>3}."', "no f before it"),
        ('text = f"There is no {name}." "Nor {other}."', "glued together"),
        ('text = ("It is so."\n  "Do that.")', "glued together"),
        ('text = ("It is"  # why\n  f"{so}")', "glued together"),
        ('text = f"{count:,} events"', "show_count"),
        ('text = f"{len(found)} late events of {name}"', "show_count"),
        ('raise DataError("nope", "It is so.")', "not in the table"),
        ('raise DataError("known", f"It is {so}")', "full stop"),
        ('def f():\n  message = "It is so"\n  raise DataError("known", message)', "full stop"),
        ('raise DataError("known", "it is so.")', "begin like a sentence"),
        ('raise DataError("known", "It is so.", hint="do that.")', "not a sentence"),
        ('raise DataError("known", "It is so.", hint=other or "Do that")', "not a sentence"),
        (
            'def f():\n  message, hint = "It is.", "Do"\n  raise DataError("known", message, hint=hint)',
            "not a sentence",
        ),
    ],
)
def test_a_bad_message_is_found(source, finding):
    assert [finding in problem.text for problem in lint(source, {"known"}, {"DataError"})] == [True]


@pytest.mark.parametrize(
    "source",
    [
        'text = f"There is {name}."',
        'text = "{{name}}"',
        'text = f"{show_count(len(found), name)} of {MOST:,} rows"',
        'text = f"{len(found):,} of them is one"',
        'text = "[a-z]{0,9}"',
        'text = "Hello {name}."\nmade = text.format(name=1)',
        '"""A docstring about {name}."""',
        'pattern = r"(a)" r"(b)"',
        'text = "It is so. " "Do that."',
        'raise ValueError("known")',
        'text = "{task.description}"',
        'text = "/views/{view}"',
        'raise DataError("known", "--from cannot be read.")',
        'raise OwnError("anything at all", "it is")',
        'pattern = "[0-9]{2}" "[a-z]"',
        'raise DataError("known", "hr.ratio takes two.", hint="0.5 is the median.")',
        'raise DataError("known", f"{name!r} is wrong.", hint="Did you mean it?")',
        'raise DataError("known", message, hint=did_you_mean(a, b))',
    ],
)
def test_a_good_message_is_left_alone(source):
    assert lint(source, {"known"}, {"DataError"}) == []
