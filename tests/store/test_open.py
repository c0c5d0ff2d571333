"""The store that the settings name, and how they are told where it is without telling anybody the password."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.config.config import parse
from headrace.errors import ConfigError
from headrace.store import LmdbStore, RedisStore
from headrace.store.open import open_store
from headrace.tiles.changelog import TileRow
from tests.store.rows import TOPIC

NAMED = '[project]\nname = "shop"\n'
REDIS = NAMED + '[store]\nkind = "redis"\nurl = "{}"\n'
SECRET = "open-sesame"


def test_a_store_is_a_file_unless_something_else_is_said(tmp_path):
    with open_store(parse(NAMED, tmp_path, {}), {}) as store:
        assert isinstance(store, LmdbStore)


def test_a_store_in_redis_is_named_after_prefix_and_project(redis_server, tmp_path):
    text = 'prefix = "eu"\n' + REDIS.format(redis_server.url)
    with open_store(parse(text, tmp_path, {}), {}) as store:
        store.apply([TileRow("aa11", "r1", ("42",), 0, "on_time", 1)], TOPIC, {0: 1})
    with RedisStore(redis_server.url, namespace="eu:shop:store") as found:
        assert found.position(TOPIC) == {0: 1}
    with open_store(parse(REDIS.format(redis_server.url), tmp_path, {}), {}) as neighbour:
        assert neighbour.position(TOPIC) == {}


def test_an_address_may_come_from_a_variable_which_is_read_when_the_store_is_opened(redis_server, monkeypatch):
    config = parse(REDIS.format("env:SHOP_REDIS"), Path(), {})
    with pytest.raises(ConfigError) as refused, open_store(config, {}):
        pass
    assert (refused.value.hint, refused.value.where) == ("Set SHOP_REDIS.", "store.url")
    monkeypatch.setenv("SHOP_REDIS", redis_server.url)
    with open_store(config, {}) as store:
        assert isinstance(store, RedisStore)


@pytest.mark.parametrize(
    "url",
    [
        "redis://here",
        "redis://here:6379/3",
        "rediss://[::1]:7000/0?ssl_ca_certs=/etc/ca.pem",
        "unix:///run/redis.sock?db=1",
        "env:REDIS_URL",
    ],
)
def test_addresses_without_a_secret_are_taken(url):
    assert parse(REDIS.format(url), Path(), {}).store.url == url


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:{SECRET}@here",
        f"redis://{SECRET}@here",
        f"redis://here?password={SECRET}",
        f"redis://here?db=1&password={SECRET}",
        f"http://{SECRET}",
        f"env:{SECRET}",
        "",
    ],
)
def test_an_address_with_a_password_in_the_settings_is_refused_and_not_shown(url):
    for text, environ in ((REDIS.format(url), {}), (NAMED, {"HEADRACE_STORE_URL": url})):
        with pytest.raises(ConfigError) as refused:
            parse(text, Path(), environ)
        assert (refused.value.code, "env:REDIS_URL" in str(refused.value.hint)) == ("bad-setting", True)
        assert SECRET not in str(refused.value)
