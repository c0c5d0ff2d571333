"""The one meaning of a JSON record as native Spark SQL text, for queries where no Python may run.

It is text only: `spark.decode` applies it to a DataFrame, `codec.json.read` says the same in Python, and a
differential test holds the two together. The text comes in stages, lists of (column, expression) to be added one list
after the other, so that a record is parsed once however many fields it has.

`try_parse_json` is strict but for one thing: it stops after the first value. So the record is parsed as the first
element of `[record,"end"]`: whatever follows the value inside the record would come before that end, and the end is a
text that the record cannot contain, nor spell with escapes. How one scalar is told from another is in
`codec.json.sql_scalar`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.codec.json import rules
from headrace.codec.json.sql_scalar import get, in_range, moment, scalar
from headrace.types.field_types import List, String, Struct, Timestamp, Type

END = "~end~"


@dataclass(frozen=True)
class JsonSql:
    """Spark SQL that reads one BINARY column of JSON.

    Parameters
    ----------
    stages
        Columns to add, stage after stage; a stage uses only columns of earlier ones. All their names start with `~~`,
        which no field's name can.
    malformed
        A boolean expression, never null.
    invalid
        A string expression: the reason, or null. Null also when malformed.
    columns
        For each field of the schema its name and typed expression; null when the record has a fault.
    """

    stages: tuple[tuple[tuple[str, str], ...], ...]
    malformed: str
    invalid: str
    columns: tuple[tuple[str, str], ...]

    @property
    def scratch(self) -> tuple[str, ...]:
        """The names of all columns that the stages add."""
        return tuple(name for stage in self.stages for name, _ in stage)


def json_sql(schema: Struct, value: str = "value") -> JsonSql:
    """The Spark SQL that reads records of this schema from the BINARY column `value`.

    Examples
    --------
    >>> from headrace.types.field_types import schema_of
    >>> sql = json_sql(schema_of({"card": str, "amount": float | None}))
    >>> [name for name, _ in sql.columns]
    ['card', 'amount']
    >>> sql.malformed
    'NOT `~~sound`'
    """
    stages = _Stages()
    text = stages.add("text", 0, _text(_quoted(value)))
    spelled = f"contains({text}, '{END}') OR contains({text}, r'\\')"
    end = stages.add("end", 1, f"CASE WHEN {spelled} THEN repeat('x', length({text})) ELSE '{END}' END")
    parsed = f"""try_parse_json(concat('[', {text}, ',"', {end}, '"]'))"""
    both = stages.add("json", 2, f"CASE WHEN {_has_long_number(text)} THEN NULL ELSE {parsed} END")
    sound = stages.add("sound", 3, f"coalesce({get(both, 'binary', '$[1]')} = CAST({end} AS BINARY), false)")
    root = stages.add("root", 4, f"CASE WHEN {sound} THEN {get(both, _variants(schema), '$[0]')} END")
    parts = [stages.part(f.type, f"{root}.{_quoted(f.name)}", f.name, f.optional, 5) for f in schema]
    not_object, within = _literal(rules.NOT_AN_OBJECT), _first(part.reason for part in parts)
    reason = f"CASE WHEN NOT {sound} THEN NULL WHEN {root} IS NULL THEN {not_object} ELSE {within} END"
    invalid = stages.add("invalid", len(stages.columns), reason)
    fine = f"{sound} AND {invalid} IS NULL"
    columns = tuple((f.name, f"CASE WHEN {fine} THEN {part.value} END") for f, part in zip(schema, parts, strict=True))
    return JsonSql(tuple(map(tuple, stages.columns)), f"NOT {sound}", invalid, columns)


@dataclass(frozen=True)
class _Part:
    """What one value became: an expression of the typed value, and one of the reason against it."""

    value: str
    reason: str


class _Stages:
    """Columns in the making."""

    def __init__(self) -> None:
        self.columns: list[list[tuple[str, str]]] = []
        self.count = 0

    def add(self, name: str, stage: int, sql: str) -> str:
        """Add a column to a stage and say how to refer to it."""
        while len(self.columns) <= stage:
            self.columns.append([])
        self.columns[stage].append((f"~~{name}", sql))
        return _quoted(f"~~{name}")

    def new(self, stage: int, sql: str) -> str:
        self.count += 1
        return self.add(str(self.count), stage, sql)

    def part(self, kind: Type, source: str, path: str, optional: bool, stage: int) -> _Part:
        """Read the variant `source`, adding columns from `stage` on."""
        match kind:
            case Struct(fields):
                inner = self.new(stage, get(source, _variants(kind)))
                parts = [
                    self.part(f.type, f"{inner}.{_quoted(f.name)}", f"{path}.{f.name}", f.optional, stage + 1)
                    for f in fields
                ]
                return _struct_part(kind, source, inner, path, optional, parts)
            case List(element):
                elements = self.new(stage, get(source, "array<variant>"))
                if not isinstance(element, Struct | List):
                    return self.scalars(kind, elements, source, path, optional, stage + 1)
                outcome = _outcome(element, "__e", f"{path}[]", kind.optional, 1)
                read = self.new(stage + 1, f"transform({elements}, __e -> {outcome})")
                return _list_part(kind, source, read, path, optional)
            case Timestamp("rfc3339"):
                # Each of the three is asked for more than once by the next, so it is a column of its own.
                text = self.new(stage, scalar(String(), source))
                typed = self.new(stage + 2, in_range(self.new(stage + 1, moment(text))))
                return _Part(typed, _reason(kind, source, typed, path, optional))
        typed = self.new(stage, scalar(kind, source))
        return _Part(typed, _reason(kind, source, typed, path, optional))

    def scalars(self, kind: List, elements: str, source: str, path: str, optional: bool, stage: int) -> _Part:
        """The common list, cheaper than `_outcome` would read it: reasons are looked for only where a null came out."""
        one = scalar(kind.element, "__e")
        typed = self.new(stage, f"transform({elements}, __e -> {one})")
        reason = _reason(kind.element, "__e", one, f"{path}[]", kind.optional)
        reasons = _first_of(f"transform({elements}, __e -> {reason})")
        within = f"CASE WHEN exists({typed}, __e -> __e IS NULL) THEN {reasons} END"
        return _Part(typed, _reason(kind, source, typed, path, optional, within=within))


def _struct_part(kind: Struct, source: str, inner: str, path: str, optional: bool, parts: list[_Part]) -> _Part:
    values = ", ".join(f"{_literal(f.name)}, {part.value}" for f, part in zip(kind, parts, strict=True))
    within = _first(part.reason for part in parts)
    value = f"CASE WHEN {inner} IS NOT NULL THEN named_struct({values}) END"
    return _Part(value, _reason(kind, source, inner, path, optional, within=within))


def _list_part(kind: List, source: str, read: str, path: str, optional: bool) -> _Part:
    value = f"transform({read}, __r -> __r.value)"
    within = _first_of(f"transform({read}, __r -> __r.reason)")
    return _Part(value, _reason(kind, source, read, path, optional, within=within))


def _outcome(kind: Type, source: str, path: str, optional: bool, depth: int) -> str:
    """The same as `_Stages.part` inside a lambda, where no column can be added: a struct of reason and value."""
    name = f"__v{depth}"
    match kind:
        case Struct(fields):
            each = [
                _outcome(field.type, f"{name}.{_quoted(field.name)}", f"{path}.{field.name}", field.optional, depth + 2)
                for field in fields
            ]
            whole = f"__w{depth}"
            parts = [_Part(f"{whole}._{i}.value", f"{whole}._{i}.reason") for i in range(len(each))]
            part = _struct_part(kind, source, name, path, optional, parts)
            struct = ", ".join(f"'_{i}', {sql}" for i, sql in enumerate(each))
            inner = _let(whole, f"named_struct({struct})", _pair(part))
            return _let(name, get(source, _variants(kind)), inner)
        case List(element):
            each_sql = _outcome(element, f"__e{depth}", f"{path}[]", kind.optional, depth + 2)
            read = f"transform({get(source, 'array<variant>')}, __e{depth} -> {each_sql})"
            return _let(name, read, _pair(_list_part(kind, source, name, path, optional)))
    return _let(name, scalar(kind, source), _pair(_Part(name, _reason(kind, source, name, path, optional))))


def _first(reasons: Iterable[str]) -> str:
    return f"coalesce({', '.join([*reasons, 'CAST(NULL AS STRING)'])})"


def _first_of(reasons: str) -> str:
    return f"get(filter({reasons}, __r -> __r IS NOT NULL), 0)"


def _pair(part: _Part) -> str:
    return f"named_struct('reason', {part.reason}, 'value', {part.value})"


def _let(name: str, sql: str, body: str) -> str:
    return f"get(transform(array({sql}), {name} -> {body}), 0)"


def _reason(kind: Type, source: str, typed: str, path: str, optional: bool, *, within: str = "NULL") -> str:
    """Why the value is refused: asked only when reading gave null, or what is within has a reason of its own."""
    absent = "NULL" if optional else _literal(rules.missing(path))
    null = f"{source} IS NULL OR is_variant_null({source})"
    refused = f"CASE WHEN {null} THEN {absent} ELSE {_literal(rules.wrong(path, kind))} END"
    return f"CASE WHEN {typed} IS NULL THEN {refused} ELSE {within} END"


def _text(value: str) -> str:
    return (
        f"CASE WHEN octet_length({value}) <= {rules.LARGEST_VALUE} THEN try_validate_utf8(CAST({value} AS STRING)) END"
    )


def _has_long_number(text: str) -> str:
    """Whether a number outside all strings is too long; a run is tried at its start only, so the cost stays linear."""
    long = f"r'(?<![-+.0-9eE])[-+.0-9eE]{{{rules.LONGEST_NUMBER + 1}}}'"
    outside = f"""regexp_replace(replace(replace({text}, r'\\\\', ''), r'\\"', ''), '"[^"]*"', '""')"""
    suspect = f"octet_length({text}) > {rules.LONGEST_NUMBER} AND {text} RLIKE {long}"
    return f"CASE WHEN {suspect} THEN {outside} RLIKE {long} ELSE false END"


def _variants(kind: Struct) -> str:
    return f"struct<{', '.join(f'{_quoted(field.name)}: variant' for field in kind)}>"


def _literal(text: str) -> str:
    return f"'{text}'"


def _quoted(name: str) -> str:
    return f"`{name}`"
