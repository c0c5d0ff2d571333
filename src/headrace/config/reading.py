"""Settings read: headrace.toml, its `[env.NAME]` overlays and HEADRACE_* variables, the later over the earlier."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headrace.config.row import DEFAULT, FILE, VARIABLE, Setting
from headrace.config.settings import OTHER_VARIABLES
from headrace.errors import ConfigError, did_you_mean, shown

Values = dict[str, tuple[Any, str]]
"""By the name of a setting, its value and where it came from."""


def read(
    settings: Mapping[str, Setting], text: str, root: Path, environ: Mapping[str, str], env: str | None = None
) -> tuple[str | None, Values]:
    """The chosen environment and the values of settings; one without a value and a default is left out."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = 'Mend the line that is named. A text stands in quotes, as in name = "shop".'
        raise ConfigError("bad-setting", f"{FILE} is not TOML.", got=str(error), where=FILE, hint=hint) from error
    overlays = table.pop("env", {})
    if not isinstance(overlays, dict) or not all(isinstance(overlay, dict) for overlay in overlays.values()):
        hint = "Write one table for each environment, as in [env.staging]."
        raise ConfigError("bad-setting", "`env` is not a table of tables.", got=shown(overlays), hint=hint, where=FILE)
    # Every overlay is read, chosen or not: a mistake in production's is better found on a laptop.
    layers = {name: dict(_table(settings, overlay, root, f"{FILE} [env.{name}]")) for name, overlay in overlays.items()}
    chosen = _choose_environment(layers, environ, env)
    defaults = {
        name: (setting.parse(setting.default, DEFAULT, root), DEFAULT)
        for name, setting in settings.items()
        if setting.default is not None
    }
    written = dict(_table(settings, table, root, FILE))
    return chosen, defaults | written | layers.get(chosen or "", {}) | dict(_variables(settings, environ, root))


def _choose_environment(layers: Mapping[str, Values], environ: Mapping[str, str], env: str | None) -> str | None:
    chosen = env or environ.get("HEADRACE_ENV") or None
    if chosen is not None and chosen not in layers:
        hint = did_you_mean(chosen, layers) or f"{FILE} has no [env.NAME] table."
        where = "HEADRACE_ENV" if env is None else None
        message = f"{FILE} has no environment of that name."
        raise ConfigError("unknown-environment", message, got=shown(chosen), hint=hint, where=where)
    return chosen


def _table(
    settings: Mapping[str, Setting], table: Mapping[str, Any], root: Path, where: str, section: str = ""
) -> Iterator[tuple[str, tuple[Any, str]]]:
    """The settings of one TOML table by their dotted names; unknown ones are refused."""
    for key, value in table.items():
        name = f"{section}.{key}" if section else key
        if name in settings:
            yield name, (settings[name].parse(value, where, root), where)
        elif not section and any(setting.section == key for setting in settings.values()):
            if not isinstance(value, dict):
                hint = f"Write it as a table: [{key}]."
                raise ConfigError("bad-setting", f"{key!r} is not a table.", got=shown(value), hint=hint, where=where)
            yield from _table(settings, value, root, where, key)
        else:
            raise _unknown(settings, name, where)


def _unknown(settings: Mapping[str, Setting], name: str, where: str) -> ConfigError:
    last = name.rpartition(".")[2]
    hint = did_you_mean(name, settings)
    sections = [setting.section for setting in settings.values() if setting.name.rpartition(".")[2] == last]
    if sections:
        hint = f"It belongs in [{sections[0]}]." if sections[0] else "It belongs above the first [table]."
    message = "There is no setting of that name."
    return ConfigError("unknown-setting", message, got=shown(name), hint=hint, where=where)


def _variables(
    settings: Mapping[str, Setting], environ: Mapping[str, str], root: Path
) -> Iterator[tuple[str, tuple[Any, str]]]:
    known = {setting.variable: setting for setting in settings.values()}
    for variable in sorted(environ):
        if not variable.startswith(VARIABLE) or variable in OTHER_VARIABLES:
            continue
        if variable not in known:
            hint = did_you_mean(variable, [*known, *OTHER_VARIABLES])
            message = "There is no setting behind an environment variable."
            raise ConfigError("unknown-setting", message, got=shown(variable), hint=hint, where="the environment")
        setting = known[variable]
        yield setting.name, (setting.parse(environ[variable], variable, root), variable)
