"""A dimension: what is known of a key from a table that somebody else keeps, each row valid from a moment on.

It is a frozen value that reads like a view: a name, a key, features. What a value is, is `value_at`; everything that
answers faster is held to it. Here is what the table must hold, not what it holds: it is read by `lake.dimension`, kept
in memory by `serve.dimensions` and joined to rows by `spark.dimension`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

from headrace.config.addresses import storage_fault
from headrace.define.name import NamedValue, name_of, text_of, texts_of
from headrace.define.view import Selection, View, named
from headrace.errors import DefinitionError, did_you_mean, shown, user_location
from headrace.public_calls import check_call
from headrace.types.field_types import Boolean, Field, Integer, List, Schema, String, Struct, Timestamp, Type, schema_of

Row = Mapping[str, Any]
"""A row by its columns, in Headrace's own types: moments are microseconds."""


@dataclass(frozen=True)
class Attribute:
    """A feature of a dimension: one column of its table. It is null where no row is valid."""

    name: str
    type: Type
    summary: str
    description: str | None = None
    nullable: ClassVar[bool] = True


@dataclass(frozen=True, repr=False)
class Dimension(NamedValue):
    """What a table says of a key. Made by `hr.dimension`."""

    name: str
    path: str
    by: tuple[str, ...]
    schema: Schema
    valid_from: str
    valid_to: str | None = None
    owner: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    location: str | None = field(default=None, compare=False, repr=False)

    @cached_property
    def features(self) -> tuple[Attribute, ...]:
        """The columns that are neither key nor validity."""
        others = (*self.by, self.valid_from, self.valid_to)
        said = f"of {self.path} as of {self.valid_from}"
        return tuple(
            Attribute(each.name, each.type, f"{each.name} {said}") for each in self.schema if each.name not in others
        )

    @property
    def key_types(self) -> tuple[tuple[str, Type], ...]:
        """The columns of the key with their types."""
        return tuple((name, self.schema[name].type) for name in self.by)

    @property
    def nothing(self) -> dict[str, Any]:
        """The features of a key of which no row is valid."""
        return {each.name: None for each in self.features}

    def feature(self, name: str) -> Attribute:
        """One feature by its name."""
        return named(self.features, name, f"Dimension {self.name!r}")

    @check_call
    def only(self, *names: str) -> Selection:
        """Some of the features, for a feature set.

        >>> import headrace as hr
        >>> fields = {"merchant": str, "category": str, "risk": float | None}
        >>> merchants = hr.dimension("merchants", "merchants.parquet", by="merchant", fields=fields, valid_from="since")
        >>> merchants.only("risk").names
        ('risk',)
        """
        return Selection(self, tuple(self.feature(name).name for name in names))


Keyed: TypeAlias = View | Dimension
"""What has features of a key."""


@check_call
def dimension(  # noqa: PLR0913
    name: str,
    path: str | os.PathLike[str],
    *,
    by: str | Sequence[str],
    fields: Mapping[str, Any],
    valid_from: str,
    valid_to: str | None = None,
    owner: str | None = None,
    description: str | None = None,
    tags: Sequence[str] = (),
) -> Dimension:
    """Declare features of a key that a Parquet or Delta table holds.

    Parameters
    ----------
    name
        The dimension's name, by which its features are read.
    path
        Where the table lies, from the project's folder, or an address such as s3://bucket/merchants. A folder with
        `_delta_log` is a Delta table; any other folder, and a file, is Parquet.
    by
        The key: one column or several.
    fields
        Columns to types: the key and the features. A column that may be null is `T | None`.
    valid_from
        The column that says from when on a row is valid; a timestamp with a time zone. It should say when the row
        became known: a row that is added later with an earlier one changes the past.
    valid_to
        The column that says until when; null for a row that is valid until the next of its key.
    owner, description, tags
        For people who search.

    Examples
    --------
    >>> import headrace as hr
    >>> fields = {"merchant": str, "category": str, "risk": float | None}
    >>> merchants = hr.dimension("merchants", "merchants.parquet", by="merchant", fields=fields, valid_from="since")
    >>> [feature.name for feature in merchants.features]
    ['category', 'risk']
    """
    name_of(name, "a dimension")
    declared = schema_of(fields, f"dimension {name!r}")
    validity = [_validity(declared, valid_from, "valid_from", optional=False)]
    if valid_to is not None:
        validity.append(_validity(declared, valid_to, "valid_to", optional=True))
        if valid_to == valid_from:
            message = f"The rows of dimension {name!r} would begin and end in one column."
            hint = "Leave valid_to out: a row is valid until the next of its key."
            raise DefinitionError("duplicate-name", message, got=shown(valid_to), hint=hint)
    moments = {each.name for each in validity}
    made = Dimension(
        name=name,
        path=_path(name, path),
        by=_key(name, declared, by),
        schema=Struct((*(each for each in declared if each.name not in moments), *validity)),
        valid_from=valid_from,
        valid_to=valid_to,
        owner=text_of(owner, "An owner"),
        description=text_of(description, "A description"),
        tags=texts_of(tags, "Tags"),
        location=user_location(),
    )
    _refuse_unfit_features(made)
    return made


