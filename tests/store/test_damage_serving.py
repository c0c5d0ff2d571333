"""A serving process whose store is damaged under it ends with an error, and the next one serves the right values."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from headrace.config import config
from headrace.store import LmdbStore
from headrace.store.open import rebuild
from tests.serve.test_server import PATIENCE, PROJECT, RUN, asked, until
from tests.store.test_redis_serving import _be_the_pipeline, _refused, _said_by

pytestmark = pytest.mark.xdist_group("live")


class Served:
    """A project and the process that serves it, started again when the last has ended."""

    def __init__(self, folder):
        self.folder, self.store = folder, folder / ".headrace" / "store"
        (folder / "headrace.toml").write_text('[project]\nname = "shop"\n')
        (folder / "features.py").write_text(PROJECT)

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN, str(self.folder)], stderr=subprocess.PIPE, text=True
        )
        told = until(lambda: _said_by(self.folder / ".headrace" / "run" / "serve.json", self.process.pid))
        self.url = f"http://{told['host']}:{told['port']}/v1/features/users/ann"

    def serves(self, clicks):
        return until(lambda: (found := asked(self.url))["features"]["clicks_1h"] == clicks and not found["stale"])

    def ended(self):
        """The exit code of a process that ends by itself, and what it said."""
        said = self.process.communicate(timeout=PATIENCE)[1]
        return self.process.returncode, said


@pytest.fixture
def served(tmp_path):
    made = Served(tmp_path)
    made.start()
    _be_the_pipeline(tmp_path, 3)
    made.serves(3)
    yield made
    made.process.kill()
    made.process.communicate()


def harm(file):
    """Change the value of every tile where it lies in the file."""
    data = bytearray(file.read_bytes())
    place = data.find(b'"count_')
    assert place > 0
    while place > 0:
        data[place + 1 : place + 6] = b"xxxxx"
        place = data.find(b'"count_', place)
    with file.open("r+b") as opened:
        opened.write(data)


def test_a_value_that_is_damaged_is_never_served_and_the_next_process_has_it_right(served):
    harm(served.store / "data.mdb")
    assert until(lambda: _refused(served.url)) == (503, "store-damaged")
    code, said = served.ended()
    assert (code, "code: store-damaged" in said) == (1, True)
    served.start()
    assert served.serves(3)


def test_a_store_that_is_deleted_ends_the_process_and_is_filled_by_the_next(served):
    shutil.rmtree(served.store)
    code, said = served.ended()
    assert (code, "The store's files are gone." in said) == (1, True)
    served.start()
    assert served.serves(3)


def test_a_file_that_is_cut_off_ends_the_process_one_way_or_the_other(served):
    os.truncate(served.store / "data.mdb", 8_192)
    code, _ = served.ended()
    assert code in (1, -signal.SIGBUS, -signal.SIGSEGV, -signal.SIGABRT)
    served.start()
    assert served.serves(3)


def test_a_file_of_garbage_is_set_aside_at_the_start(served):
    served.process.send_signal(signal.SIGKILL)
    served.ended()
    file = served.store / "data.mdb"
    file.write_bytes(os.urandom(file.stat().st_size))
    served.start()
    assert served.serves(3)
    assert (served.store / "aside" / "data.mdb").exists()


def test_a_rebuild_that_is_asked_for_is_done_by_the_process_that_serves(served):
    with LmdbStore(served.store, readonly=True) as store:
        before = store.position("changelog.clicks.by_user")
        assert rebuild(config.load(served.folder)) is True
        assert served.serves(3)
        assert store.position("changelog.clicks.by_user") == before
    assert served.process.poll() is None
    assert json.loads((served.folder / ".headrace" / "run" / "serve.json").read_text())["pid"] == served.process.pid
