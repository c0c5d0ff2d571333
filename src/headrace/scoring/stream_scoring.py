"""One model over its stream: records in order, features as each of them finds them, predictions, then the position.

What comes at once is scored at once: a single event does not wait for others, and a backlog is taken some hundred at a
time. The next are scored while predictions are on their way into the log, but the position moves only when they are
safe there: so after a kill some may be written again, under the same ids, and none is missing. Events count from the
moment the model's first version was promoted; those before are history, which is scored in Spark (`spark.score`).
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Any

from headrace.clock import Clock
from headrace.codec.wire import SchemaIds
from headrace.config.config import Names
from headrace.define.model import Model
from headrace.errors import HeadraceError
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.log.pending_append import Appending
from headrace.log.protocol import Log, Offsets
from headrace.log.record import Message, Record
from headrace.meaning.verdict import Judgement
from headrace.models.lineup import Lineup, Seat, loaded_lineups
from headrace.models.registry import ModelRegistry
from headrace.models.scorer import Scorer
from headrace.read.feature_row import model_row
from headrace.scoring.admission import Admit, horizon, in_order, order
from headrace.scoring.features import EventFeatures
from headrace.scoring.prediction import ScoringEvent, failure, prediction

MOST = 500
"""Records taken at a time: what is under way is bounded by it."""
UNDER_WAY = 8
"""Steps whose predictions may be on their way into the log."""
COMMIT = 1.0
"""Seconds between two notes of how far it has come: after a kill, so much is scored again."""
LATENCIES = 10_000
FAULTS = frozenset({"model-failed"})
"""Errors that are the model's own: a value that it does not take is not among them."""

Outcomes = dict[ScoringEvent, tuple[int, Message | HeadraceError]]
"""Of every event, the version that was asked, and its prediction or why there is none."""


