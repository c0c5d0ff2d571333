"""A BINARY column in, a typed row or a fault out, in native Spark SQL: JSON by `codec.json.sql`, Avro by
`codec.avro.sql`, either of them in the Confluent wire format or without.

It decides nothing about lateness or duplicates; the verdict of a whole record is made by the stages that come after.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headrace.codec.avro.node import Node
from headrace.codec.avro.schema import record
from headrace.codec.avro.sql import AvroSql, avro_sql, end_mark
from headrace.codec.json import rules
from headrace.codec.json.sql import json_sql
from headrace.codec.wire import UNFRAMED, RecordLayout, own_text
from headrace.codec.writers import Writers, carrier, writers_of
from headrace.errors import ConfigError, shown
from headrace.spark.avro import need_avro
from headrace.spark.translate import translated
from headrace.types.field_types import Struct

STRICT: dict[str, str] = {
    "spark.sql.variant.allowDuplicateKeys": "false",
    "spark.sql.variant.validateUnicodeInJsonParsing": "true",
}
"""Spark's own defaults, on which the strictness rests."""

HEAD, PAYLOAD, END, OTHER = "~~head", "~~payload", "~~end", "~~other"
NOT_JSON, NOT_AVRO = "it is not JSON", "it is not a record of its Avro schema"


@dataclass(frozen=True)
class _Read:
    """Records with scratch columns added, and the expressions over them that decode a record.

    `malformed` is a boolean, never null, and `reason` says why; `invalid` is a reason or null where not malformed;
    `columns` hold where neither.
    """

    records: DataFrame
    malformed: str
    reason: str
    invalid: str
    columns: tuple[tuple[str, str], ...]


def decode(records: DataFrame, schema: Struct, *, value: str = "value") -> DataFrame:
    """Add to `records` of JSON a `row` (a struct of the schema's fields) and a `fault` (`kind` and `reason`).

    One of the two is null. A fault's kind is `malformed` or `invalid`.

    Parameters
    ----------
    records
        A batch or streaming DataFrame.
    schema
        The fields to read.
    value
        The BINARY column that holds the JSON.
    """
    return _decoded(records, _json(records, schema, value, f"'{NOT_JSON}'"))


def decode_stream(
    records: DataFrame, stream: RecordLayout, writers: Writers | None = None, *, value: str = "value"
) -> DataFrame:
    """Add a `row` and a `fault` to records of a stream, whatever its format.

    Parameters
    ----------
    records
        A batch or streaming DataFrame.
    stream
        The stream: its fields and its format.
    writers
        The schemas that Avro records may be written with; only the stream's own when left out.
    value
        The BINARY column that holds the record.
    """
    if stream.format == "json":
        return decode(records, stream.schema, value=value)
    if stream.format == "confluent-json":
        return _decoded(records, _framed_json(records, stream.schema, value))
    need_avro(records.sparkSession)
    if stream.format == "avro":
        return _decoded(records, _avro(records, stream.schema, record(own_text(stream)), value))
    return _decoded(records, _framed_avro(records, stream, writers or writers_of(stream), value))


def _decoded(records: DataFrame, read: _Read) -> DataFrame:
    fault = (
        f"CASE WHEN {read.malformed} THEN named_struct('kind', 'malformed', 'reason', {read.reason}) "
        f"WHEN {read.invalid} IS NOT NULL THEN named_struct('kind', 'invalid', 'reason', {read.invalid}) END"
    )
    # A struct that may be null with a field that may not is more than Arrow's cast can take.
    fault = f"CAST({fault} AS STRUCT<kind: STRING, reason: STRING>)"
    row = ", ".join(f"'{name}', {text}" for name, text in read.columns)
    row = f"CASE WHEN NOT {read.malformed} AND {read.invalid} IS NULL THEN named_struct({row}) END"
    added = read.records.withColumns({"row": F.expr(row), "fault": F.expr(fault)})
    return added.drop(*(name for name in read.records.columns if name not in records.columns))


def _json(records: DataFrame, schema: Struct, value: str, reason: str) -> _Read:
    _refuse_lax(records)
    sql = json_sql(schema, value)
    for stage in sql.stages:
        records = records.withColumns({name: F.expr(text) for name, text in stage})
    return _Read(records, sql.malformed, reason, sql.invalid, sql.columns)


def _framed(records: DataFrame, value: str) -> DataFrame:
    """Add the five bytes of the head, null where they are not there, and the payload after them."""
    framed = f"octet_length(`{value}`) >= 5 AND substring(`{value}`, 1, 1) = X'00'"
    head = {HEAD: F.expr(f"CASE WHEN {framed} THEN substring(`{value}`, 1, 5) END")}
    payload = {PAYLOAD: F.expr(f"CASE WHEN `{HEAD}` IS NOT NULL THEN substring(`{value}`, 6) END")}
    return records.withColumns(head).withColumns(payload)


def _framed_json(records: DataFrame, schema: Struct, value: str) -> _Read:
    reason = f"CASE WHEN `{HEAD}` IS NULL THEN '{UNFRAMED}' ELSE '{NOT_JSON}' END"
    return _json(_framed(records, value), schema, PAYLOAD, reason)


