"""Every setting: its variable, what it takes, its default as it is written and as it is read, and its bounds.

What each means is in docs/reference/settings.md, which `tests/test_docs.py` checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.config.config import SETTINGS
from headrace.config.kinds import NAME_PATTERN, ResourceName
from headrace.config.row import DEFAULT, Setting
from headrace.config.settings import OTHER_VARIABLES


def default_as_read(setting: Setting) -> Any:
    """What `Config` holds when nobody writes a value; paths and tables in a form that can be compared."""
    read = None if setting.default is None else setting.parse(setting.default, DEFAULT, Path())
    if isinstance(read, Path):
        return str(read)
    return dict(read) if isinstance(read, Mapping) else read


def test_every_setting_takes_what_it_took(golden):
    lines = []
    for setting in SETTINGS.values():
        kind: Any = setting.kind
        pattern = NAME_PATTERN.pattern if isinstance(kind, ResourceName) else None
        least, most = getattr(kind, "least", 0), getattr(kind, "most", 0)
        lines += [
            setting.name,
            f"  variable {setting.variable}, takes {kind.takes}",
            f"  default {setting.default!r}, read as {default_as_read(setting)!r}",
            f"  choices {getattr(kind, 'choices', ())}, pattern {pattern!r}, from {least} to {most}",
        ]
    golden("frozen/settings", "\n".join([*lines, "", *OTHER_VARIABLES]))
