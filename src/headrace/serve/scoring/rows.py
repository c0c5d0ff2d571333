"""Rows become scores: who scores which, what is done when a version fails, and what shadows say of the same rows.

A row goes to the version that its key falls to. Outcomes of a version are told to its breaker; when that trips, the
version before is put into its place, and rows that failed are scored by it. Shadows score behind the answer, which does
not wait for them. Features are read before, by `scoring`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace.errors import HeadraceError, MachineError, ProjectError
from headrace.models.lineup import Lineup, Seat
from headrace.models.roles import CHAMPION, SHADOW
from headrace.serve.limits import BusyError
from headrace.serve.scoring.lineup import Served
from headrace.serve.scoring.metrics import DOWN, DROPPED, FAILED, OK, REFUSED, SLOW, ScoreMetrics
from headrace.serve.scoring.models import Models
from headrace.serve.scoring.version_process import RetiredError, VersionProcess
from headrace.serve.scoring.wire import FAULT
from headrace.tiles.changelog import KeyPart

TRIES = 5
"""How often a row is given to another version when its own has gone or failed."""
OUTCOMES = {FAULT: FAILED, "model-slow": SLOW, "model-down": DOWN}
"""The errors that are the model's, and how they are counted; all others are the row's."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Scorable:
    """A row that can be scored: its key, its values as they go out, and what is said of them."""

    key: Mapping[str, KeyPart]
    row: msgspec.Raw
    said: Mapping[str, Any]


@dataclass(frozen=True)
class Scored:
    """A score or an error, whose it is, and from which version that failed it was taken over."""

    seat: Seat[VersionProcess]
    result: float | HeadraceError
    fallback_from: int | None = None


class RowScoring:
    """Scores rows with the models of a process; used from the event loop."""

    def __init__(self, models: Models, scores: ScoreMetrics) -> None:
        self._models, self._scores = models, scores
        self._behind: set[asyncio.Task[None]] = set()

    def find(self, name: str) -> Served:
        """A model by its name; an unknown one is refused with `not-found`."""
        return self._models.find(name)

    async def scored(self, served: Served, rows: Sequence[Scorable], version: int | None = None) -> list[Scored]:
        """A score or an error for every row, by the version each falls to, or by the one that is asked for."""
        found: dict[int, Scored] = {}
        left = list(range(len(rows)))
        for _ in range(TRIES if rows else 0):
            lineup, groups = served.lineup, dict[Seat[VersionProcess], list[int]]()
            for place in left:
                groups.setdefault(seat_of(served, lineup, rows[place].key, version), []).append(place)
            works = [self._group(served, lineup, seat, rows, each, found) for seat, each in groups.items()]
            # Mostly there is one, and no task is needed for it.
            await (works[0] if len(works) == 1 else asyncio.gather(*works))
            left = [place for place in left if _is_rescored(served, found.get(place), version)]
            if not left:
                break
        if len(found) < len(rows):
            raise no_model(served)
        self._shadow(served, rows, found)
        return [found[place] for place in range(len(rows))]

    async def _group(
        self,
        served: Served,
        lineup: Lineup[VersionProcess],
        seat: Seat[VersionProcess],
        rows: Sequence[Scorable],
        places: Sequence[int],
        found: dict[int, Scored],
    ) -> None:
        """Have one version score some of the rows."""
        usual = lineup.fallback_from if seat.role == CHAMPION else None
        for chunk in _cut(places, seat.scorer.together):
            try:
                results = await self._score_counted(served.name, seat, [rows[place].row for place in chunk])
            except RetiredError:
                continue
            for place, result in zip(chunk, results, strict=True):
                # Whoever has it for the second time has it from one that failed.
                taken = found[place].seat.version if place in found else usual
                found[place] = Scored(seat, result, taken)
            await self._judge(served, seat, results)

    async def _score_counted(
        self, name: str, seat: Seat[VersionProcess], rows: list[msgspec.Raw]
    ) -> list[float | HeadraceError]:
        """What a version says of some rows, counted."""
        began = time.perf_counter()
        try:
            told = await seat.scorer.score(rows)
        except HeadraceError as error:
            results: list[float | HeadraceError] = [error] * len(rows)
        else:
            results = [each if isinstance(each, float) else each.error() for each in told.results]
            if seat.role != SHADOW:
                self._scores.took(name, time.perf_counter() - began)
        for outcome, count in Counter(map(_outcome, results)).items():
            self._scores.scored(name, seat.version, seat.role, outcome, count)
        faults = _faults(results)
        if faults:
            _logger.error("version %d of model %s: %s", seat.version, name, faults[0].brief)
        return results

    async def _judge(
        self, served: Served, seat: Seat[VersionProcess], results: Sequence[float | HeadraceError]
    ) -> None:
        """Tell a version's outcomes, and fall back when it fails too often."""
        faults = _faults(results)
        if served.count_outcomes(seat, sum(isinstance(each, float) for each in results), len(faults)):
            await self._models.fall_back(served.name, seat.version, faults[0].brief)
        if seat.version in served.stuck:
            for each in faults:
                each.hint = "It fails again and again, and there is no version before to fall back to: promote another."

    def _shadow(self, served: Served, rows: Sequence[Scorable], found: Mapping[int, Scored]) -> None:
        """Have the shadows score the same rows, behind the answer."""
        for seat in served.lineup.shadows:
            task = asyncio.ensure_future(self._shadowed(served.name, seat, rows, found))
            # A task that nobody holds may be forgotten half-way.
            self._behind.add(task)
            task.add_done_callback(self._behind.discard)

    async def _shadowed(
        self, name: str, seat: Seat[VersionProcess], rows: Sequence[Scorable], found: Mapping[int, Scored]
    ) -> None:
        for chunk in _cut(range(len(rows)), seat.scorer.together):
            try:
                results = await self._score_counted(name, seat, [rows[place].row for place in chunk])
            except BusyError:
                self._scores.scored(name, seat.version, seat.role, DROPPED, len(rows) - chunk[0])
                return
            except RetiredError:
                return
            for place, result in zip(chunk, results, strict=True):
                said = found[place]
                if said.seat.role == CHAMPION and isinstance(said.result, float) and isinstance(result, float):
                    self._scores.apart(name, seat.version, abs(result - said.result))


