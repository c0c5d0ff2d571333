"""Reading for HTTP: a view or a feature set of one key at one moment, as JSON; refused when it is too old.

The one place between the handlers and the store: it times and samples every read, and sees to it that an answer made
while the clock was set back says so. What a value is, is `reading`'s business; on-demand features are `on_demand`'s.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headrace.clock import show_duration, show_time
from headrace.define.dimension import Dimension, Keyed
from headrace.define.feature_set import FeatureSet
from headrace.define.view import View
from headrace.errors import DataError, MachineError
from headrace.read.answer_json import answer_json
from headrace.read.catalog import Readable, find, readables
from headrace.read.feature_row import RequestValues, model_row, row_json
from headrace.read.on_demand import Requests
from headrace.read.reader import REQUEST, Reader, ViewValues, oldest_of
from headrace.serve.dimensions import TABLE, Dimensions
from headrace.serve.metrics import Metrics
from headrace.serve.monotonic_clock import MonotonicClock
from headrace.serve.served_samples import Samples
from headrace.serve.status_view import StatusView
from headrace.tiles.changelog import Key, KeyPart

FLAG, REFUSE = "flag", "refuse"
MODES = ("lake", "micro-batch", "real-time", TABLE)
"""From the slowest to the quickest."""


class Reads:
    """Answers by name and key."""

    def __init__(
        self,
        reader: Reader,
        clock: MonotonicClock,
        watch: StatusView,
        samples: Samples,
        metrics: Metrics,
        dimensions: Dimensions,
    ) -> None:
        self._reader, self.clock, self._watch, self._samples = reader, clock, watch, samples
        self._metrics, self._dimensions = metrics, dimensions
        self._known = readables(reader.plan)
        self._requests = {name: Requests(each.feature_set) for name, each in self._known.items()}
        self._tiles = reader.plan.view_tiles

    def find(self, name: str) -> Readable:
        """What a name stands for; an unknown one is refused with `not-found`."""
        return find(self._known, name)

    def requests(self, of: Readable) -> Requests:
        """What reads the request values of something."""
        return self._requests[of.name]

    def answer(self, of: Readable, key: Mapping[str, KeyPart], requests: RequestValues, t: int, stale: str) -> Any:
        """All features of a key as JSON; what is too old is refused when `stale` says so."""
        return values_json(of, key, self.read(of, [key], t)[0], requests, t, stale)

    def read(self, of: Readable, keys: Sequence[Mapping[str, KeyPart]], t: int) -> list[dict[str, ViewValues]]:
        """What every view and dimension behind a name has of each key; the keys of each come from one state of it."""
        views = {
            view.name: self._read(view, [tuple(key[name] for name in view.by) for key in keys], t) for view in of.views
        }
        return [{view: answers[place] for view, answers in views.items()} for place in range(len(keys))]

    def _read(self, view: Keyed, keys: Sequence[Key], t: int) -> list[ViewValues]:
        """Reads of some keys, timed and counted."""
        started = time.perf_counter()
        if isinstance(view, Dimension):
            answers = self._as_of_the_clock(self._dimensions.read(view, keys, t))
        else:
            answers = self._sampled(view, keys, t)
        self._watch.reads.append((time.perf_counter() - started) * 1e6 / len(keys))
        self._watch.answered["features"] += len(keys)
        for answer in answers:
            self._metrics.read(view.name, stale=answer.stale, missing=answer.missing)
        return answers

    def _sampled(self, view: View, keys: Sequence[Key], t: int) -> list[ViewValues]:
        """Reads of a view, perhaps kept with what was known before them."""
        sampled = [self._samples.wanted() for _ in keys]
        # Asked for before the read: what is included up to there is in the values, whatever comes in between.
        said = self._reader.progress(self._tiles[view.name]) if any(sampled) else None
        answers = self._as_of_the_clock(self._reader.read_many(view.name, keys, t))
        for answer, kept in zip(answers, sampled, strict=True):
            if kept:
                self._samples.offer(view, answer, said)
        return answers

    def _as_of_the_clock(self, answers: list[ViewValues]) -> list[ViewValues]:
        """Answers that say so when they were made while the clock was set back."""
        if not self.clock.back:
            return answers
        return [msgspec.structs.replace(answer, stale=True) for answer in answers]


def values_json(
    of: Readable,
    key: Mapping[str, KeyPart],
    answers: Mapping[str, ViewValues],
    requests: RequestValues,
    t: int,
    stale: str,
) -> dict[str, Any]:
    """What was read for a moment as JSON; what is too old is refused when `stale` says so."""
    refuse_stale(of, answers, stale)
    if of.feature_set is None:
        return answer_json(of.views[0], answers[of.name])
    return set_json(of.feature_set, key, answers, requests, t)


def refuse_stale(of: Readable, answers: Mapping[str, ViewValues], stale: str) -> None:
    """Refuse what is too old, when `stale` says so."""
    if stale == REFUSE:
        for view in of.views:
            _refuse_stale(view, answers[view.name])


def _refuse_stale(view: Keyed, answer: ViewValues) -> None:
    if not answer.stale:
        return
    hint = "Ask again later, or with stale=flag to have them all the same."
    if isinstance(view, Dimension):
        message = f"The table of dimension {view.name!r} can no longer be read, and what there is of it may be old."
        raise MachineError("too-stale", message, hint=hint)
    allowed = "" if view.max_staleness is None else f", and at most {show_duration(view.max_staleness)} is allowed"
    age = "of unknown age" if answer.freshness_ms is None else f"{answer.freshness_ms / 1_000:.1f} s old"
    raise MachineError("too-stale", f"The values of view {view.name!r} are {age}{allowed}.", hint=hint)


def set_json(
    of: FeatureSet, key: Mapping[str, KeyPart], answers: Mapping[str, ViewValues], requests: RequestValues, t: int
) -> dict[str, Any]:
    """What is said of a feature set: as old as the oldest of its parts, and each part's own freshness."""
    return {
        "view": of.name,
        "key": dict(key),
        "features": row_json(of, model_row(of, answers, requests, t)),
        "at": show_time(t),
        **set_freshness(answers, t),
        "views": {name: _freshness(answer) for name, answer in answers.items()},
    }


