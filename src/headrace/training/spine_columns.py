"""The columns of a spine that are read, each as an expression of the type it is needed in.

A cell that cannot be of that type is null there, which is counted (`training.spine_facts`) and refused: a key is taken
as a request would write it, a time as RFC 3339 has it. No cell is rounded, cut or guessed at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.codec.json import rules
from headrace.codec.json.sql_scalar import in_range, moment
from headrace.errors import DataError, did_you_mean, shown
from headrace.training.feature_columns import FeatureColumns
from headrace.training.request import TrainingRequest
from headrace.training.row_selection import quoted
from headrace.types.field_types import Boolean, Decimal, Float, Integer, String, Timestamp, Type

PLACE: dict[str, Type] = {"_arrived_at": Timestamp(), "_partition": Integer(), "_offset": Integer()}
"""The columns of silver that say which event a row is."""
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_LARGEST_FLOAT = "1.7976931348623157E308D"
_NUMBER = "-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?"
_WHOLE = "0|-?[1-9][0-9]{0,18}"
GUESSES = {"boolean": "(?i:true|false)", "bigint": "-?(0|[1-9][0-9]{0,17})"}
"""What the text of a column may be taken for when every cell of it is of the shape: nothing is lost by it."""
DOUBLE_GUESS = "-?(0|[1-9][0-9]{0,14})([.][0-9]{1,15})?([eE][+-]?[0-9]{1,2})?"


@dataclass(frozen=True)
class SpineColumn:
    """A column that is read: its type, what for, and whether a cell of it may be null."""

    name: str
    type: Type
    role: str
    optional: bool = False


def needs(asked: FeatureColumns, wish: TrainingRequest) -> list[SpineColumn]:
    """The columns that a training set reads of its spine, each once; one that is needed in two types is refused.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})
    >>> [(need.name, need.role) for need in needs(FeatureColumns("users", (users,)), TrainingRequest(("users",)))]
    [('t', 'the time'), ('user', 'a key')]
    """
    found = [SpineColumn(wish.time, Timestamp(), "the time")]
    found += [SpineColumn(name, kind, "a key") for name, kind in asked.key_types.items()]
    if wish.include_event is not None:
        found += [SpineColumn(name, kind, "the place of its event") for name, kind in PLACE.items()]
    for made in asked.on_demands:
        role = f"a request value of {made.name}"
        found += [SpineColumn(each.name, each.type, role, each.optional) for each in made.request]
    merged: dict[str, SpineColumn] = {}
    for need in found:
        other = merged.setdefault(need.name, need)
        if other.type.ddl != need.type.ddl:
            message = f"Column {need.name!r} of the spine is needed in two types."
            hint = "Choose features that agree on its type, or make two sets."
            raise DataError(
                "bad-spine", message, got=f"{other.type} as {other.role}, {need.type} as {need.role}", hint=hint
            )
        if other.optional and not need.optional:
            merged[need.name] = need
    return list(merged.values())


def refuse_missing(wanted: Sequence[SpineColumn], wish: TrainingRequest, columns: Sequence[str]) -> None:
    """Refuse a spine that lacks a column."""
    for need in wanted:
        if need.name not in columns:
            hint = did_you_mean(need.name, columns)
            if need.role == "the time":
                hint = f"{hint or ''} Say which column it is with time= or --time.".strip()
            message = f"The spine has no column {need.name!r}, which is {need.role}."
            raise DataError("bad-spine", message, got=shown(list(columns), 200), hint=hint)
    chosen = wish.downsample
    if chosen is not None and chosen.column not in columns:
        message = "The spine has no column to downsample by."
        raise DataError("bad-spine", message, got=shown(chosen.column), hint=did_you_mean(chosen.column, columns))


def typed(need: SpineColumn, kind: str) -> str:
    """The column in the type that is needed, null where a cell cannot be; `kind` is its type as Spark shows it.

    >>> typed(SpineColumn("card", String(), "a key"), "bigint")
    'CAST(`card` AS STRING)'
    """
    column = quoted(need.name)
    if kind == "void":
        return f"CAST(NULL AS {need.type.ddl})"
    found = _from_text(need.type, column) if kind == "string" else _from_kind(need.type, column, kind)
    if found is None:
        message = f"Column {need.name!r} of the spine is {need.role}, and cannot be of type {need.type}."
        raise DataError("bad-spine", message, got=kind, hint=_hint(need.type, kind))
    return found


def _from_text(wanted: Type, column: str) -> str | None:
    match wanted:
        case String():
            return column
        case Timestamp(unit):
            return in_range(moment(column)) if unit == "rfc3339" else None
        case Integer():
            return _when(column, _WHOLE, f"try_cast({column} AS BIGINT)")
        case Boolean():
            return f"CASE {column} WHEN 'true' THEN true WHEN 'false' THEN false END"
        case Float():
            return _finite(f"(CASE WHEN {_is(column, _NUMBER)} THEN try_cast({column} AS DOUBLE) END)")
        case Decimal():
            return _when(column, rules.decimal_pattern(wanted), f"try_cast({column} AS {wanted.ddl})")
    return None


def _from_kind(wanted: Type, column: str, kind: str) -> str | None:
    number = kind in _INTEGERS or kind.startswith("decimal(")
    match wanted:
        case String() | Integer() if kind in _INTEGERS:
            return f"CAST({column} AS {wanted.ddl})"
        case Boolean() if kind == "boolean":
            return column
        case Timestamp(unit) if kind == "timestamp":
            return in_range(column)
        case Timestamp(unit) if unit in Timestamp.units and kind in _INTEGERS:
            least, most = rules.bounds(unit)
            micros = f"timestamp_micros(CAST({column} AS BIGINT) * {Timestamp.units[unit]}L)"
            return f"CASE WHEN {column} BETWEEN {least}L AND {most}L THEN {micros} END"
        case Float() if number or kind in ("double", "float"):
            return _finite(f"CAST({column} AS DOUBLE)")
        case Decimal() if number:
            cast = f"try_cast({column} AS {wanted.ddl})"
            return f"CASE WHEN {cast} = {column} THEN {cast} END"
    return column if _plain(wanted.ddl) == _plain(kind) else None


def guess(counts: Mapping[str, int]) -> str:
    """The type of a column of text that nothing asks for: that which every cell has the shape of.

    >>> guess({"boolean": 3, "bigint": 0, "double": 0}), guess({"boolean": 3, "bigint": 1, "double": 1})
    ('bigint', 'string')
    """
    if not any(counts.values()):
        return "string"  # no cell at all: one would have the shape of some type and not of another
    return next((kind for kind, others in counts.items() if not others), "string")


def shapes(name: str) -> dict[str, str]:
    """How many cells of a column of text have not the shape of each type, as expressions."""
    column = quoted(name)
    patterns = GUESSES | {"double": DOUBLE_GUESS}
    return {kind: f"count_if(NOT {_is(column, pattern)})" for kind, pattern in patterns.items()}


def _is(column: str, pattern: str) -> str:
    return rf"{column} RLIKE r'\A(?:{pattern})\z'"


def _when(column: str, pattern: str, then: str) -> str:
    return f"CASE WHEN {_is(column, pattern)} THEN {then} END"


def _finite(number: str) -> str:
    """Not NaN, which Spark takes for greater than everything, and not infinite."""
    return f"CASE WHEN abs({number}) <= {_LARGEST_FLOAT} THEN {number} END"


def _plain(kind: str) -> str:
    return kind.replace("`", "").replace(" ", "").lower()


def _hint(wanted: Type, kind: str) -> str | None:
    if isinstance(wanted, Timestamp):
        if kind in ("timestamp_ntz", "date"):
            return "It has no time zone: write it with one, as pandas does after .dt.tz_localize('UTC')."
        return "Write a timestamp with a time zone, or RFC 3339 text such as 2026-01-01T12:00:00Z."
    if kind in ("double", "float"):
        return "A key that was read as a fraction has lost its form: read the column as text or whole numbers."
    return None
