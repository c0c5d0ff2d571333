"""Schemas under numbers, wherever the project keeps them: in its own files, or on a server.

The project's own registry gives numbers too (`wire.schema_id`), so the Confluent wire format works without a server.
`check_subject` is what `headrace check` asks of a server.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from headrace.codec.avro.schema import avro_text, fields_read
from headrace.codec.registry.client import RegistryClient, can_carry
from headrace.codec.registry.files import FOLDER, SchemaFiles
from headrace.codec.wire import Laid, RecordLayout, SchemaIds, Written, own_text, schema_id, subject_of
from headrace.config.config import Config, names
from headrace.errors import SchemaError
from headrace.types.compatibility import check


@dataclass(frozen=True)
class ProjectIds:
    """The project's own registry: the versions in its files, and the schemas of its streams as they are now.

    Examples
    --------
    >>> import headrace as hr
    >>> from headrace.codec.wire import Laid
    >>> from headrace.types.field_types import schema_of
    >>> clicks = Laid("clicks", schema_of({"n": int}), "confluent-avro")
    >>> ids = ProjectIds(Path("no/such/folder"), (clicks,))
    >>> ids.schema_by_id(ids.ids("clicks-value")[0]).kind
    'AVRO'
    """

    folder: Path
    streams: tuple[Laid, ...]

    def schema_by_id(self, number: int) -> Written | None:
        """The schema of a number; the files are read anew when it is not among those known."""
        for stream in self.streams:
            if schema_id(own_text(stream)) == number:
                return Written(own_text(stream))
        registry = SchemaFiles(self.folder)
        for name in registry.streams():
            for version in registry.versions(name):
                text = _text_of(self.folder, name, version)
                if schema_id(text) == number:
                    return Written(text)
        return None

    def ids(self, subject: str) -> tuple[int, ...]:
        """The numbers of a stream's versions, and of its schema now."""
        name = subject.removesuffix("-value").rpartition(".")[2]
        texts = [_text_of(self.folder, name, version) for version in SchemaFiles(self.folder).versions(name)]
        texts += [own_text(stream) for stream in self.streams if stream.name == name]
        return tuple(dict.fromkeys(map(schema_id, texts)))

    def writer(self, subject: str, layout: RecordLayout) -> tuple[int, str]:  # noqa: ARG002 - a stream has one own schema
        """The stream's own schema."""
        return schema_id(own_text(layout)), own_text(layout)


@lru_cache(maxsize=4096)
def _text_of(folder: Path, stream: str, version: int) -> str:
    return avro_text(SchemaFiles(folder).get(stream, version).schema, stream)


def registry_of(config: Config, streams: Iterable[RecordLayout]) -> SchemaIds:
    """Where a project's schemas are looked up: the server it names, else its own files."""
    if config.registry.address:
        return server_of(config)
    laid = tuple(Laid(stream.name, stream.schema, stream.format, stream.avro_schema) for stream in streams)
    return ProjectIds(config.root / FOLDER, laid)


def server_of(config: Config) -> RegistryClient:
    """The registry on the server that a project names."""
    return RegistryClient(config.registry, names(config).path("registry"))


def check_subject(client: RegistryClient, stream: RecordLayout, topic: str) -> None:
    """Refuse a stream whose fields cannot be read from its topic's newest schema, or whose own would be turned away.

    A topic without a schema has nothing to disagree with. Only Avro is compared: what a JSON record is, its fields say.
    """
    subject = subject_of(topic)
    newest = client.latest(subject) if stream.format == "confluent-avro" else None
    if newest is None:
        return
    where = f"version {newest.version} of subject {subject!r}"
    if newest.written.kind != "AVRO":
        message = f"Stream {stream.name!r} reads Avro, but {where} is of type {newest.written.kind}."
        raise SchemaError("incompatible-schema", message, where=client.access.address)
    broken = check(fields_read(newest.written.text, stream.schema), stream.schema, "backward")
    if broken:
        listed = ", ".join(f"`{change}`" for change in broken)
        message = f"Stream {stream.name!r} cannot read {where}: {listed}."
        hint = "Declare the fields as the registry's schema has them; what it lacks can only be optional."
        raise SchemaError("incompatible-schema", message, hint=hint, where=client.access.address)
    if not can_carry(stream, newest.written):
        _refuse_own(client, stream, subject)


def _refuse_own(client: RegistryClient, stream: RecordLayout, subject: str) -> None:
    """What Headrace sends needs a schema of its own, which the registry must be ready to take."""
    against = client.incompatible(subject, Written(own_text(stream)))
    if against:
        message = f"The registry would not take the schema of stream {stream.name!r} for subject {subject!r}."
        hint = "Declare fields that the newest schema lacks as optional, or leave sending to the topic's own producers."
        got, where = "; ".join(against)[:300], client.access.address
        raise SchemaError("incompatible-schema", message, got=got, hint=hint, where=where)
