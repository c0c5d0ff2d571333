"""The configuration of a project: its settings in sections, with the origin of every value.

The sections are in `settings`, how values are read is in `reading`. `Names` is the one place that puts the prefix
before a topic, group, key or path. What features.py defines is read by `project`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from headrace.clock import show_duration
from headrace.config import settings
from headrace.config.kinds import Duration, LocalPath, ResourceName
from headrace.config.reading import read
from headrace.config.row import FILE, Setting, fill, rows, section, setting
from headrace.config.serve_settings import ServeSettings
from headrace.errors import ConfigError, ProjectError, shown

FROM_ENVIRONMENT = "env:"


@dataclass(frozen=True, kw_only=True)
class Config:
    """The settings of one project in one environment.

    `origin` says where each came from: the file, an overlay in it, a variable, or the default.

    >>> config = parse('prefix = "eu"\\n[project]\\nname = "shop"', Path("shop"), {})
    >>> config.name, config.pipeline.mode, config.origin["prefix"]
    ('shop', 'micro-batch', 'headrace.toml')
    """

    root: Path
    env: str | None
    origin: Mapping[str, str]
    name: str = setting(ResourceName(), None, "What the project is called. Required.", name="project.name")
    features: Path = setting(LocalPath(), "features.py", "The Python file that defines streams, views and sets.")
    data: Path = setting(LocalPath(), ".headrace", "The folder for everything Headrace writes.")
    prefix: str = setting(
        ResourceName(), "", "Put before every topic, group, key and path, so that environments can share a cluster."
    )
    load_timeout: int = setting(Duration(), "10s", "How long the features file may take to load.")
    pipeline: settings.PipelineSettings = section(settings.PipelineSettings)
    processes: settings.ProcessSettings = section(settings.ProcessSettings)
    schema: settings.SchemaSettings = section(settings.SchemaSettings)
    registry: settings.RegistryAccess = section(settings.RegistryAccess, "schema")
    log: settings.LogSettings = section(settings.LogSettings)
    kafka: settings.KafkaSettings = section(settings.KafkaSettings)
    lake: settings.LakeSettings = section(settings.LakeSettings)
    archive: settings.ArchiveSettings = section(settings.ArchiveSettings)
    late: settings.LateSettings = section(settings.LateSettings)
    audit: settings.AuditSettings = section(settings.AuditSettings)
    evaluate: settings.EvaluateSettings = section(settings.EvaluateSettings)
    drift: settings.DriftSettings = section(settings.DriftSettings)
    alerts: settings.AlertSettings = section(settings.AlertSettings)
    store: settings.StoreSettings = section(settings.StoreSettings)
    models: settings.ModelSettings = section(settings.ModelSettings)
    serve: ServeSettings = section(ServeSettings)


SETTINGS: Mapping[str, Setting] = MappingProxyType(rows(Config))
"""The table of all settings, by name."""


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
    chosen, given = read(SETTINGS, text, root, environ, env)
    if "project.name" not in given:
        hint = f'Add [project] and name = "..." to {FILE}.'
        raise ConfigError("bad-setting", "The project has no name.", hint=hint, where=FILE)
    origin = MappingProxyType({name: where for name, (_, where) in given.items()})
    values = {name: value for name, (value, _) in given.items()}
    config = fill(Config, values, root=root, env=chosen, origin=origin)
    if config.drift.window > config.drift.reference:
        message, hint = "'drift.window' is longer than 'drift.reference'.", "The rhythm is learnt from many windows."
        got = f"{show_duration(config.drift.window)}, {show_duration(config.drift.reference)}"
        raise ConfigError("bad-setting", message, got=got, hint=hint, where=origin["drift.window"])
    return config


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
    path = config.models.path
    return Path(path).joinpath(config.prefix) if path else names(config).path("models")
