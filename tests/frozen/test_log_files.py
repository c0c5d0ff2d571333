"""The files of the embedded log: their names, their tables and every row, after fixed records."""

from __future__ import annotations

import contextlib
import sqlite3

from headrace.log import EmbeddedLog, Message
from headrace.log.topic import Retention
from headrace.testing import FakeClock
from tests.frozen.shop import BASE


def list_rows(file):
    """The tables of a topic's file as SQL, and their rows."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        lines = [f"format {connection.execute('PRAGMA user_version').fetchone()[0]}"]
        tables = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        for name, sql in tables:
            rows = connection.execute(f"SELECT * FROM {name}")
            lines += [sql, *(f"  {row!r}" for row in rows)]
    return lines


def test_a_topic_has_the_file_the_tables_and_the_bytes_that_it_had(golden, tmp_path):
    clock = FakeClock(BASE)
    with EmbeddedLog(tmp_path, clock=clock) as log:
        log.create_topic("payments", partitions=2)
        log.create_topic("changelog", compacted=True, retention=Retention.of(tombstone_age="1d"))
        log.append_batch("payments", [Message(b'{"id":1}', b"42", (("seq", b"1"),)), Message(b'{"id":2}')], partition=1)
        clock.advance("7us")
        log.append_batch("payments", [Message(b"{}" * 400, b"42")])
        log.append_batch("changelog", [Message(b"1", b"a"), Message(None, b"a")])
        log.commit("shop.pipeline", "payments", {0: 1, 1: 2})
    lines = sorted(file.name for file in tmp_path.iterdir())
    for name in ("payments", "changelog"):
        lines += ["", name, *list_rows(tmp_path / f"{name}.topic")]
    golden("frozen/log_files", "\n".join(lines))
