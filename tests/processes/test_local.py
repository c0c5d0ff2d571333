"""The Redis of a project: up, found by its store, down; and what `headrace redis` says of it."""

from __future__ import annotations

import json
import os
import signal
import threading

import pytest

from headrace.cli.init import create
from headrace.cli.main import main
from headrace.config import config
from headrace.errors import MachineError
from headrace.processes import redis
from headrace.processes.ports import free_ports
from headrace.store.open import open_store, redis_url
from headrace.store.redis.client import RedisClient
from headrace.tiles.changelog import TileRow
from tests.store.rows import TOPIC


@pytest.fixture
def shop(tmp_path, monkeypatch):
    folder = tmp_path / "shop"
    create(folder)
    with (folder / "headrace.toml").open("a") as file:
        file.write('\n[store]\nkind = "redis"\n')
    monkeypatch.chdir(folder)
    # Whether this machine has a Redis of its own is of no account here.
    monkeypatch.setattr(redis, "USUAL", f"127.0.0.1:{free_ports(1)[0]}")
    yield config.load()
    redis.down(redis.redis_folder(config.load()))


@pytest.fixture
def ask(capsys):
    """Run a verb of `headrace redis` and return (exit code, stdout, stderr)."""

    def asked(*arguments: str) -> tuple[int, str, str]:
        code = main(["redis", *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return asked


def test_a_redis_goes_up_is_the_projects_store_and_goes_down(shop, ask):
    code, address, err = ask("up")
    assert (code, err.startswith("Redis is up (pid ")) == (0, True)
    again = ask("up")
    assert (again[:2], again[2].startswith("Redis is already up (pid ")) == ((0, address), True)
    assert redis_url(shop) == f"redis://{address.strip()}"
    with open_store(shop, {}) as store:
        store.apply([TileRow("aa11", "r1", ("42",), 0, "on_time", 1)], TOPIC, {0: 1})
    assert ask("down") == (0, "", "Stopped Redis.\n")
    assert ask("down") == (0, "", "No Redis was running.\n")

    # It comes back where it was, and empty: the changelog has everything.
    assert ask("up")[1] == address
    with open_store(shop, {}) as store:
        assert store.position(TOPIC) == {}


def test_it_listens_on_the_loopback_alone_and_keeps_nothing_on_the_disk(shop, ask):
    ask("up")
    folder, client = redis.redis_folder(shop), RedisClient(redis_url(shop))
    said = {name: client.call("CONFIG GET", name)[name] for name in ("bind", "save", "appendonly")}
    assert said == {"bind": "127.0.0.1", "save": "", "appendonly": "no"}
    client.call("SET", "a", "b")
    client.close()
    ask("down")
    assert sorted(path.name for path in folder.iterdir()) == ["lock", "redis.json", "redis.log"]


def test_a_port_may_be_chosen_but_not_changed_while_it_runs(shop, ask):
    first, second = free_ports(2)
    assert ask("up", "--port", str(first))[1] == f"127.0.0.1:{first}\n"
    assert ask("up", "--port", str(first))[0] == 0
    code, _, err = ask("up", "--port", str(second))
    assert (code, "code: already-running" in err, "headrace redis down" in err) == (1, True, True)


def test_without_the_program_the_error_says_how_to_get_it(shop, ask, monkeypatch):
    monkeypatch.setenv("PATH", str(shop.root))
    code, _, err = ask("up")
    assert (code, "code: no-redis" in err, "apt-get install redis-server" in err) == (3, True, True)
    assert redis.running(redis.redis_folder(shop)) is None


def test_the_status_says_where_it_is_and_whether_it_answers(shop, ask):
    code, out, _ = ask("status", "--json")
    told = json.loads(out)
    assert (code, told["answers"], told["local"], told["version"]) == (1, False, None, None)
    assert told["address"] == f"redis://{redis.USUAL}/0"
    assert told["problem"].startswith("Redis cannot be reached.")

    address = ask("up")[1].strip()
    code, out, _ = ask("status", "--json")
    told = json.loads(out)
    assert (code, told["store"], told["answers"], told["problem"]) == (0, "redis", True, None)
    assert (told["address"], told["local"]["address"]) == (f"redis://{address}/0", address)
    assert (told["version"].count("."), told["bytes"] > 0) == (2, True)
    assert "answers   yes" in ask("status")[1]


def test_the_store_is_at_the_usual_address_until_the_project_has_a_redis_and_after_it_was_stopped(shop, ask):
    assert redis_url(shop) == f"redis://{redis.USUAL}"
    own = f"redis://{ask('up')[1].strip()}"
    assert redis_url(shop) == own
    found = redis.running(redis.redis_folder(shop))
    os.kill(found.pid, signal.SIGKILL)
    # It died, and was not stopped: nobody is to fill another one meanwhile.
    assert redis_url(shop) == own
    ask("down")
    assert redis_url(shop) == f"redis://{redis.USUAL}"


def test_a_redis_that_is_just_coming_back_is_waited_for_and_one_that_does_not_come_is_an_error(shop, monkeypatch):
    monkeypatch.setattr("headrace.store.open.COMING_BACK", 0.2)
    with pytest.raises(MachineError, match="cannot be reached"), open_store(shop, {}):
        pass
    monkeypatch.setattr("headrace.store.open.COMING_BACK", 20.0)
    soon = threading.Timer(0.3, redis.up, [redis.redis_folder(shop)])
    soon.start()
    with open_store(shop, {}) as store:
        assert store.stats().tiles == 0
    soon.join()


def test_a_redis_that_is_named_is_used_whatever_runs_here(shop, ask):
    ask("up")
    named = {"HEADRACE_STORE_URL": "redis://127.0.0.1:6379"}
    assert redis_url(config.load(environ=named)) == "redis://127.0.0.1:6379"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"HEADRACE_STORE_KIND": "lmdb"}, 'Set kind = "redis" in [store] of headrace.toml'),
        ({"HEADRACE_STORE_URL": "redis://127.0.0.1:1"}, "store.url names another"),
    ],
)
def test_a_redis_that_the_project_does_not_use_is_started_and_told_so(shop, ask, monkeypatch, more, said):
    for name, value in more.items():
        monkeypatch.setenv(name, value)
    code, _, err = ask("up")
    assert (code, said in err) == (0, True)


def test_the_verbs_need_no_password_and_show_none(shop, ask, monkeypatch):
    monkeypatch.setenv("SHOP_REDIS", f"redis://:open-sesame@{redis.USUAL}")
    monkeypatch.setenv("HEADRACE_STORE_URL", "env:SHOP_REDIS")
    for options in ([], ["--json"]):
        code, out, err = ask("status", *options)
        assert (code, redis.USUAL in out, "open-sesame" in out + err) == (1, True, False)
