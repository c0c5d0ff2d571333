"""`headrace dead-letters` on a project's own log, and progress bars only where a person looks."""

from __future__ import annotations

import io
import json

import pytest

from headrace.cli.init import create
from headrace.cli.main import main
from headrace.config import config as configuration
from headrace.config.config import names
from headrace.ingest.dead_letters.lock import locked
from headrace.meaning.verdict import REPLAY_OF
from headrace.spark.dead_letter import DeadLetter
from headrace.topics import open_log

ARRIVED = 1_767_268_800_000_000  # 2026-01-01T12:00:00Z
GOOD = b'{"id":"p1","card":"42","amount":10.0,"country":"DE","at":"2026-01-01T12:00:00Z"}'


def letter(offset, value, verdict="invalid", reason="country is required", key=b"42", headers=()):
    return DeadLetter(0, offset, ARRIVED + offset, verdict, reason, key, value, headers, len(value or b""))


LETTERS = [
    letter(3, GOOD, headers=(("trace", b"\xff\x01"), ("app", b"till"))),
    letter(5, b"\xff{", "malformed", "it is not JSON", None),
    letter(8, GOOD.replace(b"10.0", b'"a lot"'), reason="amount must be a finite number"),
    letter(9, b'{"id":"\x1b[2J"}', "future", "dated 600 s after its arrival"),
    letter(10, None, "future", "dated 700 s after its arrival"),
]


@pytest.fixture
def shop(tmp_path, monkeypatch):
    create(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    loaded = configuration.load()
    with open_log(loaded) as log:
        log.create_topic("payments", partitions=2)
        log.create_topic("payments.dead", compacted=True)
        log.append_batch("payments.dead", [each.message for each in LETTERS])
    return loaded


@pytest.fixture
def ask(capsysbinary):
    def asked(*arguments):
        code = main(["dead-letters", *arguments])
        said = capsysbinary.readouterr()
        return code, said.out.decode("utf-8", "surrogateescape"), said.err.decode()

    return asked


def ids(out):
    return [each["id"] for each in json.loads(out)["streams"]["payments"]["letters"]]


def records(shop):
    with open_log(shop) as log:
        return [each for number in (0, 1) for each in log.read("payments", number, 0)]


@pytest.mark.usefixtures("shop")
def test_the_list_shows_every_letter_and_counts_by_reason(ask, golden):
    code, out, err = ask("list", "payments")
    assert (code, err) == (0, "")
    golden("cli/dead_letters_list", out)


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--verdict", "future"], ["0/9", "0/10"]),
        (["--reason", "JSON"], ["0/5"]),
        (["--since", "2026-01-01T12:00:00.000009Z"], ["0/9", "0/10"]),
        (["--since", "1s"], []),
        (["--limit", "2"], ["0/9", "0/10"]),
    ],
)
def test_the_list_is_restricted_by_what_letters_are_like(ask, options, expected):
    code, out, _ = ask("list", *options, "--json")
    assert (code, ids(out)) == (0, expected)


@pytest.mark.usefixtures("shop")
def test_a_longer_list_says_that_there_is_more(ask):
    assert ask("list", "--limit", "2")[2] == "3 older ones are not shown; see --limit.\n"
    told = json.loads(ask("list", "--limit", "2", "--json")[1])["streams"]["payments"]
    assert (told["total"], told["matching"], len(told["letters"])) == (5, 5, 2)


def test_a_project_without_letters_has_an_empty_list(tmp_path, monkeypatch, ask):
    create(tmp_path / "new")
    monkeypatch.chdir(tmp_path / "new")
    assert ask("list") == (0, "stream payments: 0 dead letters\n", "")
    assert ask("replay", "--all")[0] == 0
    assert ask("drop", "--all")[0] == 0


@pytest.mark.usefixtures("shop")
def test_a_letter_is_shown_with_its_bytes_and_what_would_become_of_it_now(ask, golden):
    code, out, _ = ask("show", "payments", "0/3")
    assert code == 0
    golden("cli/dead_letters_show", out)
    told = json.loads(ask("show", "0/3", "--json")[1])
    assert told["now"] == {"verdict": "admitted", "reason": None, "lane": "late", "replayable": True}
    assert told["headers"][0] == {"name": "trace", "value_base64": "/wE="}


