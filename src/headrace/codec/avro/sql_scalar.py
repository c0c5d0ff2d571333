"""One scalar of a parsed Avro record as Spark SQL: its typed value, the reason against it, and whether it is broken.

What it is given has the types that `codec.avro.sql` asked Spark for: a boolean is one byte, an enum and an int are
longs, a moment is a number.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.codec.avro.node import Node
from headrace.codec.avro.schema import Reading
from headrace.codec.json import rules
from headrace.types.field_types import Type

_LARGEST_FLOAT = "1.7976931348623157E308D"


@dataclass(frozen=True)
class ScalarSql:
    """What one value became.

    Parameters
    ----------
    value
        The typed value; whatever it is where the record is refused.
    reason
        A string expression: why the record is invalid, or null. None when there can be no reason.
    broken
        A boolean expression: the bytes are not what the writer's schema says. None when they cannot be.
    """

    value: str
    reason: str | None = None
    broken: str | None = None


def scalar(node: Node, kind: Type, how: Reading, source: str, wrong: str) -> ScalarSql:
    """A value that is not null.

    >>> from headrace.types.field_types import Boolean
    >>> scalar(Node("boolean"), Boolean(), Reading("flag"), "f0", "'x must be true or false'").value
    "f0 = X'01'"
    """
    match how.how:
        case "text":
            return ScalarSql(source, broken=f"NOT is_valid_utf8({source})")
        case "symbol":
            symbols = ", ".join(f"'{name}'" for name in node.names)
            broken = f"({source} < 0 OR {source} >= {len(node.names)})"
            return ScalarSql(f"get(array({symbols}), try_cast({source} AS INT))", broken=broken)
        case "flag":
            return ScalarSql(f"{source} = X'01'", broken=f"{source} NOT IN (X'00', X'01')")
        case "whole":
            return ScalarSql(source, broken=_too_wide(node, source))
        case "real":
            return _real(node, source, wrong)
        case "exact":
            broken = f"try_cast({source} AS DECIMAL({node.precision},{node.scale})) IS NULL"
            return ScalarSql(f"try_cast({source} AS {kind.ddl})", broken=broken)
        case "count":
            return ScalarSql(f"try_cast({source} AS {kind.ddl})", broken=_too_wide(node, source))
        case "moment":
            first, last = -(-rules.EARLIEST // how.factor), rules.LATEST // how.factor
            within = f"{source} >= {first}L AND {source} <= {last}L"
            value = f"CASE WHEN {within} THEN timestamp_micros({source} * {how.factor}L) END"
            return ScalarSql(value, f"CASE WHEN {within} THEN NULL ELSE {wrong} END", _too_wide(node, source))
        case "written":
            return _written(source, wrong)
    raise TypeError(how)


def _too_wide(node: Node, source: str) -> str | None:
    return None if node.kind != "int" else f"({source} < -2147483648L OR {source} > 2147483647L)"


def _real(node: Node, source: str, wrong: str) -> ScalarSql:
    if node.kind in ("int", "long"):
        return ScalarSql(f"CAST({source} AS DOUBLE)", broken=_too_wide(node, source))
    double = source if node.kind == "double" else f"CAST({source} AS DOUBLE)"
    # NaN is greater than every number; adding zero turns -0.0 into 0.0.
    return ScalarSql(f"{double} + 0.0D", f"CASE WHEN abs({double}) <= {_LARGEST_FLOAT} THEN NULL ELSE {wrong} END")


def _written(source: str, wrong: str) -> ScalarSql:
    moment = rf"CASE WHEN {source} RLIKE r'\A(?:{rules.RFC3339})\z' THEN try_cast({source} AS TIMESTAMP) END"
    least, greatest = (f"timestamp_micros({bound}L)" for bound in (rules.EARLIEST, rules.LATEST))
    value = f"CASE WHEN {moment} >= {least} AND {moment} <= {greatest} THEN {moment} END"
    return ScalarSql(value, f"CASE WHEN {value} IS NULL THEN {wrong} END", f"NOT is_valid_utf8({source})")
