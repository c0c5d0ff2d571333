"""Every setting: its variable, what it takes, its default as it is written and as it is read, and its bounds.

What each means is in docs/reference/settings.md, which `tests/test_docs.py` checks.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.config.settings import OTHER_VARIABLES, SETTINGS
from headrace.config.values import check_value


def test_every_setting_takes_what_it_took(golden):
    lines = []
    for setting in SETTINGS.values():
        read = None if setting.default is None else check_value(setting, setting.default, "a test")
        lines += [
            setting.name,
            f"  variable {setting.variable}, takes {setting.takes}",
            f"  default {setting.default!r}, read as {dict(read) if isinstance(read, Mapping) else read!r}",
            f"  choices {setting.choices}, pattern {setting.pattern!r}, from {setting.least} to {setting.most}",
        ]
    golden("frozen/settings", "\n".join([*lines, "", *OTHER_VARIABLES]))
