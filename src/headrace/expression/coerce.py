"""How operands of different types meet: the one place that inserts conversions nobody wrote.

An integer meets a float as a float, a decimal meets a float as a float, an integer meets a decimal as a decimal. A
number written as 1.5 is a float, except next to a decimal, where it is the decimal 1.5. NULL takes its neighbour's
type. Nothing else meets: a string is never read as a number unasked.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal as Exact

from headrace.expression.cast import cast
from headrace.expression.node import NUMBERS, Literal, Node, Void, article, mistyped
from headrace.expression.operation import text
from headrace.types.field_types import Decimal, Float, Integer, Type

CAST_IT = "Write a CAST where the types differ."
TOO_WIDE = "Cast one side to fewer digits, as in CAST(x AS DECIMAL(18,2)), or to DOUBLE."


def written(nodes: Sequence[Node], between: str = ", ") -> str:
    """Operands as an error shows them, cut to a readable length."""
    shown = between.join(text(node) for node in nodes)
    return shown if len(shown) <= 120 else f"{shown[:116]}..."


def digits_of(value: Exact) -> Decimal:
    """The smallest decimal type that holds a value.

    >>> str(digits_of(Exact("0.05")))
    'decimal(2,2)'
    """
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    if precision > 38:
        raise mistyped("A number has more than 38 digits.", f"{value:f}"[:120])
    return Decimal(precision, scale)


def decimal_type(node: Node) -> Decimal:
    """The type of a number among decimals: what it is, or the digits a constant or a 64-bit integer needs."""
    if isinstance(node.type, Decimal):
        return node.type
    if isinstance(node, Literal) and node.value is not None:
        return digits_of(Exact(node.value) if node.exact is None else node.exact)
    return Decimal(20, 0)


def wider(kinds: Sequence[Decimal]) -> Decimal | None:
    """The smallest decimal type that holds every value of all, or None when that needs more than 38 digits."""
    scale = max(kind.scale for kind in kinds)
    precision = scale + max(kind.precision - kind.scale for kind in kinds)
    return Decimal(precision, scale) if precision <= 38 else None


def number_kind(nodes: Sequence[Node]) -> type[Type]:
    """Which of integer, float and decimal a number operation on these works in."""
    kinds = {type(node.type) for node in nodes if not (isinstance(node, Literal) and node.exact is not None)}
    if Float in kinds:
        return Float
    if Decimal in kinds:
        return Decimal
    return Float if any(isinstance(node.type, Float) for node in nodes) else Integer


def same(nodes: Sequence[Node], what: str) -> tuple[Node, ...]:
    """The operands converted to the one type they have in common, or a refusal."""
    typed = [node for node in nodes if not isinstance(node.type, Void)]
    if not typed:
        hint = "Give it a type, as in CAST(NULL AS BIGINT)."
        raise mistyped(f"{what} has only NULL to work on.", written(nodes), hint)
    kind: Type | None = typed[0].type
    if any(node.type != kind for node in typed):
        kind = _common(typed, what)
    return tuple(cast(node, kind) if kind is not None and node.type != kind else node for node in nodes)


def _common(typed: Sequence[Node], what: str) -> Type:
    odd = next((node for node in typed if not isinstance(node.type, NUMBERS)), None)
    if odd is not None:
        other = next(node for node in typed if node.type != odd.type)
        types = f"{article(typed[0].type)} and {article((other if odd is typed[0] else odd).type)}"
        raise mistyped(f"{what} cannot take {types}.", written(typed), CAST_IT)
    kind = number_kind(typed)
    if kind is not Decimal:
        return kind()
    wide = wider([decimal_type(node) for node in typed])
    if wide is None:
        raise mistyped(f"{what} would need more than 38 digits.", written(typed), TOO_WIDE)
    return wide
