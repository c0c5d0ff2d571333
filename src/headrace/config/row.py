"""One setting is one row: its kind, its default and its meaning stand at the field that holds its value.

A section of `Config` is a frozen dataclass whose fields are made by `setting`; `Config` has fields made by `section`.
The table of all settings (`rows`) and a record filled with values (`fill`) are derived from these fields, so a default
is written once. The kinds are in `kinds`, the sections in `settings`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from headrace.errors import ConfigError, shown

FILE = "headrace.toml"
DEFAULT = "default"
"""The origin of a value that nobody wrote."""
VARIABLE = "HEADRACE_"
_ROW, _SECTION = "row", "section"
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class WrittenValue:
    """A value as it was written for a setting.

    Parameters
    ----------
    name
        The setting.
    value
        What TOML gave, or the text of a variable.
    where
        The file, an overlay in it, the variable, or `DEFAULT`.
    root
        The project's folder, from which paths are read.
    may_be_empty
        Whether an empty text is allowed: it is when it is the default.
    """

    name: str
    value: Any
    where: str
    root: Path
    may_be_empty: bool

    @property
    def is_in_file(self) -> bool:
        """Whether TOML gave the value; numbers and tables of variables are text."""
        return self.where.startswith(FILE)

    def error(self, message: str, got: str, hint: str | None) -> ConfigError:
        """The error for this value."""
        return ConfigError("bad-setting", message, got=got, hint=hint, where=self.where)

    def refusal(self, takes: str, hint: str | None, got: str | None = None) -> ConfigError:
        """The error that says what the setting takes."""
        return self.error(f"{self.name!r} takes {takes}.", shown(self.value) if got is None else got, hint)


class Kind(Protocol[T_co]):
    """What a setting takes, in words for an error, and the function that makes a value of it."""

    @property
    def takes(self) -> str:
        """What is taken, as in "a duration"."""
        ...

    def parse(self, written: WrittenValue) -> T_co:
        """The value as `Config` holds it, or an error."""
        ...


@dataclass(frozen=True)
class Setting:
    """The row of one setting.

    Parameters
    ----------
    name
        The dotted name, as in "serve.port".
    kind
        What it takes.
    default
        The value when nobody writes one, as headrace.toml would have it; None if the setting is required.
    meaning
        What it means, for the reference.

    Examples
    --------
    >>> Setting("pipeline.mode", kind=None, default="micro-batch", meaning="").variable
    'HEADRACE_PIPELINE_MODE'
    """

    name: str
    kind: Kind[Any]
    default: Any
    meaning: str

    @property
    def variable(self) -> str:
        """The environment variable that overrides it."""
        return VARIABLE + self.name.replace(".", "_").upper()

    @property
    def section(self) -> str:
        """The table of headrace.toml it stands in; empty for the top."""
        return self.name.rpartition(".")[0]

    def parse(self, value: Any, where: str, root: Path) -> Any:
        """The value as `Config` holds it, or an error that says what the setting takes."""
        return self.kind.parse(WrittenValue(self.name, value, where, root, may_be_empty=self.default == ""))


def setting(kind: Kind[T], default: Any, meaning: str, *, name: str = "") -> T:
    """A field that holds the value of a setting; `name` is for a setting that is called otherwise than its field."""
    row = Setting(name, kind, default, meaning)
    if default is None:
        return cast("T", field(metadata={_ROW: row}))
    parsed = functools.partial(row.parse, default, DEFAULT, Path())
    return cast("T", field(default_factory=parsed, metadata={_ROW: row}))


def section(record: type[T], name: str = "") -> T:
    """A field that holds a section; `name` is for a section that is called otherwise than its field."""
    return field(default_factory=record, metadata={_SECTION: (record, name)})


def rows(record: type[Any]) -> dict[str, Setting]:
    """The settings of a record and its sections by name, in the order of the fields."""
    return {part.name: part for part in _rows(record, "")}


def _rows(record: type[Any], place: str) -> Iterator[Setting]:
    for _, part in _parts(record, place):
        if isinstance(part, Setting):
            yield part
        else:
            yield from _rows(*part)


def fill(record: type[T], values: Mapping[str, Any], place: str = "", **given: Any) -> T:
    """A record with the values of settings by name; `given` are fields that are no settings."""
    for name, part in _parts(record, place):
        given[name] = values[part.name] if isinstance(part, Setting) else fill(part[0], values, part[1])
    return record(**given)


def _parts(record: type[Any], place: str) -> Iterator[tuple[str, Setting | tuple[type[Any], str]]]:
    """By the name of a field, its setting, or the record and name of its section."""
    for each in fields(record):
        if _ROW in each.metadata:
            row: Setting = each.metadata[_ROW]
            own = row.name or each.name
            yield each.name, replace(row, name=f"{place}.{own}" if place else own)
        elif _SECTION in each.metadata:
            inner, own = each.metadata[_SECTION]
            yield each.name, (inner, own or each.name)
