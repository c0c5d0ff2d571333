"""What changed between two schemas, and whether readers and data of the one fit the other.

The judgement is about records that hold only the fields their schema declares, as `codec.json.write` writes them, in
any form its decoder reads. `schema.registry` asks here before it lets a new version in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from headrace.errors import SchemaError, did_you_mean, shown
from headrace.types.field_types import Decimal, Field, Float, Integer, List, Struct, Type

Kind = Literal["added", "removed", "retyped", "became optional", "became required"]
LEVELS: dict[str, str] = {
    "backward": "A reader of the new schema reads old records.",
    "forward": "A reader of the old schema reads new records.",
    "full": "Both.",
    "none": "Nothing is promised.",
}


@dataclass(frozen=True)
class SchemaChange:
    """One difference; `path` is the field's, with `.` into structs and `[]` into lists.

    >>> print(SchemaChange("retyped", "amount", Field("amount", Integer()), Field("amount", Float())))
    ~ amount integer -> float
    """

    kind: Kind
    path: str
    old: Field | None
    new: Field | None

    @property
    def backward(self) -> bool:
        """Whether a reader of the new schema still reads old records."""
        return _reads(self.old, self.new)

    @property
    def forward(self) -> bool:
        """Whether a reader of the old schema reads new records."""
        return _reads(self.new, self.old)

    def __str__(self) -> str:
        if self.old is None or self.new is None:
            sign, field = ("-", self.old) if self.new is None else ("+", self.new)
            return f"{sign} {self.path} {_shape(field)}" if field else sign
        if self.kind == "retyped":
            return f"~ {self.path} {self.old.type} -> {self.new.type}"
        return f"~ {self.path} {self.kind}"


def changes(old: Struct, new: Struct) -> tuple[SchemaChange, ...]:
    """Every difference between two schemas, in the new schema's order, removals last; a new order is no difference.

    >>> from headrace.types.field_types import schema_of
    >>> for change in changes(schema_of({"a": int, "b": str}), schema_of({"a": float, "c": str | None})):
    ...     print(change)
    ~ a integer -> float
    + c string?
    - b string
    """
    return tuple(_struct_changes(old, new, ""))


def check(old: Struct, new: Struct, level: str) -> tuple[SchemaChange, ...]:
    """The changes that break a level of compatibility: none if the new schema may follow the old one.

    Parameters
    ----------
    old, new
        The two schemas.
    level
        `backward` (a new reader reads old records), `forward` (an old reader reads new records), `full` or `none`.

    Examples
    --------
    >>> from headrace.types.field_types import schema_of
    >>> [str(change) for change in check(schema_of({"a": int}), schema_of({"a": int, "b": str}), "backward")]
    ['+ b string']
    >>> check(schema_of({"a": int}), schema_of({"a": int, "b": str}), "forward")
    ()
    """
    if level not in LEVELS:
        hint = did_you_mean(level, LEVELS)
        raise SchemaError("bad-argument", "A compatibility level is not known.", got=shown(level), hint=hint)
    backward, forward = level in ("backward", "full"), level in ("forward", "full")
    found = changes(old, new)
    return tuple(one for one in found if (backward and not one.backward) or (forward and not one.forward))


def _reads(written: Field | None, wanted: Field | None) -> bool:
    """Whether what one side writes is read by the other, as far as this one change goes."""
    if wanted is None:
        return True
    if written is None:
        return wanted.optional
    return (wanted.optional or not written.optional) and _widens(written.type, wanted.type)


def _widens(written: Type, wanted: Type) -> bool:
    """Whether the decoder reads every value of one type as the other.

    Decimals never become floats: they may be written as strings. Timestamps change with their unit. Both would be read,
    or half of them would, and mean something else.
    """
    match written, wanted:
        case Integer(), Float():
            return True
        case Integer(), Decimal(precision, scale):
            return precision - scale >= 19
        case Decimal(), Decimal():
            grows = wanted.precision - wanted.scale >= written.precision - written.scale
            return grows and wanted.scale >= written.scale
        case (Struct(), Struct()) | (List(), List()):
            # What differs within is a change of its own.
            return True
    return written == wanted


def _struct_changes(old: Struct, new: Struct, prefix: str) -> Iterator[SchemaChange]:
    before, after = {field.name: field for field in old}, {field.name: field for field in new}
    for name, field in after.items():
        if name in before:
            yield from _field_changes(before[name], field, prefix + name)
        else:
            yield SchemaChange("added", prefix + name, None, field)
    for name, field in before.items():
        if name not in after:
            yield SchemaChange("removed", prefix + name, field, None)


def _field_changes(old: Field, new: Field, path: str) -> Iterator[SchemaChange]:
    if old.optional != new.optional:
        # The types are set equal, so that this change speaks of nothing but null.
        kind: Kind = "became optional" if new.optional else "became required"
        yield SchemaChange(kind, path, old, Field(new.name, old.type, new.optional))
    match old.type, new.type:
        case Struct() as before, Struct() as after:
            yield from _struct_changes(before, after, path + ".")
        case List() as before, List() as after:
            yield from _field_changes(_element(before), _element(after), path + "[]")
        case before, after if before != after:
            yield SchemaChange("retyped", path, Field(old.name, before), Field(new.name, after))


def _element(kind: List) -> Field:
    return Field("element", kind.element, kind.optional)


def _shape(field: Field) -> str:
    return f"{field.type}{'?' if field.optional else ''}"
