"""The demo's past and present: history and labels as files, and what comes after them live."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headrace.clock import MINUTE, micros
from headrace_demo.world.files import write_labels, write_payments
from headrace_demo.world.labels import labels
from headrace_demo.world.stream import Sent, World, history, live

START = micros("2026-03-04T10:00:00Z")
"""When history ends in the world. It is moved to the present, so that a seed gives the same payments at any hour."""
PAUSE = 2 * MINUTE
"""How long after history live traffic begins in the world."""
HISTORY, LABELS = "history.jsonl", "labels.jsonl"


@dataclass(frozen=True)
class Past:
    """A world's history in files.

    Parameters
    ----------
    moved
        How much later than in the world all of it is said to have happened.
    payments, labels
        How many there are of each.
    """

    world: World
    moved: int
    payments: int
    labels: int


def world_of(seed: int, *, small: bool = False) -> World:
    """The demo's world, or one with less of everything."""
    size = {"cards": 5_000, "days": 8, "payments": 32_000} if small else {"cards": 7_000, "payments": 44_000}
    return World(seed=seed, start=START, **size)


def write_past(folder: Path, world: World, now: int) -> Past:
    """Write payments up to now, and the labels that are known by now."""
    moved = now - world.start
    payments = write_payments(history(world, moved=moved), folder / HISTORY)
    known = (each for each in labels(history(world, moved=moved), seed=world.seed) if each.at <= now)
    return Past(world, moved, payments, write_labels(known, folder / LABELS))


def live_of(past: Past, start: int, seconds: float, per_second: float) -> list[Sent]:
    """The records that come after a past, as if they began now."""
    begin = past.world.start + PAUSE
    return list(live(past.world, begin, seconds=seconds, per_second=per_second, moved=start - begin))
