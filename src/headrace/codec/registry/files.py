"""The versions of every stream's schema, as files in the project.

One JSON file per version, `schemas/payments/1.json`: the schema's form, its fingerprint and the compatibility it was
registered under. Nothing in a file depends on when or where it was written, so versions belong into version control. A
version is never changed and never removed; a file appears whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.errors import SchemaError, shown
from headrace.types.compatibility import SchemaChange, check
from headrace.types.field_types import NAME, Struct, from_form

FOLDER = "schemas"
"""Where a project keeps them, beside headrace.toml."""

_FILE = re.compile(r"([1-9][0-9]{0,8})[.]json")
_SIDES = {"backward": "Readers of the new schema must read old records", "forward": "Old readers must read new records"}


@dataclass(frozen=True)
class Version:
    """One registered schema of a stream."""

    stream: str
    number: int
    schema: Struct
    compatibility: str

    @property
    def fingerprint(self) -> str:
        """Equal for equal schemas, on every machine."""
        return fingerprint(self.schema)

    @property
    def form(self) -> dict[str, Any]:
        """The version as its file holds it."""
        return {
            "stream": self.stream,
            "version": self.number,
            "fingerprint": self.fingerprint,
            "compatibility": self.compatibility,
            "schema": self.schema.form,
        }


def fingerprint(schema: Struct) -> str:
    """Sixteen hexadecimal digits that name a schema.

    >>> from headrace.types.field_types import schema_of
    >>> fingerprint(schema_of({"card": str}))
    'f05cde12972ba123'
    """
    text = json.dumps(schema.form, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class SchemaFiles:
    """The schemas under one folder.

    Parameters
    ----------
    path
        The folder; it is made when the first schema is registered.

    Examples
    --------
    >>> import tempfile
    >>> from headrace.types.field_types import schema_of
    >>> registry = SchemaFiles(tempfile.mkdtemp())
    >>> registry.register("payments", schema_of({"card": str})).number
    1
    >>> registry.register("payments", schema_of({"card": str, "country": str | None})).number
    2
    >>> registry.latest("payments").schema == registry.get("payments", 2).schema
    True
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def streams(self) -> list[str]:
        """The streams that have a version, in order."""
        if not self.path.is_dir():
            return []
        return sorted(folder.name for folder in self.path.iterdir() if NAME.fullmatch(folder.name) and _numbers(folder))

    def versions(self, stream: str) -> list[int]:
        """The numbers of a stream's versions, oldest first; none if the stream is not known."""
        return _numbers(self._folder(stream))

    def latest(self, stream: str) -> Version | None:
        """A stream's newest version, or None."""
        numbers = self.versions(stream)
        return self.get(stream, numbers[-1]) if numbers else None

    def get(self, stream: str, version: int) -> Version:
        """One version of a stream."""
        file = self._folder(stream) / f"{version}.json"
        try:
            text = file.read_bytes()
        except OSError:
            known = ", ".join(map(str, self.versions(stream))) or "none"
            message = f"Stream {stream!r} has no schema version {shown(version)}."
            raise SchemaError("unknown-version", message, hint=f"Known: {known}.", where=str(file)) from None
        return _read(text, stream, version, file)

    def propose(self, stream: str, schema: Struct, compatibility: str = "backward") -> Version:
        """The version a schema has or would get; nothing is written, and a breaking change is refused.

        A new schema must be compatible with every version that readers may still meet: all of them, or those since the
        last one that was registered with compatibility `none`.
        """
        numbers = self.versions(stream)
        known = [self.get(stream, number) for number in numbers]
        if known and known[-1].schema == schema:
            return known[-1]
        version = Version(stream, numbers[-1] + 1 if numbers else 1, schema, compatibility)
        check(schema, schema, compatibility)
        for other in _still_met(known):
            _refuse(other, version, check(other.schema, schema, compatibility))
        return version

    def register(self, stream: str, schema: Struct, compatibility: str = "backward") -> Version:
        """Let a schema in as the newest version; the newest schema again returns its version. See `propose`."""
        while True:
            version = self.propose(stream, schema, compatibility)
            file = self._folder(stream) / f"{version.number}.json"
            if file.is_file() or _write(file, version.form):
                return version

    def _folder(self, stream: str) -> Path:
        if not isinstance(stream, str) or not NAME.fullmatch(stream):
            hint = "Use letters, digits and underscores, at most 100, not starting with a digit."
            raise SchemaError("bad-name", "A stream's name cannot be used.", got=shown(stream), hint=hint)
        return self.path / stream


def _numbers(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return sorted(int(match[1]) for file in folder.iterdir() if (match := _FILE.fullmatch(file.name)))


def _still_met(known: list[Version]) -> list[Version]:
    fresh = [index for index, version in enumerate(known) if version.compatibility == "none"]
    return known[fresh[-1] :] if fresh else known


def _refuse(old: Version, new: Version, broken: tuple[SchemaChange, ...]) -> None:
    if not broken:
        return
    listed = ", ".join(f"`{change}`" for change in broken)
    level = f"{new.compatibility} compatible with version {old.number}"
    message = f"The new schema of stream {new.stream!r} is not {level}: {listed}."
    sides = [_SIDES[side] for side in _SIDES if new.compatibility in (side, "full")]
    hint = f"{' and '.join(sides)}: add and remove fields as optional ones, or register with compatibility `none`."
    raise SchemaError("incompatible-schema", message, hint=hint)


def _read(text: bytes, stream: str, number: int, file: Path) -> Version:
    try:
        form = json.loads(text)
        schema = from_form(form["schema"])
        version = Version(stream, number, schema, form["compatibility"]) if isinstance(schema, Struct) else None
        sound = version is not None and version.form == form
    except (ValueError, KeyError, TypeError, SchemaError):
        version, sound = None, False
    if version is None or not sound:
        hint = "Bring the file back from version control; a new schema is a new version."
        message = f"Version {number} of stream {stream!r} was changed after it was registered."
        raise SchemaError("bad-type", message, hint=hint, where=str(file))
    return version


def _write(file: Path, form: dict[str, Any]) -> bool:
    """Write a file whole and only if there is none; False when someone else was first."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(form, indent=2) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o644)
        # A link, unlike a rename, never replaces a version that appeared in between.
        os.link(name, file)
    except FileExistsError:
        return False
    finally:
        os.unlink(name)
    return True
