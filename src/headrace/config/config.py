"""The settings of a project: headrace.toml, its `[env.NAME]` overlays and HEADRACE_* variables, in that order.

What settings there are is in `settings`. A `Config` is what came out, with the origin of every value; `Names` is the
one place that puts the prefix before a topic, group, key or path.
This module reads settings. What features.py defines is `project`'s business.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

from headrace.clock import show_duration
from headrace.config.settings import OTHER_VARIABLES, SETTINGS, VARIABLE, Hidden
from headrace.config.values import check_value
from headrace.errors import ConfigError, ProjectError, did_you_mean, shown

FILE = "headrace.toml"
DEFAULT = "default"
FROM_ENVIRONMENT = "env:"


@dataclass(frozen=True)
class DriftSettings:
    """How models are watched for drift: the settings `drift.*`."""

    watch: str
    window: int
    reference: int
    false_alarms_per_month: float
    detector: str
    labels_after: int
    keep: int
    zone: str
    holidays: tuple[date, ...]


@dataclass(frozen=True)
class RegistryAccess:
    """A schema registry and how to be let in; no address means the project's own. The password is named, not held."""

    address: str = ""
    user: str = ""
    password: str = ""
    ca: str = ""
    certificate: str = ""
    key: str = ""
    timeout: int = 5_000_000


@dataclass(frozen=True)
class ServeAccess:
    """Who may ask serving, how much at once, and for how long; durations are microseconds, files are absolute."""

    workers: int = 1
    max_keys: int = 1_000
    concurrency: int = 16
    queue: int = 256
    max_connections: int = 4_096
    timeout: int = 30_000_000
    idle: int = 30_000_000
    drain: int = 5_000_000
    dimensions_every: int = 10_000_000
    models_every: int = 1_000_000
    score_timeout: int = 1_000_000
    score_queue: int = 1_000
    stale: str = "flag"
    sample: float = 0.0
    keys: Hidden = field(default_factory=lambda: Hidden({}))
    without_keys: str = "loopback"
    certificate: str = ""
    certificate_key: str = ""


@dataclass(frozen=True)
class Config:
    """The settings of one project in one environment.

    `origin` says where each came from: the file, an overlay in it, a variable, or the default.

    >>> config = parse('prefix = "eu"\\n[project]\\nname = "shop"', Path("shop"), {})
    >>> config.name, config.mode, config.origin["prefix"]
    ('shop', 'micro-batch', 'headrace.toml')
    """

    root: Path
    env: str | None
    name: str
    features: Path
    data: Path
    prefix: str
    load_timeout: int
    mode: str
    real_time_batch: int
    separate: tuple[str, ...]
    hung_after: int
    compatibility: str
    registry: RegistryAccess
    log_kind: str
    partitions: int
    brokers: str
    kafka_options: Hidden
    kafka_spark_options: Hidden
    lake: str
    lake_options: Hidden
    archive_every: int
    archive_most: int
    late_every: int
    audit_every: int
    audit_most: int
    evaluate_every: int
    drift: DriftSettings
    webhook: str
    webhook_secret: str
    store_kind: str
    store_url: str
    models: str
    host: str
    port: int
    max_body: int
    max_lag: int
    min_free_disk: int
    serve: ServeAccess
    origin: Mapping[str, str]


