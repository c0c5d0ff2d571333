"""Sizes as people write and read them: 2GB in, 1.9 GB out. A unit is a thousand of the one below."""

from __future__ import annotations

import re

from headrace.errors import UsageError, shown

_UNITS = ("B", "kB", "MB", "GB", "TB")
_WRITTEN = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([kMGT]?B)", re.IGNORECASE)


def show_size(size: float) -> str:
    """A size with a unit that keeps it short.

    >>> show_size(512), show_size(2_345_678)
    ('512 B', '2.3 MB')
    """
    for unit in _UNITS[:-1]:
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} {_UNITS[-1]}"


def parse_size(text: str, option: str) -> int:
    """A size that was given to an option.

    >>> parse_size("1.5GB", "--state-budget")
    1500000000
    """
    found = _WRITTEN.fullmatch(text.strip())
    if not found or not float(found.group(1)):
        hint = "Write a number and a unit, such as 500MB or 2GB."
        raise UsageError("bad-usage", f"{option} cannot be read.", got=shown(text), hint=hint)
    power = [unit.lower() for unit in _UNITS].index(found.group(2).lower())
    return int(float(found.group(1)) * 10 ** (3 * power))
