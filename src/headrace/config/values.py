"""Values of settings as `Config` holds them: each is checked when it is read, whoever uses it later.

What a setting takes is in `settings`; what an address must be is in `addresses`. An error shows no more of an address
than what follows a possible password.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

from headrace.clock import duration
from headrace.config.addresses import (
    STORAGE,
    broker_fault,
    folder_fault,
    host_fault,
    http_fault,
    redis_fault,
    storage_fault,
)
from headrace.config.settings import DAYS, DECIMAL, NUMBER, PARTS_LIST, SHARE, TABLE, Hidden, Setting
from headrace.errors import ConfigError, DefinitionError, did_you_mean, shown

FILE = "headrace.toml"


def _brokers_fault(text: str) -> str | None:
    return next((fault for each in text.split(",") if (fault := broker_fault(each))), None)


def _variable_fault(text: str) -> str | None:
    return None if re.fullmatch(r"env:[A-Za-z_][A-Za-z0-9_]*", text) else "no name of a variable"


def _zone_fault(text: str) -> str | None:
    try:
        ZoneInfo(text)
    except Exception:  # a name may be anything, and tzdata raises much
        return "no time zone of the tz database"
    return None


MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER")
STRUCTURED: Mapping[str, tuple[Callable[[str], str | None], str]] = {
    "a path": (folder_fault, "Write a path from the project's folder."),
    "a folder": (folder_fault, "Write a path from the project's folder."),
    "a file": (folder_fault, "Write a path from the project's folder."),
    "a folder or address": (
        storage_fault,
        f"Write a folder, or an address that begins with {', '.join(f'{each}://' for each in STORAGE)}.",
    ),
    "a host": (host_fault, "Write an address or a name alone, as in 127.0.0.1, without a scheme or a port."),
    "brokers": (
        _brokers_fault,
        "Write host:port, with commas between several; users and passwords go into [kafka.options].",
    ),
    "an address": (http_fault, "Write http:// or https://, a host and perhaps a port and a path."),
    "a Redis address": (
        redis_fault,
        'Write redis://host:port/number; one with a password goes into a variable, as in "env:REDIS_URL".',
    ),
    "env:NAME": (
        _variable_fault,
        'Put the secret into an environment variable and write its name, as in "env:REGISTRY_PASSWORD".',
    ),
    "a time zone": (_zone_fault, 'Write a name of the tz database, as in "Europe/Berlin".'),
}
"""By what a setting takes: what is wrong with a text, and what to write."""
ENUMERATED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "kafka.options": {
        "security.protocol": ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"),
        "sasl.mechanism": MECHANISMS,
        "sasl.mechanisms": MECHANISMS,
    }
}
"""By setting, the properties of a table that are one of some words; of lower-case words the case does not matter."""
ENDPOINTS: Mapping[str, tuple[str, ...]] = {"lake.options": ("AWS_ENDPOINT", "AWS_ENDPOINT_URL")}
"""By setting, the properties of a table that are an address of HTTP."""
SECRETS = ("a Redis address", "env:NAME")
"""What may be a password as a whole, when it is not what it should be."""


def _refuse_fault(setting: Setting, value: str, where: str) -> None:
    """Refuse a text that is not of the form that a setting takes; nothing at all stands for the default, if that is."""
    fault_of, hint = STRUCTURED[setting.takes]
    if not value and not setting.default:
        return
    fault = fault_of(value)
    if fault is not None:
        # Whoever writes an address with a user in front of it has a password there too.
        got = shown(value.rpartition("@")[2]) if "@" in value else f"{shown(value)}, {fault}"
        got = "something else" if setting.takes in SECRETS else got
        message = f"{setting.name!r} takes {setting.takes}."
        raise ConfigError("bad-setting", message, got=got, hint=hint, where=where)


def _days(setting: Setting, value: str, where: str) -> tuple[date, ...]:
    """Days with commas between them."""
    try:
        return tuple(date.fromisoformat(part.strip()) for part in value.split(",") if part.strip())
    except ValueError:
        hint = 'Write days with commas between them, as in "2026-12-25, 2026-12-26".'
        message = f"{setting.name!r} takes {setting.takes}."
        raise ConfigError("bad-setting", message, got=shown(value), hint=hint, where=where) from None


def check_value(setting: Setting, value: Any, where: str) -> Any:
    """The value as `Config` holds it, or an error that says what it takes."""
    message = f"{setting.name!r} takes {setting.takes}."
    if setting.takes == NUMBER:
        return _whole(setting, value, where)
    if setting.takes == TABLE:
        return _table(setting, value, where)
    if setting.takes in (SHARE, DECIMAL):
        return _decimal(setting, value, where)
    if setting.takes == PARTS_LIST:
        return _parts(setting, value, where)
    if not isinstance(value, str):
        hint = "Write text in quotes."
        raise ConfigError("bad-setting", message, got=shown(value), hint=hint, where=where)
    if setting.choices and value not in setting.choices:
        raise ConfigError(
            "bad-setting", message, got=shown(value), hint=did_you_mean(value, setting.choices), where=where
        )
    if setting.pattern is not None and not re.fullmatch(setting.pattern, value):
        hint = "Use lower-case letters, digits, '_' and '-', at most 63, starting with a letter."
        raise ConfigError("bad-setting", message, got=shown(value), hint=hint, where=where)
    if setting.takes in STRUCTURED:
        _refuse_fault(setting, value, where)
    if setting.takes == DAYS:
        return _days(setting, value, where)
    if setting.takes != "a duration":
        return value
    try:
        return duration(value, setting.name)
    except DefinitionError as error:
        hint = error.hint or 'Write a length of time above zero, as in "10m".'
        raise ConfigError("bad-setting", message, got=shown(value), hint=hint, where=where) from None


def _parts(setting: Setting, value: Any, where: str) -> tuple[str, ...]:
    """Names from a list as TOML has it, or between commas."""
    message = f"{setting.name!r} takes {setting.takes}."
    parts = [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        hint = f'Write a list of names, as in ["{setting.choices[0]}"].'
        raise ConfigError("bad-setting", message, got=shown(value), hint=hint, where=where)
    for part in parts:
        if part not in setting.choices:
            hint = did_you_mean(part, setting.choices) or f"There are {', '.join(setting.choices)}."
            raise ConfigError("bad-setting", message, got=shown(part), hint=hint, where=where)
    return tuple(dict.fromkeys(parts))


def _whole(setting: Setting, value: Any, where: str) -> int:
    """A number as TOML has it, or as a variable's text does."""
    in_file = where.startswith(FILE)
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value) and not in_file:
        value = int(value)
    if type(value) is int and setting.least <= value <= setting.most:
        return value
    message = f"{setting.name!r} takes {setting.takes} from {setting.least} to {setting.most}."
    hint = "Write it without quotes." if isinstance(value, str) and in_file else None
    raise ConfigError("bad-setting", message, got=shown(value), hint=hint, where=where)


