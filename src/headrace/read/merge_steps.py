"""The order in which the rows of bands are merged into the states of windows, so that each is merged as few times as
possible, and how the states become values.

Windows of a view mostly lie in one another: the last hour holds the last ten minutes. So the state of a window is that
of the largest one inside it with the bands beside that one; a band that several windows need otherwise is merged once
before. It is worked out from which band lies in which windows (`bands`), without a row in sight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from headrace.aggregate import State
from headrace.define.window import Window
from headrace.plan.model import Partial, PlannedFeature

Wanted = tuple[Window, str]
"""A column over a window."""
Finish = Callable[[Sequence[State], int], Any]
"""A function from the states of all steps and a moment to the value of a feature."""


class MergeStep(NamedTuple):
    """The states of some columns over some bands.

    Parameters
    ----------
    folds
        Merge the states of each column.
    before
        Where the states are that it holds, of the same columns.
    rows
        Bands whose rows it holds, each with the places of the columns in them.
    """

    folds: tuple[Callable[[Iterable[State]], State], ...]
    before: tuple[int, ...]
    rows: tuple[tuple[int, tuple[int, ...]], ...]


def steps(
    features: Sequence[PlannedFeature], bands: Sequence[Sequence[Window]], names: Sequence[Sequence[str]]
) -> tuple[list[MergeStep], dict[Wanted, int]]:
    """The steps for all columns of some features, and where among the states of all each column of a window is.

    Parameters
    ----------
    bands
        Of each band, the windows that it lies in.
    names
        Of each band, the columns that are read.
    """
    columns: dict[str, Partial] = {}
    windows: dict[str, dict[Window, None]] = {}
    for planned in features:
        for term in planned.terms:
            for column in term.columns:
                columns[column.name] = column
                windows.setdefault(column.name, {})[term.term.window] = None
    # Columns over the same windows are merged side by side.
    alike: dict[frozenset[Window], list[Partial]] = {}
    for name, asked in windows.items():
        alike.setdefault(frozenset(asked), []).append(columns[name])
    made: list[MergeStep] = []
    places: dict[Wanted, int] = {}
    at = 0
    for group in alike.values():
        inside = {
            window: frozenset(number for number, within in enumerate(bands) if window in within)
            for window in windows[group[0].name]
        }
        for window, step in _together(group, inside, names, at):
            made.append(step)
            if window is not None:
                places |= {(window, column.name): at + number for number, column in enumerate(group)}
            at += len(group)
    return made, places


def _together(
    group: Sequence[Partial], inside: Mapping[Window, frozenset[int]], names: Sequence[Sequence[str]], first: int
) -> Iterator[tuple[Window | None, MergeStep]]:
    """The steps of some columns, whose states are from `first` on; each with its window, if it is one's.

    Parameters
    ----------
    inside
        The bands of each window.
    """
    chosen: list[tuple[Window, Window | None, list[int]]] = []
    for window in sorted(inside, key=lambda each: len(inside[each])):
        within = [other for other, _, _ in chosen if inside[other] <= inside[window]]
        largest = within[-1] if within else None
        beside = inside[window] - (inside[largest] if largest is not None else frozenset())
        chosen.append((window, largest, sorted(beside)))
    uses = Counter(band for _, _, rest in chosen for band in rest)
    shared = sorted(band for band in uses if uses[band] > 1)
    places = {band: first + number * len(group) for number, band in enumerate(shared)}
    after = first + len(shared) * len(group)
    starts = {window: after + number * len(group) for number, (window, _, _) in enumerate(chosen)}
    folds = tuple(column.monoid.fold for column in group)

    def rows(taken: Iterable[int]) -> tuple[tuple[int, tuple[int, ...]], ...]:
        return tuple((band, tuple(names[band].index(column.name) for column in group)) for band in taken)

    for band in shared:
        yield None, MergeStep(folds, (), rows([band]))
    for window, largest, rest in chosen:
        before = [] if largest is None else [starts[largest]]
        before += [places[band] for band in rest if band in places]
        yield window, MergeStep(folds, tuple(before), rows(band for band in rest if band not in places))


def run(made: Sequence[MergeStep], bands: Sequence[Sequence[Sequence[State]]]) -> list[State]:
    """The states of all steps.

    Parameters
    ----------
    bands
        Of each band and each of its columns, the states of its rows; nothing for a band without rows.
    """
    found: list[State] = []
    for folds, before, rows in made:
        held = [(bands[band], places) for band, places in rows if bands[band]]
        if len(before) == 1 and len(held) < 2:
            # Mostly a window goes on where the one inside it ended.
            inner = found[before[0] : before[0] + len(folds)]
            for columns, places in held:
                triples = zip(folds, inner, places, strict=True)
                inner = [fold((state, *columns[place])) for fold, state, place in triples]
            found += inner
            continue
        for number, fold in enumerate(folds):
            states = [found[at + number] for at in before]
            for columns, places in held:
                states += columns[places[number]]
            found.append(fold(states))
    return found


def finishes(features: Iterable[PlannedFeature], places: Mapping[Wanted, int]) -> list[tuple[str, Finish | None]]:
    """How the value of each feature comes from the states of steps; None where it does not."""
    return [(planned.feature.name, _finish(planned, places)) for planned in features]


def _finish(planned: PlannedFeature, places: Mapping[Wanted, int]) -> Finish | None:
    terms = []
    for term in planned.terms:
        wanted = [(term.term.window, column.name) for column in term.columns]
        if not places.keys() >= set(wanted):
            return None
        terms.append((term.term.aggregate.finish, [places[each] for each in wanted]))
    combine, (finish, slots) = planned.feature.combine, terms[0]
    if len(terms) > 1:
        return lambda states, t: combine([each([states[slot] for slot in at], t) for each, at in terms])
    if len(slots) > 1:
        return lambda states, t: finish([states[slot] for slot in slots], t)
    slot = slots[0]
    return lambda states, t: finish((states[slot],), t)