def set_freshness(answers: Mapping[str, ViewValues], t: int) -> dict[str, Any]:
    """How fresh several answers are together: as old as the oldest, missing when all are, stale when any is.

    A set of request values alone reads nothing: it has no age, and can be neither missing nor stale.
    """
    ages = [answer.as_of for answer in answers.values()]
    oldest, late = oldest_of(ages), oldest_of([answer.late_as_of for answer in answers.values()])
    return {
        "as_of": None if oldest is None else show_time(oldest),
        "late_as_of": None if late is None else show_time(late),
        "freshness_ms": None if oldest is None else (t - oldest) / 1_000,
        "missing": bool(answers) and all(answer.missing for answer in answers.values()),
        "stale": any(answer.stale for answer in answers.values()),
        "mode": min((answer.mode for answer in answers.values()), key=MODES.index, default=REQUEST),
    }


def _freshness(answer: ViewValues) -> dict[str, Any]:
    return {
        "as_of": None if answer.as_of is None else show_time(answer.as_of),
        "late_as_of": None if answer.late_as_of is None else show_time(answer.late_as_of),
        "freshness_ms": answer.freshness_ms,
        "missing": answer.missing,
        "stale": answer.stale,
        "mode": answer.mode,
    }


def staleness(asked: str | None, usual: str) -> str:
    """Whether stale values are flagged or refused: what the request says, else the setting.

    >>> staleness(None, "flag"), staleness("refuse", "flag")
    ('flag', 'refuse')
    """
    if asked is None:
        return usual
    if asked not in (FLAG, REFUSE):
        hint = "Leave it out for what the settings say."
        raise DataError("bad-request", "`stale` is flag or refuse.", got=repr(asked)[:80], hint=hint)
    return asked