def value_at(dimension: Dimension, rows: Iterable[Row], key: tuple[Any, ...], t: int) -> dict[str, Any] | None:
    """The features of a key at a moment: of its newest row, if that is still valid; None when there is none.

    >>> import headrace as hr
    >>> fields = {"merchant": str, "risk": float}
    >>> merchants = hr.dimension("merchants", "m.parquet", by="merchant", fields=fields, valid_from="since")
    >>> rows = [{"merchant": "m1", "risk": 0.5, "since": 10}, {"merchant": "m1", "risk": 0.9, "since": 20}]
    >>> [value_at(merchants, rows, ("m1",), t) for t in (9, 10, 19, 20)]
    [None, {'risk': 0.5}, {'risk': 0.5}, {'risk': 0.9}]
    """
    own = [row for row in rows if tuple(row[name] for name in dimension.by) == key and row[dimension.valid_from] <= t]
    if not own:
        return None
    newest = max(own, key=lambda row: row[dimension.valid_from])
    until = None if dimension.valid_to is None else newest[dimension.valid_to]
    if until is not None and until <= t:
        return None
    return {each.name: newest[each.name] for each in dimension.features}


def _path(name: str, given: Any) -> str:
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(path, str) or (fault := storage_fault(path)) is not None:
        hint = 'As in "data/merchants.parquet", from the project\'s folder, or "s3://bucket/merchants".'
        message = f"The path of dimension {name!r} cannot be used."
        got = f"{shown(path)}, {fault}" if isinstance(path, str) else shown(given)
        raise DefinitionError("bad-argument", message, got=got, hint=hint)
    return path


def _key(name: str, schema: Schema, by: Any) -> tuple[str, ...]:
    names = (by,) if isinstance(by, str) else tuple(by) if isinstance(by, list | tuple) else ()
    if not names:
        hint = 'As by="merchant" or by=("merchant", "country").'
        message = f"The key of dimension {name!r} is not a column."
        raise DefinitionError("bad-argument", message, got=shown(by), hint=hint)
    for each in names:
        if not isinstance(each, str) or each not in schema:
            close = did_you_mean(each, [field.name for field in schema])
            message = f"The key of dimension {name!r} names a field that is not there."
            raise DefinitionError("unknown-field", message, got=shown(each), hint=close)
        found = schema[each]
        if not isinstance(found.type, String | Integer | Boolean):
            message = f"Dimension {name!r} cannot be kept by a column of type {found.type}."
            hint = "A key is a string, an integer or a boolean."
            raise DefinitionError("wrong-type", message, got=shown(each), hint=hint)
        if found.optional:
            message = f"The key of dimension {name!r} may be null, so some rows would belong to nobody."
            raise DefinitionError("missing-key", message, got=shown(each), hint=f"Declare {each!r} always there.")
    if len(set(names)) < len(names):
        raise DefinitionError("duplicate-name", f"The key of dimension {name!r} names a column twice.", got=shown(by))
    return names


def _validity(schema: Schema, name: Any, role: str, *, optional: bool) -> Field:
    """The column of a moment; it needs no type, but if it has one, it is the right one."""
    if not isinstance(name, str) or not name:
        message, hint = f"`{role}` names a column.", f'As in {role}="since".'
        raise DefinitionError("bad-argument", message, got=shown(name), hint=hint)
    if name not in schema:
        return schema_of({name: Timestamp() | None if optional else Timestamp()}).fields[0]
    found = schema[name]
    if found.type != Timestamp() or (found.optional and not optional):
        message = f"`{role}` needs a timestamp{'' if optional else ' that is always there'}."
        raise DefinitionError(
            "wrong-type", message, got=str(found), hint="Leave it out of the fields: it needs no type."
        )
    return found


def _refuse_unfit_features(made: Dimension) -> None:
    if not made.features:
        hint = "Name at least one column beside the key."
        message = f"Dimension {made.name!r} has no features."
        raise DefinitionError("bad-argument", message, got=shown([field.name for field in made.schema]), hint=hint)
    for feature in made.features:
        name_of(feature.name, "a dimension's feature")
        inner = feature.type.element if isinstance(feature.type, List) else feature.type
        if isinstance(inner, Struct | List) or (isinstance(inner, Timestamp) and inner != Timestamp()):
            message = f"A dimension's feature cannot be of type {feature.type}."
            hint = "Known: str, bool, int, float, hr.Decimal(p, s), hr.Timestamp, a list of one of them, and T | None."
            if isinstance(inner, Timestamp):
                hint = "A column of numbers is an int; a column of timestamps is hr.Timestamp, without a unit."
            raise DefinitionError("wrong-type", message, got=shown(feature.name), hint=hint)
