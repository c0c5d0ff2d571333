"""Settings that are tables of text, such as the options of Kafka: their values may be secrets and are never shown."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.config.addresses import http_fault
from headrace.config.kinds import HTTP_ADDRESS
from headrace.config.row import WrittenValue
from headrace.errors import did_you_mean, shown


class Hidden(Mapping[str, str]):
    """A table whose values may be secrets: it shows its names alone.

    >>> Hidden({"sasl.password": "open sesame"})
    Hidden(['sasl.password'])
    """

    def __init__(self, held: Mapping[str, str]) -> None:
        self._held = dict(held)

    def __getitem__(self, name: str) -> str:
        return self._held[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __repr__(self) -> str:
        return f"Hidden({sorted(self._held)})"


@dataclass(frozen=True)
class Table:
    """A table of text: as TOML has it, or a variable as JSON. Its values may be secret: an error shows names alone.

    Parameters
    ----------
    words
        The properties that are one of some words; of lower-case words the case does not matter.
    endpoints
        The properties that are an address of HTTP, in upper case.
    """

    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    endpoints: tuple[str, ...] = ()
    takes: str = "a table of text"

    def parse(self, written: WrittenValue) -> Hidden:
        """The table, with dotted names for tables in it."""
        value = written.value
        if isinstance(value, str) and not written.is_in_file:
            with contextlib.suppress(ValueError):
                value = json.loads(value)
        if not isinstance(value, dict):
            hint = f"Write it as a table: [{written.name}]." if written.is_in_file else "Write it as a JSON object."
            raise written.refusal(self.takes, hint, shown(type(value).__name__))
        table = {}
        for name, each in _properties(value):
            if not isinstance(each, str | int):
                raise written.refusal(self.takes, "Write the value in quotes.", shown(name))
            # As Java and librdkafka write it.
            table[name] = str(each).lower() if isinstance(each, bool) else str(each)
            self._refuse_wrong(name, table[name], written)
        return Hidden(table)

    def _refuse_wrong(self, name: str, value: str, written: WrittenValue) -> None:
        """Refuse a value whose form is known; one that comes from a variable is read where it is used."""
        if value.startswith("env:"):
            return
        words = self.words.get(name)
        if words and value not in words and value.lower() not in words:
            hint = did_you_mean(value.lower() if words[0].islower() else value.upper(), words)
            raise written.error(
                f"{written.name!r} has a property that is not one of the known words.", shown(name), hint
            )
        if name.upper() in self.endpoints and http_fault(value) is not None:
            raise written.error(f"{written.name!r} has a property that is no address.", shown(name), HTTP_ADDRESS.hint)


def _properties(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names as they were written: to TOML, `sasl.password = ...` is a table in a table."""
    for name, held in table.items():
        if isinstance(held, dict):
            yield from _properties(held, f"{before}{name}.")
        else:
            yield f"{before}{name}", held
