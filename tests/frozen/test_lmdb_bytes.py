"""The bytes of the LMDB store: every key and value of its databases, and its files, after a fixed list of rows."""

from __future__ import annotations

import lmdb
import pytest

from headrace.store import LmdbStore
from tests.frozen.stored_rows import fill, forget_old_tiles


def list_contents(folder):
    """Every (database, key, value) of a closed store, in the order of their bytes."""
    lines = []
    with lmdb.open(str(folder), max_dbs=8, readonly=True) as environment:
        with environment.begin() as transaction:
            databases = sorted(bytes(name) for name in transaction.cursor().iternext(values=False))
        for name in databases:
            database = environment.open_db(name, create=False)
            with environment.begin() as transaction:
                pairs = [(bytes(key), bytes(value)) for key, value in transaction.cursor(db=database)]
            lines += [f"{name.decode()} {key.hex()} {value.hex()}" for key, value in pairs]
    return "\n".join(lines)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


def test_tiles_levels_and_words_about_runs_have_the_bytes_they_had(golden, folder):
    with LmdbStore(folder, map_size=1 << 20) as store:
        fill(store)
        assert store.stats().levels > 0
    golden("frozen/lmdb", list_contents(folder))


def test_a_base_and_what_it_leaves_have_the_bytes_they_had(golden, folder):
    with LmdbStore(folder, map_size=1 << 20) as store:
        fill(store)
        forget_old_tiles(store)
    golden("frozen/lmdb_after_expiry", list_contents(folder))


def test_the_folder_of_a_store_has_the_files_that_it_had(folder):
    with LmdbStore(folder, map_size=1 << 20) as store:
        fill(store)
        assert sorted(file.name for file in folder.iterdir()) == ["data.mdb", "lock.mdb", "writer.lock"]
    assert sorted(file.name for file in folder.iterdir()) == ["closed", "data.mdb", "lock.mdb", "writer.lock"]
