"""What settings take: each kind makes a value of what was written, or refuses it with a hint.

Addresses are checked by `addresses`, tables are in `hidden_table`. An error shows no more of an address than what
follows a possible password.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo

from headrace.clock import SECOND, duration
from headrace.config.addresses import (
    STORAGE,
    brokers_fault,
    folder_fault,
    host_fault,
    http_fault,
    redis_fault,
    storage_fault,
    variable_fault,
)
from headrace.config.row import WrittenValue
from headrace.errors import DefinitionError, did_you_mean, shown

NAME_PATTERN = re.compile(r"[a-z][a-z0-9_-]{0,62}")
NAME_HINT = "Use lower-case letters, digits, '_' and '-', at most 63, starting with a letter."
_PATH_HINT = "Write a path from the project's folder."


@dataclass(frozen=True)
class Text:
    """A text. `fault` says what is wrong with one, or None; a secret that is wrong is not shown; `trim` is cut off."""

    takes: str = "text"
    fault: Callable[[str], str | None] = lambda _: None
    hint: str = ""
    is_secret: bool = False
    trim: str = ""

    def parse(self, written: WrittenValue) -> str:
        """The text as it was written, without what is cut off its end."""
        text = _text(self.takes, written)
        fault = None if not text and written.may_be_empty else self.fault(text)
        if fault is None:
            return text.rstrip(self.trim) if self.trim else text
        # Whoever writes an address with a user in front of it has a password there too.
        got = shown(text.rpartition("@")[2]) if "@" in text else f"{shown(text)}, {fault}"
        raise written.refusal(self.takes, self.hint, "something else" if self.is_secret else got)


@dataclass(frozen=True)
class Location:
    """A file or folder, or an address where `text` takes one. A path is taken from the project's folder."""

    text: Text

    @property
    def takes(self) -> str:
        """What is taken."""
        return self.text.takes

    def parse(self, written: WrittenValue) -> str:
        """A path under the project's folder, an address as it was written, or an empty text."""
        text = self.text.parse(written)
        return str(written.root / text) if text and "://" not in text else text


@dataclass(frozen=True)
class LocalPath:
    """A file or folder of this machine that is always there to be named."""

    takes: str = "a path"

    def parse(self, written: WrittenValue) -> Path:
        """The path, from the project's folder."""
        return written.root / Text(self.takes, folder_fault, _PATH_HINT).parse(written)


@dataclass(frozen=True)
class ResourceName:
    """A name that topics, keys and paths may carry."""

    takes: str = "a name"

    def parse(self, written: WrittenValue) -> str:
        """The name."""
        text = _text(self.takes, written)
        if NAME_PATTERN.fullmatch(text) or (not text and written.may_be_empty):
            return text
        raise written.refusal(self.takes, NAME_HINT)


@dataclass(frozen=True)
class Choice:
    """One of some words."""

    choices: tuple[str, ...]
    takes: str = "a choice"

    def parse(self, written: WrittenValue) -> str:
        """The word."""
        text = _text(self.takes, written)
        if text not in self.choices:
            raise written.refusal(self.takes, did_you_mean(text, self.choices))
        return text


