"""Tiles that no window can reach any more: when that is, and what is left of them.

A tile goes when the run that wrote it has come so far that neither a window nor a late event of the on-time lane can
touch it. Where a view has a lifetime window, on-time tiles are merged into the key's base first: they are final, and
rows of them that come again are passed over. The late lane may still change, so its tiles stay beside the base.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.errors import HeadraceError
from headrace.tiles.changelog import FILLING, HandOver, ProgressRow
from headrace.tiles.levels import LevelLayout

ON_TIME = "on_time"
"""The lane whose tiles become final."""


def horizons(
    layout: LevelLayout, progress: Mapping[str, ProgressRow], hand_overs: Mapping[str, HandOver]
) -> dict[str, int]:
    """Of each run, the start before which tiles may go; a run whose history is being filled in keeps everything.

    >>> horizons(LevelLayout("", (), keep=60), {"1": ProgressRow("ab", "1", {}, as_of=100)}, {})
    {'1': 40}
    """
    if not layout.keep:
        return {}
    filling = {run for run, begun in hand_overs.items() if begun.stage == FILLING}
    return {run: said.as_of - layout.keep for run, said in progress.items() if run not in filling}


def outgrown(old: LevelLayout, new: LevelLayout) -> bool:
    """Whether something is wanted that may have been removed under an old layout.

    >>> longer = LevelLayout("", (), keep=90)
    >>> outgrown(LevelLayout("", (), keep=60), longer), outgrown(LevelLayout("", ()), longer)
    (True, False)
    """
    if not old.keep:
        return False
    return not new.keep or new.keep > old.keep or new.base not in ("", old.base)


class ExpiredError(HeadraceError):
    """A value is asked for of which tiles are no longer kept."""

    http_status = 400

    def __init__(self, message: str, *, got: str | None = None, hint: str | None = None) -> None:
        super().__init__("store-expired", message, got=got, hint=hint)


def other_base() -> ExpiredError:
    """Refuse to read all that ever was where what is left of it is not what the reader wants."""
    hint = "Start serving anew: it fills the store again when windows were changed."
    return ExpiredError("The store keeps all that ever was for other features than these.", hint=hint)