def seat_of(
    served: Served, lineup: Lineup[VersionProcess], key: Mapping[str, KeyPart], version: int | None
) -> Seat[VersionProcess]:
    """Who scores a key; when nobody does, or not the version that is asked for, that is refused."""
    if version is None:
        seat = lineup.choose(tuple(key.values()))
        if seat is None:
            raise no_model(served)
        return seat
    for seat in lineup.seats:
        if seat.version == version:
            return seat
    known = ", ".join(f"{seat.version} ({seat.role})" for seat in lineup.seats) or "none"
    message, hint = f"Model {served.name!r} does not serve that version.", f"It serves {known}."
    raise ProjectError("not-found", message, got=f"version {version}", hint=hint)


def no_model(served: Served) -> MachineError:
    """Nobody answers for a model."""
    failing = served.failure
    message = f"Model {served.name!r} has no champion." if failing is None else "No version of the model can serve."
    hint = f"`headrace model promote {served.name} VERSION` makes one the champion."
    return MachineError("no-model", message, got=failing, hint=hint)


def _cut(places: Sequence[int], most: int) -> Iterator[Sequence[int]]:
    """So many at a time."""
    return (places[start : start + most] for start in range(0, len(places), most))


def _is_rescored(served: Served, scored: Scored | None, version: int | None) -> bool:
    """Whether a row goes to another version: its own has gone, or failed and was replaced since."""
    if scored is None:
        return True
    if version is not None or not _faults([scored.result]):
        return False
    return all(seat.version != scored.seat.version for seat in served.lineup.answering)


def _faults(results: Sequence[float | HeadraceError]) -> list[HeadraceError]:
    """The errors that are the model's."""
    return [each for each in results if isinstance(each, HeadraceError) and each.code in OUTCOMES]


def _outcome(result: float | HeadraceError) -> str:
    return OUTCOMES.get(result.code, REFUSED) if isinstance(result, HeadraceError) else OK
