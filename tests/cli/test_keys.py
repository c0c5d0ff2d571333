"""`headrace keys`, and what `check` says of serving that nobody protects."""

from __future__ import annotations

import json
import re
import tomllib

import pytest

from headrace.cli.main import main
from headrace.serve.access import digest_of
from tests.serve.process import PROJECT


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "headrace.toml").write_text('[project]\nname = "shop"\n')
    (tmp_path / "features.py").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def add(folder, text):
    file = folder / "headrace.toml"
    file.write_text(file.read_text() + text)


def test_a_new_key_is_printed_alone_and_the_line_that_lets_it_in_is_talk(capsys):
    assert main(["keys", "new", "--role", "read", "--role", "write", "--name", "ops"]) == 0
    told = capsys.readouterr()
    key = told.out.strip()
    assert re.fullmatch(r"hr_[A-Za-z0-9_-]{43}", key)
    assert f'[serve.keys]\nops = "read+write:sha256:{digest_of(key).hex()}"' in told.err
    assert key not in told.err


def test_a_new_key_as_json_fits_the_settings_and_lets_its_holder_in(capsys, folder):
    from headrace.config.config import load
    from headrace.serve.access import access_of

    assert main(["keys", "new", "--role", "admin", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    add(folder, f'[serve.keys]\nboss = "{made["setting"]}"\n')
    access_of(load(folder, {})).allow(f"Bearer {made['key']}", "write")


@pytest.mark.parametrize(
    "name", ["ops", "our ops", 'a "b"', "a\\b", "a\nb = 1", "\x1b[2J\x7f\x85", "é.🔑", "", "=", "a'b"]
)
def test_the_line_of_a_new_key_is_toml_whatever_its_name(capsys, folder, name):
    assert main(["keys", "new", "--role", "read", "--name", name]) == 0
    said = capsys.readouterr().err.partition("\n\n")[2]
    assert all(char.isprintable() or char == "\n" for char in said)
    assert list(tomllib.loads(said)["serve"]["keys"]) == [name]
    add(folder, said)
    assert main(["keys", "list"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_a_name_that_no_file_can_hold_is_refused(capsys):
    assert main(["keys", "new", "--role", "read", "--name", "a\udcff"]) == 2
    assert "The name of a key is not UTF-8." in capsys.readouterr().err


def test_a_key_without_a_role_is_refused(capsys):
    assert main(["keys", "new"]) == 2
    assert main(["keys", "new", "--role", "owner"]) == 2


def test_keys_are_listed_without_what_they_are(capsys, folder):
    add(folder, f'[serve.keys]\nops = "read:sha256:{"0" * 64}"\nsender = "write:env:NOT_SET_HERE"\n')
    assert main(["keys", "list", "--json"]) == 0
    told = capsys.readouterr().out
    assert json.loads(told) == {
        "keys": [
            {"name": "ops", "roles": ["read"], "from": "sha256"},
            {"name": "sender", "roles": ["write"], "from": "env"},
        ]
    }
    assert main(["keys", "list"]) == 0
    assert "0000" not in capsys.readouterr().out + told


def test_without_keys_nothing_is_listed_and_that_is_said(capsys, folder):
    assert main(["keys", "list"]) == 0
    assert "No keys are set" in capsys.readouterr().err


@pytest.mark.parametrize("verb", [["check"], ["up", "--detach"], ["run", "serve"]])
def test_serving_beyond_this_machine_without_keys_is_refused(capsys, folder, verb):
    add(folder, '[serve]\nhost = "0.0.0.0"\n')
    assert main([*verb, "--project", str(folder)]) == 2
    assert "unprotected" in capsys.readouterr().err


def test_it_is_not_refused_with_a_key_or_when_the_settings_say_so(capsys, folder):
    add(folder, '[serve]\nhost = "0.0.0.0"\n')
    assert main(["check"]) == 2
    add(folder, 'without_keys = "anywhere"\n')
    assert main(["check"]) == 0
    add(folder, '[env.live.serve.keys]\nops = "read:env:A_KEY"\n[env.live.serve]\nwithout_keys = "loopback"\n')
    assert main(["check", "--env", "live"]) == 0


@pytest.mark.parametrize(
    ("text", "code"),
    [('[serve.keys]\nops = "topsecret"\n', "bad-key"), ('[serve]\ncertificate = "nowhere.pem"\n', "bad-certificate")],
)
def test_what_serving_would_refuse_check_refuses(capsys, folder, text, code):
    add(folder, text)
    assert main(["check"]) == 2
    told = capsys.readouterr().err
    assert code in told
    assert "topsecret" not in told
