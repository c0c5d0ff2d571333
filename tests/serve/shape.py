"""States as Spark's `to_json` writes them, without Spark: what the tests feed to the reading side."""

from __future__ import annotations

import base64
import decimal
import math
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from headrace.aggregate import Decayed, Earliest, EventList, LatestN, Least, Moments, Monoid, TimeSpan, Total
from headrace.aggregate.scalar import WIDE, scaled
from headrace.meaning.exact import Moment
from headrace.meaning.reference import ReferenceResult
from headrace.plan.model import TileSet
from headrace.tiles import partials
from headrace.tiles.changelog import TileRow
from headrace.types.field_types import Decimal, Integer

_encode = msgspec.json.Encoder(decimal_format="number").encode


def to_json(columns: Iterable[tuple[str, Monoid, Any]]) -> bytes:
    """A tile's partial columns; null members are left out, as Spark leaves them out."""
    written = {name: cell(monoid, state) for name, monoid, state in columns}
    return _encode({name: value for name, value in written.items() if value is not None})


def cell(monoid: Monoid, state: Any) -> Any:
    """One state in the shape of its monoid's `ddl`."""
    if isinstance(state, bytes):
        return base64.b64encode(state).decode()
    match monoid:
        case Total(Integer()):
            return {"hi": state >> 32, "lo": state & (2**32 - 1)}
        case Total(Decimal(precision, scale)) if precision > 28:
            hi, lo = divmod(abs(state), 10**27)
            sign = -1 if state < 0 else 1
            return {"hi": decimal.Decimal(sign * hi), "lo": scaled(sign * lo, scale)}
        case Total(Decimal(_, scale)):
            return scaled(state, scale)
        case Moments():
            return _struct(("n", "mean", "m2"), state if state[0] else (0, None, None))
        case TimeSpan():
            return _struct(("n", "min", "max"), state)
        case Decayed():
            return None if state is None else _struct(("ref", "total"), state)
        case Earliest():
            return None if state is None else _struct(("time", "id", "value"), state)
        case LatestN() | EventList():
            return [_struct(("time", "id", "value"), each) for each in state]
        case Least():
            return _scalar(state)
    return _scalar(state)


def _struct(names: tuple[str, ...], values: Iterable[Any]) -> dict[str, Any]:
    return {name: _scalar(value) for name, value in zip(names, values, strict=True) if value is not None}


def _scalar(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return WIDE.create_decimal(value) if isinstance(value, decimal.Decimal) else value


def decoder(columns: Iterable[tuple[str, Monoid]]) -> Callable[[bytes], dict[str, Any]]:
    """A function from a tile's JSON to the states of some of its columns by name; an absent one is empty."""
    listed = list(columns)
    read = partials.decoder(listed)

    def states(written: bytes) -> dict[str, Any]:
        return {name: monoid.fold([state]) for (name, monoid), state in zip(listed, read(written), strict=True)}

    return states


def rows_of(outcome: ReferenceResult, tile_set: TileSet, before: Moment, run: str = "1") -> list[TileRow]:
    """The changelog rows of all that was known before a moment."""
    made = []
    for (key, start, lane), states in outcome.tiles(tile_set, before).items():
        columns = [(partial.name, partial.monoid, states[partial.name]) for partial in tile_set.partials]
        version = max(state[0] for name, _, state in columns if name.startswith("span_"))
        made.append(TileRow(tile_set.fingerprint, run, key, start, lane, version, to_json(columns)))
    return made