def _avro(records: DataFrame, schema: Struct, writer: Node, value: str) -> _Read:
    read = avro_sql(schema, writer, _payload(value), f"`{END}`", "~~avro")
    staged = _staged(records, value, [read])
    return _Read(staged, f"(NOT {_sound(read)})", f"'{NOT_AVRO}'", _invalid(read), _where_fine(read))


def _payload(value: str) -> str:
    size = f"octet_length(`{value}`)"
    return f"CASE WHEN {size} >= 1 AND {size} <= {rules.LARGEST_VALUE} THEN `{value}` END"


def _staged(records: DataFrame, payload: str, reads: Iterable[AvroSql]) -> DataFrame:
    """Add the end mark, then the parsed records, then whether they are sound and valid."""
    reads = list(reads)
    ended = records.withColumns({END: F.expr(end_mark(_payload(payload)))})
    parsed = ended.withColumns({read.name: F.expr(read.parsed) for read in reads})
    sound = parsed.withColumns({f"{read.name}-sound": F.expr(read.sound) for read in reads})
    reasons = {f"{read.name}-invalid": f"CASE WHEN {_sound(read)} THEN {read.invalid} END" for read in reads}
    return sound.withColumns({name: F.expr(text) for name, text in reasons.items()})


def _sound(read: AvroSql) -> str:
    return f"`{read.name}-sound`"


def _invalid(read: AvroSql) -> str:
    return f"`{read.name}-invalid`"


def _where_fine(read: AvroSql) -> tuple[tuple[str, str], ...]:
    fine = f"{_sound(read)} AND {_invalid(read)} IS NULL"
    return tuple((name, f"CASE WHEN {fine} THEN {text} END") for name, text in read.columns)


def _framed_avro(records: DataFrame, stream: RecordLayout, writers: Writers, value: str) -> _Read:
    """A native reading for every schema known now; records of others go through Python to the stream's own schema."""
    heads = {f"X'00{number:08X}'": found for number, found in sorted(writers.known.items())}
    refused = {head: found for head, found in heads.items() if isinstance(found, str)}
    framed = _framed(records, value)
    other = translated(framed, stream, writers.ids, _unless(list(heads), value), OTHER)
    reads = {}
    for at, (head, node) in enumerate((head, node) for head, node in heads.items() if isinstance(node, Node)):
        chosen = f"CASE WHEN `{HEAD}` = {head} THEN {_payload(PAYLOAD)} END"
        reads[head] = avro_sql(stream.schema, node, chosen, f"`{END}`", f"~~avro{at}")
    own = avro_sql(stream.schema, carrier(stream.schema), f"`{OTHER}`.body", f"`{END}`", "~~avro_other")
    staged = _staged(other, PAYLOAD, [*reads.values(), own])
    # A translated record is whole; should it ever not be, it must not vanish without a fault.
    lost = f"WHEN `{OTHER}`.kind IS NULL AND NOT {_sound(own)} THEN '{NOT_AVRO}'"
    told = f"WHEN `{OTHER}`.kind = 'malformed' THEN `{OTHER}`.reason"
    others = f"CASE WHEN `{HEAD}` IS NULL THEN '{UNFRAMED}' {told} {lost} END"
    unsound = {head: f"CASE WHEN NOT {_sound(read)} THEN '{NOT_AVRO}' END" for head, read in reads.items()}
    staged = staged.withColumns(
        {
            "~~malformed": F.expr(_case(unsound | {head: _literal(why) for head, why in refused.items()}, others)),
            "~~invalid": F.expr(_case({head: _invalid(read) for head, read in reads.items()}, _invalid_other())),
        }
    )
    fine = {head: dict(_where_fine(read)) for head, read in reads.items()}
    columns = tuple(
        (name, _case({head: texts[name] for head, texts in fine.items()}, text)) for name, text in _where_fine(own)
    )
    return _Read(staged, "(`~~malformed` IS NOT NULL)", "`~~malformed`", "`~~invalid`", columns)


def _literal(text: str) -> str:
    """What a registry said is in it, so nothing in it may be read as SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _invalid_other() -> str:
    return f"CASE WHEN `{OTHER}`.kind = 'invalid' THEN `{OTHER}`.reason END"


def _unless(heads: list[str], value: str) -> str:
    """The whole record where its schema is not among the known ones, else null."""
    known = f" AND `{HEAD}` NOT IN ({', '.join(heads)})" if heads else ""
    return f"CASE WHEN `{HEAD}` IS NOT NULL{known} THEN `{value}` END"


def _case(by_head: Mapping[str, str], otherwise: str) -> str:
    when = " ".join(f"WHEN `{HEAD}` = {head} THEN {text}" for head, text in by_head.items())
    return f"CASE {when} ELSE {otherwise} END" if when else otherwise


def _refuse_lax(records: DataFrame) -> None:
    for setting, needed in STRICT.items():
        got = records.sparkSession.conf.get(setting)
        if got != needed:
            message = f"The Spark setting {setting} must be {needed}, or two readers of one record could disagree."
            raise ConfigError("bad-setting", message, got=shown(got), hint="Set it so in your session.")
