"""A schema registry that speaks the Confluent protocol over HTTP, as far as streams need it.

Numbers never change their schema, so what was once fetched is kept on disk and in memory and never asked again. Two
things are kept apart with care: a number that the registry does not know (`None`: such a record is a dead letter) and a
registry that cannot be asked (an error: the record's verdict must wait). Only an answer in the protocol's own words
counts as "not known"; a 404 from some proxy does not.
How requests are made is in `codec.registry.http`; what is done with schemas, in `codec.wire`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from headrace.codec.avro.carry import carries
from headrace.codec.avro.schema import record
from headrace.codec.json.json_schema import json_schema
from headrace.codec.registry.http import RegistryResponse, ask, strange
from headrace.codec.wire import RecordLayout, Written, own_text
from headrace.config.settings import RegistryAccess
from headrace.errors import SchemaError, shown
from headrace.files import write_atomically

NATIVE = 20
"""How many of a subject's newest schemas a query is planned with; older ones are looked up when they are met."""

ASK_AGAIN = 30.0
"""Seconds for which a number stays unknown without being asked about again."""

LARGEST_ID = 2**31 - 1
"""Registries number with 32 signed bits: beyond them nobody needs to be asked."""

SUBJECT_NOT_FOUND, VERSION_NOT_FOUND, SCHEMA_NOT_FOUND = 40401, 40402, 40403

_memory: dict[tuple[str, int], Written] = {}
_unknown: dict[tuple[str, int], float] = {}


@dataclass(frozen=True)
class Registered:
    """A subject's schema as the registry keeps it."""

    number: int
    version: int
    written: Written


