"""What somebody was given: the values of a view for a key at a moment, and what was said of how they came about."""

from __future__ import annotations

import decimal
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.clock import micros
from headrace.define.view import View
from headrace.log.record import Record
from headrace.meaning.exact import Key, Moment
from headrace.types.field_types import Decimal, List, Struct, Timestamp, Type

READ = "read"


@dataclass(frozen=True)
class Sample:
    """Values of one view.

    Parameters
    ----------
    source
        `read`, or the model and the version that were given them: `risk@3`.
    place
        Where the record of it stands: topic, partition and offset.
    moment
        What counts is what stands before it: (t,) of a read; the place after the event of a prediction, so that the
        event itself counts.
    values
        By feature; moments in microseconds.
    positions
        Up to where all of the stream was in the tiles, as the answer said; None when it did not know.
    version
        The fingerprint of the view's features; None when it was not said.
    told_at
        When the log took the record of it.
    """

    source: str
    place: tuple[str, int, int]
    view: View
    key: Key
    moment: Moment
    values: Mapping[str, Any]
    positions: Mapping[int, int] | None
    as_of: int | None
    version: str | None
    told_at: int

    @property
    def t(self) -> int:
        """When it was asked for."""
        return self.moment[0]

    @property
    def own(self) -> Moment | None:
        """The place of the event that a prediction is of, which always counts; None of a read."""
        return (*self.moment[:2], self.moment[2] - 1) if len(self.moment) > 1 else None


def read_sample(view: View, record: Record) -> Sample:
    """A read of a view, from the record that `serve.served_samples` wrote."""
    told = json.loads(record.value or b"{}", parse_float=decimal.Decimal)
    return Sample(
        source=READ,
        place=place_of(record),
        view=view,
        key=key_of(view, told["key"]),
        moment=(micros(told["at"]),),
        values={feature.name: value(feature.type, told["features"].get(feature.name)) for feature in view.features},
        positions=positions_of(told["positions"]),
        as_of=moment_of(told["as_of"]),
        version=told["version"],
        told_at=record.arrived_at,
    )


def place_of(record: Record) -> tuple[str, int, int]:
    """Where a record stands."""
    return record.topic, record.partition, record.offset


def key_of(view: View, told: Mapping[str, Any]) -> Key:
    """The key of a view among columns."""
    return tuple(value(kind, told[name]) for name, kind in view.key_types)


def positions_of(told: Mapping[str, int] | None) -> dict[int, int] | None:
    """Offsets by partition."""
    return None if told is None else {int(partition): offset for partition, offset in told.items()}


def moment_of(told: str | None) -> int | None:
    """A moment, or that there is none."""
    return None if told is None else micros(told)


def value(kind: Type | None, told: Any) -> Any:
    """A value as it is inside Headrace, from what JSON has, its floats as decimals; of an unknown type, as JSON has it.

    >>> from headrace.types.field_types import Float, Timestamp
    >>> value(Float(), decimal.Decimal("1.5")), value(Timestamp(), "1970-01-01T00:00:01Z")
    (1.5, 1000000)
    """
    match kind, told:
        case _, None:
            return None
        case Timestamp(), str():
            return micros(told)
        case Decimal(), _:
            return decimal.Decimal(told)
        case List(element), _:
            return [value(element, each) for each in told]
        case Struct(fields), _:
            return {field.name: value(field.type, told[field.name]) for field in fields}
        case _, decimal.Decimal():
            return float(told)
        case None, list():
            return [value(None, each) for each in told]
        case None, dict():
            return {name: value(None, each) for name, each in told.items()}
    return told