def _decimal(setting: Setting, value: Any, where: str) -> float:
    """A share, or a number above zero, as TOML has it, or as a variable's text does."""
    in_file, share = where.startswith(FILE), setting.takes == SHARE
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", value) and not in_file:
        value = float(value)
    if type(value) in (int, float) and (0 <= value <= 1 if share else 0 < value < 1e9):
        return float(value)
    hint = "Write it without quotes, as in 0.01." if in_file else "Write it as in 0.01."
    message = f"{setting.name!r} takes {setting.takes} {'from 0 to 1' if share else 'above zero'}."
    raise ConfigError("bad-setting", message, got=shown(value), hint=hint, where=where)


def _table(setting: Setting, value: Any, where: str) -> Hidden:
    """A table as TOML has it, or a variable as JSON. What is in it may be secret: an error shows names alone."""
    if isinstance(value, str) and not where.startswith(FILE):
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    if not isinstance(value, dict):
        hint = f"Write it as a table: [{setting.name}]." if where.startswith(FILE) else "Write it as a JSON object."
        message = f"{setting.name!r} takes {setting.takes}."
        raise ConfigError("bad-setting", message, got=shown(type(value).__name__), hint=hint, where=where)
    found = dict(_properties(value))
    for name, held in found.items():
        if not isinstance(held, str | int):
            message, hint = f"{setting.name!r} takes {setting.takes}.", "Write the value in quotes."
            raise ConfigError("bad-setting", message, got=shown(name), hint=hint, where=where)
    made = {name: _property(held) for name, held in found.items()}
    _refuse_properties(setting, made, where)
    return Hidden(made)


def _refuse_properties(setting: Setting, table: Mapping[str, str], where: str) -> None:
    """Refuse a property whose form is known and is another; one that comes from a variable is read where it is used."""
    for name, value in table.items():
        if value.startswith("env:"):
            continue
        words = ENUMERATED.get(setting.name, {}).get(name)
        if words and value not in words and value.lower() not in words:
            hint = did_you_mean(value.lower() if words[0].islower() else value.upper(), words)
            message = f"{setting.name!r} has a property that is not one of the known words."
            raise ConfigError("bad-setting", message, got=shown(name), hint=hint, where=where)
        if name.upper() in ENDPOINTS.get(setting.name, ()) and http_fault(value) is not None:
            message, hint = f"{setting.name!r} has a property that is no address.", STRUCTURED["an address"][1]
            raise ConfigError("bad-setting", message, got=shown(name), hint=hint, where=where)


def _properties(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names as they were written: to TOML, `sasl.password = ...` is a table in a table."""
    for name, held in table.items():
        if isinstance(held, dict):
            yield from _properties(held, f"{before}{name}.")
        else:
            yield f"{before}{name}", held


def _property(value: str | int) -> str:
    """A value as Java and librdkafka write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