@dataclass(frozen=True)
class RegistryClient:
    """A registry at an address. It is a value: it can be sent to Spark's workers, and asks from there.

    Parameters
    ----------
    access
        The address, and how to be let in.
    cache
        The folder in which fetched schemas are kept.
    now
        A clock of seconds, for tests.
    """

    access: RegistryAccess
    cache: Path
    now: Callable[[], float] = field(default=time.monotonic, compare=False)

    def schema_by_id(self, number: int) -> Written | None:
        """The schema of a number, or None if the registry says that there is none."""
        if number > LARGEST_ID:
            return None
        place = (self.access.address, number)
        if place in _memory:
            return _memory[place]
        if self.now() - _unknown.get(place, -ASK_AGAIN) < ASK_AGAIN:
            return None
        found = self._cached(number) or self._fetched(number)
        if found is not None:
            _memory[place] = found
        else:
            if len(_unknown) > 100_000:
                _unknown.clear()
            _unknown[place] = self.now()
        return found

    def latest(self, subject: str) -> Registered | None:
        """A subject's newest schema, or None if the subject has none."""
        return self._version(subject, "latest")

    def ids(self, subject: str) -> tuple[int, ...]:
        """The numbers of a subject's newest schemas."""
        answer = self._ask("GET", f"/subjects/{_part(subject)}/versions")
        if answer.error == SUBJECT_NOT_FOUND:
            return ()
        listed = answer.body
        if not isinstance(listed, list) or not all(type(one) is int for one in listed):
            raise strange(self.access, answer)
        versions = (self._version(subject, str(one)) for one in sorted(listed)[-NATIVE:])
        return tuple(version.number for version in versions if version is not None)

    def register(self, subject: str, written: Written) -> int:
        """The number of a schema under a subject; it is registered if it is not there yet."""
        body = {"schema": written.text} | ({} if written.kind == "AVRO" else {"schemaType": written.kind})
        answer = self._ask("POST", f"/subjects/{_part(subject)}/versions", body)
        if answer.status == 409:
            message = f"The registry refuses a schema for subject {subject!r}: it is incompatible with an earlier one."
            hint = "Add and remove fields as optional ones, or change the subject's compatibility in the registry."
            raise SchemaError("incompatible-schema", message, got=shown(answer.message), hint=hint)
        number = answer.body.get("id") if isinstance(answer.body, dict) else None
        if answer.error is not None or type(number) is not int:
            raise strange(self.access, answer)
        return number

    def incompatible(self, subject: str, written: Written) -> tuple[str, ...]:
        """What the registry has against a schema as the subject's next; empty when nothing, or no subject yet."""
        path = f"/compatibility/subjects/{_part(subject)}/versions/latest?verbose=true"
        body = {"schema": written.text} | ({} if written.kind == "AVRO" else {"schemaType": written.kind})
        answer = self._ask("POST", path, body)
        if answer.error in (SUBJECT_NOT_FOUND, VERSION_NOT_FOUND):
            return ()
        if not isinstance(answer.body, dict) or type(answer.body.get("is_compatible")) is not bool:
            raise strange(self.access, answer)
        if answer.body["is_compatible"]:
            return ()
        return tuple(map(str, answer.body.get("messages") or ())) or ("the registry does not say why",)

    def writer(self, subject: str, layout: RecordLayout) -> tuple[int, str]:
        """The schema to write rows with: the subject's newest if it holds every field, else the stream's own.

        A subject belongs to its producers: as long as theirs can carry the stream's fields nothing is registered.
        """
        newest = self.latest(subject)
        if layout.format == "confluent-json":
            kind = "JSON"
            own = Written(json.dumps(json_schema(layout.schema, layout.name), sort_keys=True), kind)
            carries = newest is not None and newest.written.kind == kind
        else:
            own = Written(own_text(layout))
            carries = newest is not None and can_carry(layout, newest.written)
        if newest is not None and carries:
            return newest.number, newest.written.text
        return self.register(subject, own), own.text

    def _version(self, subject: str, version: str) -> Registered | None:
        answer = self._ask("GET", f"/subjects/{_part(subject)}/versions/{version}")
        if answer.error in (SUBJECT_NOT_FOUND, VERSION_NOT_FOUND):
            return None
        match answer.body:
            case {"id": int(number), "version": int(at), "schema": str()}:
                written = _written(answer.body)
                _memory[self.access.address, number] = written
                return Registered(number, at, written)
        raise strange(self.access, answer)

    def _fetched(self, number: int) -> Written | None:
        answer = self._ask("GET", f"/schemas/ids/{number}")
        if answer.error == SCHEMA_NOT_FOUND:
            return None
        if not isinstance(answer.body, dict) or not isinstance(answer.body.get("schema"), str):
            raise strange(self.access, answer)
        self._keep(number, answer.body)
        return _written(answer.body)

    def _ask(self, method: str, path: str, body: Any = None) -> RegistryResponse:
        return ask(self.access, method, path, body)

    def _file(self, number: int) -> Path:
        return self.cache / hashlib.sha256(self.access.address.encode()).hexdigest()[:16] / f"{number}.json"

    def _cached(self, number: int) -> Written | None:
        try:
            held = json.loads(self._file(number).read_bytes())
        except (OSError, ValueError):
            return None
        return _written(held) if isinstance(held, dict) and isinstance(held.get("schema"), str) else None

    def _keep(self, number: int, body: dict[str, Any]) -> None:
        """A cache that cannot be written is no reason to stop: the schema is fetched again next time."""
        file = self._file(number)
        with contextlib.suppress(OSError):
            write_atomically(file, json.dumps(body))


def can_carry(layout: RecordLayout, written: Written) -> bool:
    """Whether rows of a stream can be written with a schema, every field in its place."""
    try:
        return written.kind == "AVRO" and carries(layout.schema, record(written.text))
    except SchemaError:
        return False


def _written(body: dict[str, Any]) -> Written:
    kind = str(body.get("schemaType") or "AVRO")
    # A schema that leans on others is not whole, and is told apart by its kind.
    return Written(body["schema"], f"{kind} with references" if body.get("references") else kind)


def _part(text: str) -> str:
    return quote(text, safe="")
