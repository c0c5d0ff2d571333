"""State files of a query that Spark cannot load: found before the query starts, or noted when Spark refuses them.

Spark keeps the state of an operator as snapshots and changelogs. To load version 7 it takes the newest snapshot that is
whole, such as version 4, and replays changelogs 5 to 7. A missing or cut off file in that chain fails every start.

`state_fault` walks the chain that the last commit needs, as far as the commits name it. What only Spark can tell, such
as a file that was cut off together with its sums, is noted in the checkpoint when the query fails (`note_failure`). One
failure may be the machine's; the second from the same commit is taken for damage. What happens with a damaged
checkpoint is decided in `spark.pipeline.checkpoint_damage`.
"""

from __future__ import annotations

import contextlib
import json
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

from headrace.files import write_atomically
from headrace.spark.failure import cause_of, text_of
from headrace.spark.progress import last_batch

FAILURES = 2
"""Failures from one commit from which on its state is damaged."""
REFUSED = re.compile(
    r"\[(CANNOT_LOAD_STATE_STORE|CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED|STREAMING_STATEFUL_OPERATOR_)[A-Z_.]*\]"
)
"""How Spark names a failure to load state."""
EXHAUSTED = re.compile(r"No space left on device|OutOfMemoryError|Too many open files|Cannot allocate memory")
"""What is no damage: the files may be whole."""
CHECKSUMS = b"crc\0"
"""How the file begins that Spark keeps beside each: then the bytes in a piece, and a sum for each piece."""
METADATA, SCHEMA = "_metadata/metadata", "0/_metadata/schema"
"""Files that every operator has one of."""


def is_whole(file: Path) -> bool:
    """Whether a file has the bytes that were written; one without sums is taken at its word."""
    data = file.read_bytes()
    try:
        kept = file.with_name(f".{file.name}.crc").read_bytes()
    except OSError:
        return True
    if len(kept) < 8 or not kept.startswith(CHECKSUMS):
        return False
    (size,) = struct.unpack(">I", kept[4:8])
    pieces = [data[at : at + size] for at in range(0, len(data), size)] if size else []
    return kept[8:] == b"".join(struct.pack(">I", zlib.crc32(piece)) for piece in pieces)


def state_fault(checkpoint: Path) -> str | None:
    """What is wrong with the state that the next batch of a query needs; None when nothing is known to be."""
    done = last_batch(checkpoint)
    if done is None:
        return None
    for operator, partitions in _stores(checkpoint, done).items():
        folder = checkpoint / "state" / operator
        found = next((file for file in (folder / METADATA, folder / SCHEMA) if not _is_usable(file)), None)
        if found is None and not _is_schema((folder / SCHEMA).read_bytes()):
            found = folder / SCHEMA
        for partition in range(len(partitions)):
            found = found or _broken_changelog(checkpoint, done, operator, partition)
        if found is not None:
            name = found.relative_to(checkpoint).as_posix()
            return f"{name} is not what was written" if found.exists() else f"{name} is missing"
    return None


def _broken_changelog(checkpoint: Path, done: int, operator: str, partition: int) -> Path | None:
    """The newest changelog that is damaged and not replaced by a newer snapshot."""
    folder = checkpoint / "state" / operator / str(partition)
    for batch in range(done, -1, -1):
        stores = _stores(checkpoint, batch).get(operator, [])
        if partition >= len(stores) or len(stores[partition]) != 1:
            return None
        # A batch makes the version that follows its number.
        name = f"{batch + 1}_{stores[partition][0]}"
        if _is_snapshot(folder / f"{name}.zip"):
            return None
        if not _is_usable(changelog := folder / f"{name}.changelog"):
            return changelog
    return None


def _stores(checkpoint: Path, batch: int) -> dict[str, list[list[str]]]:
    """By operator the ids of the state that a batch left, by partition and store; empty when its commit is gone."""
    try:
        told: Any = json.loads((checkpoint / "commits" / str(batch)).read_text("utf-8").splitlines()[-1])
        return dict(told.get("stateUniqueIds") or {})
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return {}


def _is_usable(file: Path) -> bool:
    try:
        return file.stat().st_size > 0 and is_whole(file)
    except OSError:
        return False


def _is_schema(data: bytes) -> bool:
    """Whether the file of a schema reaches its end: Spark fails on one that does not, and does not say why.

    Java wrote it: the version, then the schemas of keys and of values, each as a count of texts with their lengths.
    Another version is left to Spark.
    """
    if data[:4] != b"\x00\x02v2":
        return len(data) > 4
    at, schemas = 4, 0
    try:
        while at < len(data):
            (texts,) = struct.unpack_from(">I", data, at)
            at, schema = at + 4, b""
            for _ in range(texts):
                (length,) = struct.unpack_from(">H", data, at)
                schema, at = schema + data[at + 2 : at + 2 + length], at + 2 + length
            # Not decoded: Java writes some characters in a way of its own.
            schemas += schema.startswith(b"{") and schema.endswith(b"}")
    except struct.error:
        return False
    return schemas == 2 and at == len(data)


def _is_snapshot(file: Path) -> bool:
    """Whether a snapshot is there and whole, with all files that it names."""
    try:
        with zipfile.ZipFile(file) as snapshot:
            if snapshot.testzip() is not None:
                return False
            named = json.loads(snapshot.read("metadata").decode("utf-8").splitlines()[-1])["sstFiles"]
        tables = [(file.parent / "SSTs" / each["dfsSstFileName"], each["sizeBytes"]) for each in named]
        return all(table.stat().st_size == size for table, size in tables)
    except (OSError, ValueError, LookupError, TypeError, zipfile.BadZipFile, zlib.error):
        return False


def note_failure(checkpoint: Path, error: BaseException | None) -> None:
    """Note in a checkpoint that Spark could not load its state, if that is why a query has failed."""
    text = "" if error is None else text_of(error)
    if error is None or not REFUSED.search(text) or EXHAUSTED.search(text):
        return
    done, noted = last_batch(checkpoint), _noted(checkpoint)
    times = noted.get("times", 0) if noted.get("batch") == done else 0
    note = {"batch": done, "times": times + 1, "cause": cause_of(error)}
    # Without the note the query fails once more.
    with contextlib.suppress(OSError):
        write_atomically(_note_file(checkpoint), json.dumps(note))


def noted_fault(checkpoint: Path) -> str | None:
    """Why the state of the last commit is taken for damaged after failures; None when it is not."""
    noted = _noted(checkpoint)
    if noted.get("batch") != last_batch(checkpoint) or noted.get("times", 0) < FAILURES:
        return None
    return "Spark failed to load its state"


def _noted(checkpoint: Path) -> dict[str, Any]:
    try:
        noted = json.loads(_note_file(checkpoint).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


def _note_file(checkpoint: Path) -> Path:
    return checkpoint / "headrace" / "state_failures.json"
