"""Whether served values are what the reference says.

Equal means: exactly for counts, whole numbers, decimals, texts, least, greatest, first and last; within the rounding of
a sum made in another order for floats; within their declared error for sketches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.define.view import Feature, View
from headrace.meaning.event import Event
from headrace.meaning.exact import Key, Mode, Moment, is_known
from headrace.meaning.reference import ReferenceResult


def differences(
    outcome: ReferenceResult, view: View, key: Key, moment: Moment, found: Mapping[str, Any], mode: Mode = "as_known"
) -> list[str]:
    """The features whose value is not what the reference says, each with both values."""
    expected = outcome.values(view, key, moment, mode)
    events = [event for event in outcome.events(view, key) if is_known(event, moment, mode)]
    return [
        f"{view.name}.{feature.name} of {key}: {found[feature.name]!r}, but it is {expected[feature.name]!r}"
        for feature in view.features
        if not close(feature, found[feature.name], expected[feature.name], events, moment[0])
    ]


def close(feature: Feature, found: Any, expected: Any, events: list[Event], t: int) -> bool:
    """Whether two values of a feature over these events are equal."""
    if len(feature.terms) == 2:
        return bool(found == expected)
    term = feature.terms[0]
    eat, (low, high) = term.value.python(), term.window.span(t)
    eaten = [(e.event_time, e.event_id, eat(e.row)) for e in events if low <= e.event_time < high]
    return term.aggregate.close(found, expected, [one for one in eaten if one[2] is not None])
