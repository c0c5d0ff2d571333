"""Which topics a folder holds: one file each, that carries its own description. Nothing here touches records."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import msgspec

from headrace.errors import MachineError
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.files import FileLock
from headrace.log.embedded import table
from headrace.log.embedded.database import connect, translated
from headrace.log.topic import Topic, agree

SUFFIX = ".topic"


def path_of(folder: Path, name: str) -> Path:
    """The file of a topic."""
    return folder / (name + SUFFIX)


def stored(folder: Path, name: str) -> Topic | None:
    """The topic as its file describes it; None if there is no such topic, or not yet."""
    path = path_of(folder, name)
    if not path.exists():
        return None
    with translated(path):
        connection = connect(path)
        try:
            return _described(connection, path)
        finally:
            connection.close()


def names(folder: Path) -> list[str]:
    """The topics of a folder, in order."""
    return sorted(path.name.removesuffix(SUFFIX) for path in folder.glob("*" + SUFFIX))


def create(folder: Path, topic: Topic, faults: FaultPoints = NO_FAULTS) -> Topic | None:
    """Create a topic's file, once among all processes; what was there before, if it agrees."""
    with FileLock(folder / "create-lock") as gate, gate.hold():
        existing = stored(folder, topic.name)
        if existing is None:
            _write(path_of(folder, topic.name), topic, faults)
        else:
            agree(existing, topic)
        return existing


def describe(connection: sqlite3.Connection, topic: Topic) -> None:
    """Replace the description, inside the caller's transaction."""
    connection.execute("UPDATE topic SET form = ?", (msgspec.json.encode(topic),))


def _described(connection: sqlite3.Connection, path: Path) -> Topic | None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        return None
    if version != table.FORMAT:
        hint = "Read it with the version of Headrace that wrote it."
        message = "The log was written in another format."
        raise MachineError("log-format", message, got=f"format {version}", hint=hint, where=str(path))
    return msgspec.json.decode(connection.execute("SELECT form FROM topic").fetchone()[0], type=Topic)


def _write(path: Path, topic: Topic, faults: FaultPoints) -> None:
    path.touch()
    faults.reach("log.topic.before")
    with translated(path):
        connection = connect(path)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("BEGIN IMMEDIATE")
            table.create(connection, topic)
            connection.execute("INSERT INTO topic VALUES (?)", (msgspec.json.encode(topic),))
            connection.execute("COMMIT")
        finally:
            connection.close()
    faults.reach("log.topic.after")
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        # The file's name must survive the machine too.
        os.fsync(folder)
    finally:
        os.close(folder)