def load(path: Path | None = None, environ: Mapping[str, str] | None = None, *, env: str | None = None) -> Config:
    """Find headrace.toml at `path` or in the nearest folder above it, and read it.

    Parameters
    ----------
    path
        A folder, or the file itself; the current folder when left out.
    environ
        Variables to take HEADRACE_* from; the process's own when left out.
    env
        The environment to use; otherwise HEADRACE_ENV says.
    """
    file = find(Path.cwd() if path is None else path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        hint = "Look at its permissions; it is text in UTF-8."
        raise ConfigError(
            "bad-setting", f"{FILE} cannot be read.", got=shown(str(error)), where=str(file), hint=hint
        ) from error
    return parse(text, file.parent, os.environ if environ is None else environ, env=env)


def find(start: Path) -> Path:
    """The headrace.toml that governs `start`: there, or in the nearest folder above."""
    start = start.resolve()
    if start.is_file():
        return start
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            return folder / FILE
    hint = "Go to your project's folder, or make one with `headrace init NAME`."
    raise ProjectError("no-project", f"There is no {FILE} here or in a folder above.", got=str(start), hint=hint)


def parse(text: str, root: Path, environ: Mapping[str, str], *, env: str | None = None) -> Config:
    """Read the text of a headrace.toml together with the variables over it."""
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
    read = {name: dict(_flat(overlay, f"{FILE} [env.{name}]")) for name, overlay in overlays.items()}
    chosen = env or environ.get("HEADRACE_ENV") or None
    if chosen is not None and chosen not in read:
        hint = did_you_mean(chosen, read) or f"{FILE} has no [env.NAME] table."
        where = "HEADRACE_ENV" if env is None else None
        message = f"{FILE} has no environment of that name."
        raise ConfigError("unknown-environment", message, got=shown(chosen), hint=hint, where=where)
    layers = dict(_flat(table, FILE)) | read.get(chosen or "", {}) | dict(_variables(environ))
    return _config(layers, root, chosen)


def _flat(table: Mapping[str, Any], where: str, section: str = "") -> Iterator[tuple[str, tuple[Any, str]]]:
    """The settings of one TOML table as (dotted name, (value, origin)); unknown ones are refused."""
    for key, value in table.items():
        name = f"{section}.{key}" if section else key
        if name in SETTINGS:
            yield name, (check_value(SETTINGS[name], value, where), where)
        elif not section and any(setting.section == key for setting in SETTINGS.values()):
            if not isinstance(value, dict):
                hint = f"Write it as a table: [{key}]."
                raise ConfigError("bad-setting", f"{key!r} is not a table.", got=shown(value), hint=hint, where=where)
            yield from _flat(value, where, key)
        else:
            raise _unknown(name, where)


def _unknown(name: str, where: str) -> ConfigError:
    last = name.rpartition(".")[2]
    belongs = [setting for setting in SETTINGS.values() if setting.name.rpartition(".")[2] == last]
    hint = did_you_mean(name, SETTINGS)
    if belongs:
        section = belongs[0].section
        hint = f"It belongs in [{section}]." if section else "It belongs above the first [table]."
    message = "There is no setting of that name."
    return ConfigError("unknown-setting", message, got=shown(name), hint=hint, where=where)


def _variables(environ: Mapping[str, str]) -> Iterator[tuple[str, tuple[Any, str]]]:
    known = {setting.variable: setting for setting in SETTINGS.values()}
    for variable in sorted(environ):
        if not variable.startswith(VARIABLE) or variable in OTHER_VARIABLES:
            continue
        if variable not in known:
            hint = did_you_mean(variable, [*known, *OTHER_VARIABLES])
            message = "There is no setting behind an environment variable."
            raise ConfigError("unknown-setting", message, got=shown(variable), hint=hint, where="the environment")
        setting = known[variable]
        yield setting.name, (check_value(setting, environ[variable], variable), variable)


def _config(layers: Mapping[str, tuple[Any, str]], root: Path, env: str | None) -> Config:
    given = dict(layers)
    for setting in SETTINGS.values():
        if setting.name not in given and setting.default is not None:
            given[setting.name] = (check_value(setting, setting.default, DEFAULT), DEFAULT)
    if "project.name" not in given:
        hint = f'Add [project] and name = "..." to {FILE}.'
        raise ConfigError("bad-setting", "The project has no name.", hint=hint, where=FILE)
    value = {name: given[name][0] for name in SETTINGS}
    if value["drift.window"] > value["drift.reference"]:
        message, hint = "'drift.window' is longer than 'drift.reference'.", "The rhythm is learnt from many windows."
        got = f"{show_duration(value['drift.window'])}, {show_duration(value['drift.reference'])}"
        raise ConfigError("bad-setting", message, got=got, hint=hint, where=given["drift.window"][1])
    return Config(
        root=root,
        env=env,
        name=value["project.name"],
        features=root / value["features"],
        data=root / value["data"],
        prefix=value["prefix"],
        load_timeout=value["load_timeout"],
        mode=value["pipeline.mode"],
        real_time_batch=value["pipeline.real_time_batch"],
        separate=value["processes.separate"],
        hung_after=value["processes.hung_after"],
        compatibility=value["schema.compatibility"],
        registry=_registry(value, root),
        log_kind=value["log.kind"],
        partitions=value["log.partitions"],
        brokers=value["kafka.brokers"],
        kafka_options=value["kafka.options"],
        kafka_spark_options=value["kafka.spark_options"],
        lake=value["lake.path"],
        lake_options=value["lake.options"],
        archive_every=value["archive.every"],
        archive_most=value["archive.most"],
        late_every=value["late.every"],
        audit_every=value["audit.every"],
        audit_most=value["audit.most"],
        evaluate_every=value["evaluate.every"],
        drift=DriftSettings(**{name: value[f"drift.{name}"] for name in DriftSettings.__dataclass_fields__}),
        webhook=value["alerts.webhook"],
        webhook_secret=value["alerts.secret"],
        store_kind=value["store.kind"],
        store_url=value["store.url"],
        models=value["models.path"],
        host=value["serve.host"],
        port=value["serve.port"],
        max_body=value["serve.max_body"],
        max_lag=value["serve.max_lag"],
        min_free_disk=value["serve.min_free_disk"],
        serve=_serve(value, root),
        origin=MappingProxyType({name: given[name][1] for name in SETTINGS}),
    )


def _registry(value: Mapping[str, Any], root: Path) -> RegistryAccess:
    held = {name: value[f"schema.registry_{name}"] for name in ("ca", "certificate", "key")}
    files = {name: str(root / file) for name, file in held.items() if file}
    user, password, timeout = (value[f"schema.registry_{name}"] for name in ("user", "password", "timeout"))
    return RegistryAccess(value["schema.registry"].rstrip("/"), user, password, **files, timeout=timeout)


def _serve(value: Mapping[str, Any], root: Path) -> ServeAccess:
    names = [each.name for each in fields(ServeAccess)]
    held = {name: value[f"serve.{name}"] for name in names}
    files = {name: str(root / held[name]) for name in ("certificate", "certificate_key") if held[name]}
    return ServeAccess(**held | files)


def resolved(options: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Options with every `env:NAME` replaced by what the environment holds.

    >>> resolved({"sasl.password": "env:KAFKA_PASSWORD"}, {"KAFKA_PASSWORD": "x"})
    {'sasl.password': 'x'}
    """
    found = {}
    for name, value in options.items():
        if value.startswith(FROM_ENVIRONMENT):
            variable = value.removeprefix(FROM_ENVIRONMENT)
            if variable not in environ:
                message = "An option is to come from a variable that is not set."
                raise ConfigError("bad-setting", message, got=shown(variable), hint=f"Set {variable}.", where=name)
            value = environ[variable]  # noqa: PLW2901
        found[name] = value
    return found


@dataclass(frozen=True)
class Names:
    """Names outside the process, each with the prefix in front.

    Topics may be shared by projects, so they carry the prefix alone; groups and keys belong to one project and carry
    its name too.

    >>> names = Names(prefix="eu", project="shop", data=Path("data"))
    >>> names.topic("payments"), names.group("pipeline"), names.key("cards", "42"), names.path("lake").as_posix()
    ('eu.payments', 'eu.shop.pipeline', 'eu:shop:cards:42', 'data/eu/lake')
    """

    prefix: str
    project: str
    data: Path

    def topic(self, name: str) -> str:
        """The topic of a stream or a changelog."""
        return f"{self.prefix}.{name}" if self.prefix else name

    def group(self, name: str) -> str:
        """The group a reader commits its offsets under."""
        return self.topic(f"{self.project}.{name}")

    def key(self, *parts: str) -> str:
        """A key in a shared store."""
        return ":".join(part for part in (self.prefix, self.project, *parts) if part)

    def path(self, *parts: str) -> Path:
        """A path under the data folder."""
        return self.data.joinpath(self.prefix, *parts)


def names(config: Config) -> Names:
    """The names a configuration gives.

    >>> names(parse('[project]\\nname = "shop"', Path("shop"), {})).topic("payments")
    'payments'
    """
    return Names(config.prefix, config.name, config.data)


def models_folder(config: Config) -> Path:
    """Where the versions of a project's models are.

    >>> models_folder(parse('[project]\\nname = "shop"', Path("shop"), {})).as_posix()
    'shop/.headrace/models'
    """
    return (config.root / config.models).joinpath(config.prefix) if config.models else names(config).path("models")
