"""`headrace store`: what there is, and a store that is emptied on demand."""

from __future__ import annotations

import json

import pytest

from headrace import project
from headrace.cli.init import create
from headrace.config.config import names
from headrace.log import Message
from headrace.store import LmdbStore, Materialiser, RedisStore
from headrace.tiles.changelog import ProgressRow, TileRow
from headrace.tiles.changelog_format import encode
from headrace.topics import open_log
from tests.cli.asking import asking
from tests.store.conftest import redis_server  # noqa: F401 - a fixture

TOPIC = "changelog.payments.by_card"


@pytest.fixture
def shop(tmp_path, monkeypatch):
    create(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return project.load(tmp_path / "shop").config


@pytest.fixture
def ask(capsys):
    return asking(capsys, "store")


def fill(config, store):
    """Three tiles of two keys in the changelog, two records of which are in the store."""
    rows = [TileRow("aa11", "1", (card,), tile, "on_time", 1) for card, tile in (("a", 0), ("b", 0), ("b", 60))]
    with open_log(config) as log:
        log.create_topic(TOPIC, compacted=True)
        for row in rows[:2]:
            key, value = encode(row, ("card",))
            log.append_batch(TOPIC, [Message(value, key)])
        Materialiser(log, store, [TOPIC]).step()
        for key, value in (encode(rows[2], ("card",)), encode(ProgressRow("aa11", "1", {0: 3}, 9))):
            log.append_batch(TOPIC, [Message(value, key)])


@pytest.fixture
def folder(shop):
    folder = names(shop).path("store")
    with LmdbStore(folder) as store:
        fill(shop, store)
    return folder


def test_stats_tell_what_there_is_and_how_far_it_is_filled(ask, shop, folder):
    code, out, _ = ask("stats", "--json")
    told = json.loads(out)
    assert (code, told["kind"], told["where"]) == (0, "lmdb", str(folder))
    assert (told["keys"], told["tiles"], told["levels"], told["bytes"] > 0) == (2, 2, 0, True)
    assert told["topics"][TOPIC] == {"position": {"0": 2}, "behind": 2}
    assert told["topics"]["headrace.runs"] == {"position": {}, "behind": None}


def test_stats_are_told_to_people_in_words(ask, folder):
    code, out, _ = ask("stats")
    lines = out.splitlines()
    assert (code, lines[0]) == (0, f"lmdb at {folder}")
    assert lines[1].startswith("2 tiles of 2 keys and 0 level rows, ")
    assert lines[3].split() == ["topic", "position", "behind"]
    assert [line.split() for line in lines[4:]] == [["headrace.runs", "-", "no", "topic"], [TOPIC, "0:2", "2"]]


def test_a_store_that_is_not_there_is_said_to_be(ask, shop):
    code, out, err = ask("stats", "--json")
    assert (code, out, json.loads(err)["error"]["code"]) == (3, "", "store-failed")


def test_a_rebuild_removes_the_files_when_nobody_serves(ask, shop, folder):
    (folder / "damaged").write_text("by something\n")
    code, out, err = ask("rebuild")
    assert (code, out) == (0, "")
    assert err.splitlines()[-1] == "It is filled again when serving starts."
    assert [file.name for file in folder.iterdir()] == ["writer.lock"]
    with LmdbStore(folder) as store, open_log(shop) as log:
        assert Materialiser(log, store, [TOPIC]).step() == 4
        assert store.stats().tiles == 3


def test_a_rebuild_says_in_json_what_becomes_of_the_store(ask, folder):
    code, out, _ = ask("rebuild", "--json")
    assert (code, json.loads(out)) == (0, {"where": str(folder), "filled": "when serving starts"})


def test_a_process_that_does_not_answer_is_told_of(ask, folder, monkeypatch):
    monkeypatch.setattr("headrace.store.open.PATIENCE", 0.1)
    with LmdbStore(folder):
        code, _, err = ask("rebuild", "--json")
    assert (code, json.loads(err)["error"]["code"]) == (1, "no-answer")


def test_a_store_in_redis_is_looked_into_and_emptied_even_of_another_format(ask, shop, redis_server):  # noqa: F811
    file = shop.root / "headrace.toml"
    file.write_text(file.read_text() + f'\n[store]\nkind = "redis"\nurl = "{redis_server.url}"\n')
    config = project.load(shop.root).config
    namespace = names(config).key("store")
    with RedisStore(redis_server.url, namespace=namespace) as store:
        fill(config, store)
    code, out, _ = ask("stats", "--json")
    assert (code, json.loads(out)["tiles"], json.loads(out)["topics"][TOPIC]["behind"]) == (0, 2, 2)
    with RedisStore(redis_server.url, namespace=namespace) as store:
        store._client.call("HSET", f"{namespace}:counts:", "format", "0")
    assert ask("stats")[0] == 1
    code, _, err = ask("rebuild")
    assert (code, err.splitlines()[-1]) == (0, "It is being filled again.")
    with RedisStore(redis_server.url, namespace=namespace) as store:
        assert (store.stats().tiles, store.position(TOPIC)) == (0, {})
