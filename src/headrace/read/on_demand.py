"""On-demand features when they are asked for: request values read by their types, functions called in order.

A function takes what its own sources have, so that two views of one set may have features of one name. One that fails,
or gives what JSON has no form for, is an error of its key and of no other; what it raised is told to the log.
"""

from __future__ import annotations

import decimal
import logging
import math
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import msgspec

from headrace.clock import micros, show_time
from headrace.codec.json.read import decoder
from headrace.define.feature_set import FeatureSet
from headrace.define.on_demand import OnDemand
from headrace.errors import DataError, HeadraceError, did_you_mean, shown

DEEPEST = 20
"""How deep lists and dicts of an on-demand value may lie in each other."""

_logger = logging.getLogger(__name__)
_names = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Requests:
    """Reads the request values of a feature set; made once.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})
    >>> @hr.on_demand(users, request={"limit": int})
    ... def over(n, limit):
    ...     return n > limit
    >>> Requests(hr.feature_set("habits", [over])).read(b'{"limit": 3}')
    {'over': {'limit': 3}}
    """

    def __init__(self, feature_set: FeatureSet | None) -> None:
        made = () if feature_set is None else feature_set.on_demands
        self._decoders = {each.name: decoder(each.request) for each in made}
        self.known = tuple(dict.fromkeys(field.name for each in made for field in each.request))
        self.needed = tuple(dict.fromkeys(field.name for each in made for field in each.request if not field.optional))

    def read(self, body: bytes, others: Collection[str] = ()) -> dict[str, dict[str, Any]]:
        """The request values of each on-demand feature, from a JSON object; `others` may be there for other sets."""
        try:
            names = list(_names.decode(body))
        except (msgspec.DecodeError, RecursionError):
            message, hint = "Request values are an object by their names.", 'As in "request": {"amount": 12.5}.'
            raise DataError("bad-request", message, got=shown(body.decode("utf-8", "replace")), hint=hint) from None
        for name in names:
            if name not in self.known and name not in others:
                hint = did_you_mean(name, self.known) or "What is read takes no request values."
                raise DataError("bad-request", "There is no such request value.", got=shown(name), hint=hint)
        return {name: self._read_request(name, decode(body)) for name, decode in self._decoders.items()}

    def _read_request(self, feature: str, decoded: Any) -> dict[str, Any]:
        row, fault = decoded
        if row is None:
            hint = f"Send {', '.join(self.needed)} as the features need them." if self.needed else None
            message = f"On-demand feature {feature!r} cannot use the request values: {fault.reason}."
            raise DataError("bad-request", message, hint=hint)
        found: dict[str, Any] = row
        return found


def computed(
    feature_set: FeatureSet,
    stored: Mapping[str, Mapping[str, Any]],
    requests: Mapping[str, Mapping[str, Any]],
    t: int,
) -> dict[str, Any]:
    """Every on-demand feature of a set, those behind others included; `stored` has each view's values by its name."""
    return feature_set.computed(stored, lambda made, values: _called(made, requests[made.name], values, t))


def _called(made: OnDemand, request: Mapping[str, Any], values: Mapping[str, Any], t: int) -> Any:
    try:
        value = made.value(request, values, t)
    except Exception as error:
        _logger.error("on-demand feature %s failed: %s: %s", made.name, type(error).__name__, shown(str(error), 200))
        hint = "The server's log has what it raised."
        raise HeadraceError("on-demand-failed", f"On-demand feature {made.name!r} failed.", hint=hint) from error
    return value


def computed_json(name: str, value: Any, depth: int = 0) -> Any:
    """What an on-demand function gave as JSON writes it; what has no form there is refused.

    >>> computed_json("ratio", [1, 2.5, None])
    [1, 2.5, None]
    """
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        value = value.tolist()
    match value:
        case None | bool() | str():
            return value
        case int() if abs(value) < 2**64:
            return value
        case float() if math.isfinite(value):
            return value
        case decimal.Decimal() if value.is_finite():
            return value
        case datetime() if value.tzinfo is not None:
            return show_time(micros(value, "an on-demand value"))
        case list() | tuple() if depth < DEEPEST:
            return [computed_json(name, each, depth + 1) for each in value]
        case dict() if depth < DEEPEST and all(isinstance(key, str) for key in value):
            return {key: computed_json(name, each, depth + 1) for key, each in value.items()}
    _logger.error("on-demand feature %s gave %s", name, shown(value))
    message, hint = f"On-demand feature {name!r} gave what is no JSON value.", "NaN and infinity are none; give None."
    raise HeadraceError("on-demand-failed", message, hint=hint)
