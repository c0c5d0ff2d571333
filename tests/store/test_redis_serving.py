"""From the changelog through Redis to values: those of the other stores, in this process and in two that serve."""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys
import urllib.error

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import project
from headrace.clock import SystemClock
from headrace.log import EmbeddedLog, Message
from headrace.meaning.reference import ReferenceResult
from headrace.read.reader import Reader
from headrace.store import MemoryStore, RedisStore
from headrace.testing import record
from headrace.tiles.changelog import ProgressRow, TileRow
from headrace.tiles.changelog_format import encode
from tests.budget import examples
from tests.serve.shape import rows_of
from tests.serve.test_reader import changelog, fill, plan
from tests.serve.test_server import PATIENCE, PROJECT, RUN, asked, until
from tests.store.server import Server
from tests.streams import every_aggregate, every_window, streams, times

numbers = itertools.count()


@given(records=streams, t=times, seed=st.integers(0, 99))
@examples(2 / 5)
def test_a_read_gives_what_it_gives_over_memory(redis_server, records, t, seed):
    outcome = ReferenceResult(plan, records)
    rows = changelog(outcome, t, random.Random(seed))
    with RedisStore(redis_server.url, namespace=f"serving-{next(numbers)}") as store:
        shared, own = Reader(plan, fill(store, rows)), Reader(plan, fill(MemoryStore(), rows))
        for view in (every_window, every_aggregate):
            for key in [*outcome.keys(view), ("nobody",)]:
                assert repr(shared.read(view.name, key, t)) == repr(own.read(view.name, key, t))


@pytest.mark.xdist_group("live")
def test_two_processes_that_share_a_redis_serve_one_answer(redis_server, namespace, tmp_path):
    text = f'[project]\nname = "{namespace}"\n[store]\nkind = "redis"\nurl = "{redis_server.url}"\n'
    (tmp_path / "headrace.toml").write_text(text)
    (tmp_path / "features.py").write_text(PROJECT)
    file, told, processes = tmp_path / ".headrace" / "run" / "serve.json", [], []
    try:
        for _ in range(2):
            processes.append(subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path)]))
            told.append(until(lambda: _said_by(file, processes[-1].pid)))
        _be_the_pipeline(tmp_path, 3)
        for each in told:
            url = f"http://{each['host']}:{each['port']}/v1/features/users/ann"
            assert (
                until(lambda url=url: (found := asked(url))["features"]["clicks_1h"] == 3 and found)["missing"] is False
            )
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(PATIENCE) for process in processes]
    assert codes == [0, 0]
    assert not (tmp_path / ".headrace" / "store").exists()


@pytest.mark.xdist_group("live")
def test_a_process_whose_redis_dies_says_so_and_goes_on_when_an_empty_one_is_back(tmp_path):
    server = Server()
    server.start()
    text = f'[project]\nname = "shop"\n[store]\nkind = "redis"\nurl = "{server.url}"\n'
    (tmp_path / "headrace.toml").write_text(text)
    (tmp_path / "features.py").write_text(PROJECT)
    process = subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path)])
    try:
        told = until(lambda: _said_by(tmp_path / ".headrace" / "run" / "serve.json", process.pid))
        url = f"http://{told['host']}:{told['port']}/v1/features/users/ann"
        _be_the_pipeline(tmp_path, 3)
        assert until(lambda: asked(url)["features"]["clicks_1h"] == 3)
        server.stop()
        assert until(lambda: _refused(url)) == (503, "store-unreachable")
        assert process.poll() is None
        server.start()
        assert until(lambda: asked(url)["features"]["clicks_1h"] == 3)
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(PATIENCE)
        server.close()
    assert code == 0


def _refused(url):
    try:
        asked(url)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["error"]["code"]
    return None


def _said_by(file, pid):
    told = json.loads(file.read_text())
    return told if told["pid"] == pid else None


def _be_the_pipeline(folder, clicks):
    """Tiles of a few clicks that have just happened, and how far that is."""
    made, now = project.load(folder).plan(), SystemClock().now()
    (tiles,), stream = made.tile_sets, made.admissions[0].stream
    given = [msgspec.structs.replace(record(stream, user="ann", at=now), offset=n) for n in range(clicks)]
    rows = [
        *rows_of(ReferenceResult(made, given), tiles, (now + 1,)),
        ProgressRow(tiles.fingerprint, "1", {0: clicks}, now),
    ]
    pairs = [encode(row, ("user",) if isinstance(row, TileRow) else ()) for row in rows]
    with EmbeddedLog(folder / ".headrace" / "log") as log:
        log.append_batch("changelog.clicks.by_user", [Message(value, key) for key, value in pairs])