@pytest.mark.usefixtures("shop")
def test_bytes_that_are_no_text_are_shown_in_hexadecimal_and_never_move_the_cursor(ask):
    assert "\nhex ff7b\n" in ask("show", "0/5")[1]
    shown = ask("show", "0/9")[1]
    assert "\x1b" not in shown
    assert "\\x1b[2J" in shown
    assert "value: null\n" in ask("show", "0/10")[1]


@pytest.mark.usefixtures("shop")
def test_the_value_alone_is_written_to_the_byte(ask):
    assert ask("show", "0/5", "--raw")[1].encode("utf-8", "surrogateescape") == b"\xff{"


def test_replaying_all_sends_the_good_ones_and_lists_the_others(shop, ask):
    code, out, err = ask("replay", "--all", "--json")
    told = json.loads(out)
    assert code == 1
    assert [(each["id"], each["verdict"]) for each in told["replayed"]] == [("0/3", "admitted")]
    assert [each["id"] for each in told["left"]] == ["0/5", "0/8", "0/9", "0/10"]
    assert "left: 0/8: invalid, amount must be a finite number\n" in err
    assert err.endswith("Replayed 1 of payments, 4 left.\n")
    (record,) = records(shop)
    assert (record.value, record.key, dict(record.headers)[REPLAY_OF]) == (GOOD, b"42", b"0/3")
    assert ids(ask("list", "--json")[1]) == ["0/5", "0/8", "0/9", "0/10"]


def test_one_letter_is_mended_and_replayed(shop, ask, tmp_path):
    fixed = tmp_path / "fixed.json"
    fixed.write_bytes(GOOD)
    assert ask("replay", "0/8", "--value", str(fixed)) == (0, "", "Replayed 1 of payments, 0 left.\n")
    assert [record.value for record in records(shop)] == [GOOD]


def test_force_replays_what_would_be_dead_again(shop, ask):
    assert ask("replay", "--verdict", "malformed", "--force")[0] == 0
    assert [record.value for record in records(shop)] == [b"\xff{"]


@pytest.mark.usefixtures("shop")
def test_dropping_asks_for_a_yes(ask):
    code, _, err = ask("drop", "0/5")
    assert (code, "say --yes" in err) == (2, True)
    assert len(ids(ask("list", "--json")[1])) == 5
    code, out, err = ask("drop", "0/5", "0/8", "--yes", "--json")
    assert (code, json.loads(out)["dropped"], err) == (0, ["0/5", "0/8"], "Dropped 2 of payments.\n")
    assert ids(ask("list", "--json")[1]) == ["0/3", "0/9", "0/10"]


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(("typed", "code", "left"), [("y\n", 0, 4), ("n\n", 1, 5)])
def test_on_a_terminal_the_answer_decides(ask, monkeypatch, typed, code, left):
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    assert ask("drop", "0/5")[0] == code
    assert len(ids(ask("list", "--json")[1])) == left


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["replay"], "Say which letters are meant"),
        (["drop", "--yes"], "Say which letters are meant"),
        (["replay", "--all", "0/3"], "leave the others out"),
        (["replay", "0/3", "0/5", "--value", "headrace.toml"], "the one letter that is named"),
        (["replay", "0/77"], "There is no such dead letter"),
        (["show", "0/3", "0/5"], "Name one letter"),
        (["show", "payments", "first"], "no name of a dead letter"),
        (["list", "paymnets"], "Did you mean 'payments'?"),
        (["list", "--since", "then"], "--since cannot be read"),
    ],
)
def test_what_makes_no_sense_is_refused(ask, arguments, said):
    code, out, err = ask(*arguments)
    assert (code, out) == (2, "")
    assert said in err


def test_a_second_replay_at_the_same_time_is_refused(shop, ask):
    with locked(names(shop)):
        code, _, err = ask("replay", "--all")
    assert (code, "code: letters-locked" in err) == (3, True)


# progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def rows(shop, count):
    (shop.root / "payments.jsonl").write_bytes((GOOD + b"\n") * count)


def test_sending_shows_rows_and_rate_on_a_terminal(shop, monkeypatch):
    rows(shop, 2_500)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    assert main(["send", "payments", "payments.jsonl"]) == 0
    assert "2,500 rows, " in terminal.getvalue()
    assert "100%" in terminal.getvalue()


def test_sending_into_a_pipe_shows_no_bar(shop, capsys):
    rows(shop, 10)
    assert main(["send", "payments", "payments.jsonl"]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err.startswith("Sent 10 events"), said.err.count("\n")) == ("", True, 1)
