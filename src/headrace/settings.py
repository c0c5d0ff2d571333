"""The table of all settings: what each is called, takes, means, and is when nobody says otherwise.

It is data. `config` reads headrace.toml and the environment by it, and the reference in the docs is written from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

VARIABLE = "HEADRACE_"
NUMBER = "a whole number"
MODES = ("micro-batch", "real-time")
COMPATIBILITIES = ("backward", "forward", "full", "none")

# Variables that are not settings.
OTHER_VARIABLES: dict[str, str] = {
    "HEADRACE_ENV": "The environment to use: a name NAME of an `[env.NAME]` overlay.",
    "HEADRACE_SUPERVISOR": "Set by `headrace up` for the processes it starts: whose they are.",
    "HEADRACE_DEBUG": "When 1, an unexpected failure shows its Python traceback.",
}


@dataclass(frozen=True)
class Setting:
    """One setting: its dotted name, what it takes, its default and what it means.

    >>> SETTINGS["pipeline.mode"].variable
    'HEADRACE_PIPELINE_MODE'
    """

    name: str
    takes: str
    default: str | None
    meaning: str
    choices: tuple[str, ...] = ()
    pattern: str | None = None
    least: int = 0
    most: int = 0

    @property
    def variable(self) -> str:
        """The environment variable that overrides it."""
        return VARIABLE + self.name.replace(".", "_").upper()

    @property
    def section(self) -> str:
        """The table of headrace.toml it stands in; empty for the top."""
        return self.name.rpartition(".")[0]


_NAME = r"[a-z][a-z0-9_-]{0,62}"

SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        setting.name: setting
        for setting in (
            Setting("project.name", "a name", None, "What the project is called. Required.", pattern=_NAME),
            Setting("features", "a path", "features.py", "The Python file that defines streams, views and sets."),
            Setting("data", "a path", ".headrace", "The folder for everything Headrace writes."),
            Setting(
                "prefix",
                "a name",
                "",
                "Put before every topic, group, key and path, so that environments can share a cluster.",
                pattern=f"(?:{_NAME})?",
            ),
            Setting("load_timeout", "a duration", "10s", "How long the features file may take to load."),
            Setting(
                "pipeline.mode",
                "a choice",
                "micro-batch",
                "How Spark runs the live pipeline: in small batches or event by event.",
                choices=MODES,
            ),
            Setting(
                "schema.compatibility",
                "a choice",
                "backward",
                "What a changed schema must keep being able to read, unless its stream says otherwise.",
                choices=COMPATIBILITIES,
            ),
            Setting(
                "log.partitions",
                NUMBER,
                "2",
                "How many partitions a stream's topic is created with; a topic that exists keeps its own.",
                least=1,
                most=1024,
            ),
            Setting("serve.host", "a host", "127.0.0.1", "The address that serving listens on."),
            Setting("serve.port", NUMBER, "8787", "The port that serving listens on; 0 takes a free one.", most=65_535),
        )
    }
)