class StreamScoring:
    """Scores the events of one model's stream.

    Attributes
    ----------
    counts
        Records by what became of them: `scored`, `failed`, and the verdicts of those that are not scored.
    """

    def __init__(
        self,
        model: Model,
        features: EventFeatures,
        log: Log,
        named: Names,
        registry: ModelRegistry,
        clock: Clock,
        ids: SchemaIds | None = None,
        faults: FaultPoints = NO_FAULTS,
    ) -> None:
        if model.stream is None:
            raise ValueError(f"model {model.name!r} has no stream")
        self.model, self.features, self._log, self._clock, self._registry = model, features, log, clock, registry
        self.topic, self._out = named.topic(model.stream.name), named.topic(model.predictions.name)
        self._failed, self._group = named.topic(f"{model.predictions.name}.failed"), named.group(f"score.{model.name}")
        self._wanted = model.stream.filter.python() if model.stream.filter else None
        self._stream, self._ids, self._faults = model.stream.base, ids, faults
        self._admit = Admit(self._stream, ids)
        self.lineups = loaded_lineups(registry, model.name)
        self.counts: Counter[str] = Counter()
        self.latencies: deque[float] = deque(maxlen=LATENCIES)
        self.positions: dict[int, int] = {}
        self._held: dict[int, deque[Record]] = {}
        self._under_way: deque[tuple[dict[int, int], list[Appending]]] = deque()
        self._safe: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self._noted = 0.0

    @property
    def lineup(self) -> Lineup[Scorer] | None:
        """Who scores; None while no version was promoted."""
        lineup = self.lineups.lineup
        return None if lineup.champion is None else lineup

    def refresh(self) -> None:
        """Take over what the model's roles say now, and let go of events that are in the tiles."""
        self.lineups.refresh()
        self.features.forget()
        if not self.positions and self.lineup is not None:
            self._begin()

    def _begin(self) -> None:
        """Go on where it was, with what must be known of before."""
        log, topic = self._log, self.topic
        first, ends = log.start_offsets(topic), log.end_offsets(topic)
        known = log.committed(self._group, topic)
        since = log.offset_at(topic, self._promoted())
        at = {p: min(max(known.get(p, since.get(p, ends[p])), first[p]), ends[p]) for p in ends}
        log.commit(self._group, topic, at)
        self._faults.reach("scoring.begin.after")
        for record in self._before(at, first):
            self._take(self._admit.judge(record))
        self.positions, self._safe, self._committed = dict(at), dict(at), dict(at)

    def _promoted(self) -> int:
        """When the first version was promoted."""
        return min(change.at for change in self._registry.roles(self.model.name).history if change.what == "promote")

    def _before(self, at: Mapping[int, int], first: Mapping[int, int]) -> list[Record]:
        """What stands before some positions and may have copies after them, or may not be in the tiles yet."""
        log, topic = self._log, self.topic
        next_ones = [found[0].arrived_at for p in at if (found := log.peek(topic, p, at[p]))]
        low = log.offset_at(topic, min([self._clock.now(), *next_ones]) - horizon(self._stream))
        for tail in self.features.tails.values():
            said = self.features.progress(tail.tile_set)
            low = {p: min(low[p], 0 if said is None else said.positions.get(p, 0)) for p in low}
        records: list[Record] = []
        for p, end in at.items():
            offset = max(low.get(p, 0), first[p])
            while offset < end and (found := log.read(topic, p, offset, limit=min(10_000, end - offset))):
                records += [record for record in found if record.offset < end]
                offset = found[-1].offset + 1
        return in_order(records)

    def _take(self, judged: Judgement) -> None:
        """Keep an event that is on its way into the tiles."""
        if judged.lane == "on_time" and judged.event is not None:
            self.features.add(judged.event)

    @property
    def waiting(self) -> bool:
        """Whether there are records that were read and not scored."""
        return any(self._held.values())

    @property
    def reading(self) -> dict[int, int]:
        """The offset of each partition from which on nothing was read."""
        return {p: held[-1].offset + 1 if (held := self._held.get(p)) else at for p, at in self.positions.items()}

    def step(self, come: Offsets | None = None) -> int:
        """Score what has come, at most some hundred records; how many there were.

        Parameters
        ----------
        come
            Where something is to be read, when that is known.
        """
        lineup = self.lineup
        if lineup is None or not self.positions:
            return 0
        ordered = self._next(come)
        if ordered:
            with self.features.at_once():
                asked = [each for record in ordered if (each := self._scoring_event(record)) is not None]
            appends = self._score(lineup, asked)
            for record in ordered:
                self._held[record.partition].popleft()
                self.positions[record.partition] = record.offset + 1
            self._under_way.append((dict(self.positions), appends))
        self._settle(UNDER_WAY)
        self.note()
        return len(ordered)

    def _next(self, come: Offsets | None) -> list[Record]:
        """The next records in the order of arrival; what was read is kept until it is scored."""
        for partition, offset in self.reading.items():
            held = self._held.setdefault(partition, deque())
            if (come is None or partition in come) and len(held) < MOST:
                held += self._log.read(self.topic, partition, offset, limit=MOST - len(held))
        return list(islice(merge(*self._held.values(), key=order), MOST))

    def _scoring_event(self, record: Record) -> ScoringEvent | None:
        """A record's event with its features, if it is one to score."""
        judged = self._admit.judge(record)
        event = judged.event
        self._take(judged)
        if event is None or not judged.contributes:
            self.counts[judged.verdict] += 1
            return None
        if self._wanted is not None and self._wanted(event.row) is not True:
            self.counts["not_wanted"] += 1
            return None
        known = self.features.of(event, late=judged.lane == "late")
        try:
            row: Any = model_row(self.model.features, known.answers, known.requests, event.arrived_at)
        except HeadraceError as error:
            row = error
        return ScoringEvent(event, record, known, row)

    def _score(self, lineup: Lineup[Scorer], asked: Sequence[ScoringEvent]) -> list[Appending]:
        """Score events and begin to append what came of it."""
        told = self._answers(lineup, asked)
        # In the order of the events, whoever scored them, so that those of one key stay in theirs.
        outcomes, now = [(each, *told[each]) for each in asked], self._clock.now()
        good = [found for _, _, found in outcomes if isinstance(found, Message)]
        bad = [failure(each, number, why, now) for each, number, why in outcomes if isinstance(why, HeadraceError)]
        self.counts["scored"] += len(good)
        self.counts["failed"] += len(bad)
        for shadow in lineup.shadows:
            beside = self._scored(shadow, [each for each in asked if each.row is not None])
            heard = [found for _, found in beside.values() if isinstance(found, Message)]
            self.counts["shadow_scored"] += len(heard)
            self.counts["shadow_failed"] += len(beside) - len(heard)
            good += heard
        return self._begin_appends(good, bad)

    def _answers(self, lineup: Lineup[Scorer], asked: Sequence[ScoringEvent]) -> Outcomes:
        """What comes of events; those that a version fails are scored by the one that takes its place."""
        told: Outcomes = {}
        groups = self._by_version(lineup, asked)
        while groups:
            failed: list[ScoringEvent] = []
            for seat, some in groups.items():
                told |= (outcomes := self._scored(seat, some))
                if self._gives_way(seat, outcomes):
                    failed += [each for each in some if not isinstance(told[each][1], Message)]
            groups = self._by_version(self.lineups.lineup, failed)
        return told

    def _begin_appends(self, good: list[Message], bad: list[Message]) -> list[Appending]:
        """Send predictions, and events without one, to their topics."""
        self._faults.reach("scoring.predictions.before")
        begun = []
        if bad:
            begun.append(self._log.begin_batch(self._failed, bad))
            self._faults.reach("scoring.failures.after")
        if good:
            begun.append(self._log.begin_batch(self._out, good))
            self._faults.reach("scoring.predictions.after")
        return begun

    def _settle(self, most: int) -> None:
        """Go over what was safe when it was looked at, in order, and wait for what is more than so many steps."""
        while self._under_way:
            positions, appends = self._under_way[0]
            if len(self._under_way) <= most and not all(each.over for each in appends):
                return
            for each in appends:
                each.positions()
            self._safe = positions
            self._under_way.popleft()

    def _by_version(
        self, lineup: Lineup[Scorer], asked: Sequence[ScoringEvent]
    ) -> dict[Seat[Scorer], list[ScoringEvent]]:
        found: dict[Seat[Scorer], list[ScoringEvent]] = {}
        for each in asked:
            if (seat := lineup.choose(list(each.known.key.values()))) is not None:
                found.setdefault(seat, []).append(each)
        return found

    def _scored(self, seat: Seat[Scorer], asked: Sequence[ScoringEvent]) -> Outcomes:
        """Predictions of a version, and why it has none for the rest."""
        rows = [each.row for each in asked if each.row is not None]
        scores = iter(seat.scorer.score(rows) if rows else ())
        now, features, version = self._clock.now(), self.model.features, seat.version
        found: Outcomes = {}
        for each in asked:
            score = next(scores) if each.error is None else each.error
            if isinstance(score, HeadraceError):
                found[each] = version, score
            else:
                found[each] = version, prediction(each, features, seat, score, now)
                self.latencies.append((now - each.record.arrived_at) / 1_000)
        return found

    def _gives_way(self, seat: Seat[Scorer], outcomes: Outcomes) -> bool:
        """Count what came of a version's rows; whether it fails too often and others answer in its place now."""
        made = [found for _, found in outcomes.values()]
        faults = sum(isinstance(each, HeadraceError) and each.code in FAULTS for each in made)
        if not self.lineups.count_outcomes(seat, sum(isinstance(each, Message) for each in made), faults):
            return False
        self.lineups.fall_back(seat.version, "Too many of its latest scores in the stream failed.")
        return all(each.version != seat.version for each in self.lineups.lineup.answering)

    def note(self, *, now: bool = False) -> None:
        """Note how far everything is safe, about once a second, or wait for that and do it now."""
        if now:
            self._settle(0)
        if self._safe != self._committed and (now or time.monotonic() - self._noted >= COMMIT):
            self._log.commit(self._group, self.topic, self._safe)
            self._faults.reach("scoring.position.after")
            self._committed, self._noted = self._safe, time.monotonic()