@dataclass(frozen=True)
class Choices:
    """Some of some words: a list in TOML, and commas between them in a variable."""

    choices: tuple[str, ...]
    takes: str = "a list of parts"

    def parse(self, written: WrittenValue) -> tuple[str, ...]:
        """The words, each once."""
        value = written.value
        parts = [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            raise written.refusal(self.takes, f'Write a list of names, as in ["{self.choices[0]}"].')
        for part in parts:
            if part not in self.choices:
                hint = did_you_mean(part, self.choices) or f"There are {', '.join(self.choices)}."
                raise written.refusal(self.takes, hint, shown(part))
        return tuple(dict.fromkeys(parts))


@dataclass(frozen=True)
class Duration:
    """A length of time above zero, as in "10m"; microseconds in Python."""

    takes: str = "a duration"

    def parse(self, written: WrittenValue) -> int:
        """Microseconds."""
        text = _text(self.takes, written)
        try:
            return duration(text, written.name)
        except DefinitionError as error:
            hint = error.hint or 'Write a length of time above zero, as in "10m".'
            raise written.refusal(self.takes, hint) from None


@dataclass(frozen=True)
class Seconds:
    """A length of time above zero, as in "10m"; seconds in Python."""

    takes: str = "a duration"

    def parse(self, written: WrittenValue) -> float:
        """Seconds."""
        return Duration(self.takes).parse(written) / SECOND


@dataclass(frozen=True)
class DayList:
    """Days with commas between them."""

    takes: str = "days"

    def parse(self, written: WrittenValue) -> tuple[date, ...]:
        """The days."""
        text = _text(self.takes, written)
        try:
            return tuple(date.fromisoformat(part.strip()) for part in text.split(",") if part.strip())
        except ValueError:
            hint = 'Write days with commas between them, as in "2026-12-25, 2026-12-26".'
            raise written.refusal(self.takes, hint) from None


@dataclass(frozen=True)
class WholeNumber:
    """A whole number of a unit, within bounds."""

    least: int
    most: int
    unit: str = ""

    @property
    def takes(self) -> str:
        """What is taken, with the bounds."""
        return f"a whole number from {self.least} to {self.most}"

    def parse(self, written: WrittenValue) -> int:
        """The number: as TOML has it, or as a variable's text does."""
        value, in_file = written.value, written.is_in_file
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value) and not in_file:
            value = int(value)
        if type(value) is int and self.least <= value <= self.most:
            return value
        hint = "Write it without quotes." if isinstance(value, str) and in_file else None
        raise written.refusal(self.takes, hint, shown(value))


@dataclass(frozen=True)
class DecimalNumber:
    """A decimal number for which `is_allowed` holds."""

    takes: str
    is_allowed: Callable[[float], bool]

    def parse(self, written: WrittenValue) -> float:
        """The number: as TOML has it, or as a variable's text does."""
        value, in_file = written.value, written.is_in_file
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", value) and not in_file:
            value = float(value)
        if type(value) in (int, float) and self.is_allowed(value):
            return float(value)
        hint = "Write it without quotes, as in 0.01." if in_file else "Write it as in 0.01."
        raise written.refusal(self.takes, hint, shown(value))


def _text(takes: str, written: WrittenValue) -> str:
    if not isinstance(written.value, str):
        raise written.refusal(takes, "Write text in quotes.")
    return written.value


def _zone_fault(text: str) -> str | None:
    try:
        ZoneInfo(text)
    except Exception:  # a name may be anything, and tzdata raises much
        return "no time zone of the tz database"
    return None


HOST = Text("a host", host_fault, "Write an address or a name alone, as in 127.0.0.1, without a scheme or a port.")
BROKERS = Text(
    "brokers",
    brokers_fault,
    "Write host:port, with commas between several; users and passwords go into [kafka.options].",
)
HTTP_ADDRESS = Text("an address", http_fault, "Write http:// or https://, a host and perhaps a port and a path.")
BASE_ADDRESS = replace(HTTP_ADDRESS, trim="/")
"""An address that paths are appended to."""
REDIS_ADDRESS = Text(
    "a Redis address",
    redis_fault,
    'Write redis://host:port/number; one with a password goes into a variable, as in "env:REDIS_URL".',
    is_secret=True,
)
SECRET = Text(
    "env:NAME",
    variable_fault,
    'Put the secret into an environment variable and write its name, as in "env:REGISTRY_PASSWORD".',
    is_secret=True,
)
ZONE = Text("a time zone", _zone_fault, 'Write a name of the tz database, as in "Europe/Berlin".')
_SCHEMES = ", ".join(f"{each}://" for each in STORAGE)
FILE_PATH = Location(Text("a file", folder_fault, _PATH_HINT))
FOLDER = Location(Text("a folder", folder_fault, _PATH_HINT))
STORAGE_PLACE = Location(
    Text("a folder or address", storage_fault, f"Write a folder, or an address that begins with {_SCHEMES}.")
)
SHARE = DecimalNumber("a share from 0 to 1", lambda value: 0 <= value <= 1)
POSITIVE = DecimalNumber("a number above zero", lambda value: 0 < value < 1e9)
