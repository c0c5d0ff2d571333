"""Which run of a tile set is read: the newest whose stream has caught up and whose tiles are in the store."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.tiles.changelog import SERVING, HandOver, ProgressRow

FIRST_RUN = "1"
"""It reads the log from its beginning, and has no hand-over."""


def number(run: str) -> int:
    """Runs are numbered in the order in which they were begun.

    >>> number("12")
    12
    """
    return int(run)


def serving_run(progress: Mapping[str, ProgressRow], hand_overs: Mapping[str, HandOver]) -> ProgressRow | None:
    """How far the run has come that is to be read; None while none has said anything.

    >>> first, second = ProgressRow("ab", "1", {}, as_of=9), ProgressRow("ab", "2", {}, as_of=7)
    >>> begun = HandOver("ab", "2", 0, {}, {}, 1)
    >>> serving_run({"1": first, "2": second}, {"2": begun}).run
    '1'
    """
    ready = [said for run, said in progress.items() if run not in hand_overs or hand_overs[run].stage == SERVING]
    return max(ready, key=lambda said: number(said.run), default=None)


def choose_run(
    progress: Mapping[str, ProgressRow], hand_overs: Mapping[str, HandOver], run: str | None
) -> tuple[str | None, ProgressRow | None]:
    """The run to read and how far it has come: the one that is named, or the one that serves.

    >>> choose_run({}, {}, "7"), choose_run({"1": ProgressRow("ab", "1", {}, as_of=9)}, {}, None)[0]
    (('7', None), '1')
    """
    if run is not None:
        return run, progress.get(run)
    said = serving_run(progress, hand_overs)
    return (None, None) if said is None else (said.run, said)
