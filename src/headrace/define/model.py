"""A model: which features it takes, and whose events it scores as they come.

What a model has learnt is not said here: its versions are files beside the project (`score`), each with a manifest that
is held against this definition. Here is only what stays the same from version to version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.clock import DAY
from headrace.define.feature_set import FeatureSet
from headrace.define.name import NamedValue, name_of, text_of, texts_of
from headrace.define.stream import Arrival, Stream
from headrace.define.view import View
from headrace.errors import DefinitionError, did_you_mean, shown, user_location
from headrace.expression import Expression, underlined
from headrace.public_calls import check_call
from headrace.types.field_types import Float, Integer, Timestamp, Type, schema_of

PREDICTIONS = "predictions."
"""What the topic of a model's predictions begins with."""
EVER = 36_500 * DAY
"""A prediction counts however long it took to be made."""


@dataclass(frozen=True, repr=False)
class Model(NamedValue):
    """A model over a feature set. Made by `hr.model`."""

    name: str
    features: FeatureSet
    stream: Stream | None = None
    inputs: tuple[tuple[str, Expression], ...] = ()
    owner: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    location: str | None = field(default=None, compare=False, repr=False)

    @property
    def columns(self) -> tuple[tuple[str, Type], ...]:
        """What the model takes, in order: the names and types of the feature set's values."""
        return self.features.types

    @property
    def predictions(self) -> Stream:
        """The stream of its predictions, whose events are in the lake once each, like any other's.

        >>> import headrace as hr
        >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
        >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})
        >>> hr.model("churn", hr.feature_set("habits", [users]), stream=clicks).predictions.name
        'predictions.churn'
        """
        return predictions_of(self.name)


def predictions_of(model: str) -> Stream:
    """The stream of a model's predictions."""
    return Stream(
        name=f"{PREDICTIONS}{model}",
        schema=_PREDICTION,
        event_time="at",
        event_id="id",
        key=None,
        arrival=Arrival("log"),
        allowed_lateness=EVER,
        max_clock_skew=DAY,
        late="update",
        description=f"Predictions of model {model!r}.",
    )


@check_call
def model(
    name: str,
    features: FeatureSet,
    *,
    stream: Stream | None = None,
    inputs: Mapping[str, str] | None = None,
    owner: str | None = None,
    description: str | None = None,
    tags: Sequence[str] = (),
) -> Model:
    """Declare a model over a feature set.

    Parameters
    ----------
    name
        By which it is scored, and its versions are kept.
    features
        What it takes, in this order.
    stream
        The stream whose events are scored as they come, perhaps with `where`; without one it is scored on request only.
        An event counts itself in its features, as with `include_event` in a training set.
    inputs
        Names of key columns and request values to SQL expressions over the stream's fields. What is left out is the key
        of a view over that stream, or the field of that name.
    owner, description, tags
        For people who search.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})
    >>> hr.model("churn", hr.feature_set("habits", [users]), stream=clicks).columns
    (('n', Integer()),)
    """
    name_of(name, "a model")
    given: Any = features
    if not isinstance(given, FeatureSet):
        message, hint = f"Model {name!r} takes a feature set.", "Make one with hr.feature_set(...)."
        raise DefinitionError("bad-argument", message, got=shown(given), hint=hint)
    scored: Any = stream
    if not isinstance(scored, Stream | None):
        raise DefinitionError("bad-argument", f"Model {name!r} scores a stream.", got=shown(scored))
    if inputs and scored is None:
        message, hint = f"Model {name!r} has inputs and no stream to take them from.", "Name the stream."
        raise DefinitionError("bad-argument", message, got=shown(sorted(inputs)), hint=hint)
    return Model(
        name=name,
        features=features,
        stream=stream,
        inputs=() if stream is None else _inputs(name, features, stream, inputs or {}),
        owner=text_of(owner, "An owner"),
        description=text_of(description, "A description"),
        tags=texts_of(tags, "Tags"),
        location=user_location(),
    )


def _inputs(
    name: str, features: FeatureSet, stream: Stream, written: Mapping[str, str]
) -> tuple[tuple[str, Expression], ...]:
    """For every key column and request value, where it comes from in an event."""
    wanted = needed(features)
    for given in written:
        if given not in wanted:
            message = f"Model {name!r} has no such key column or request value."
            raise DefinitionError("unknown-field", message, got=shown(given), hint=did_you_mean(given, wanted))
    found = []
    for each, (kind, nullable) in wanted.items():
        made = stream.expression(written[each]) if each in written else _usual(name, features, stream, each)
        if not _fits(made.type, kind):
            message = f"Model {name!r} needs {each!r} as {kind}, and the stream has it as {made.type}."
            hint, marked = f'Say how with inputs={{"{each}": "..."}}.', underlined(written.get(each, made.text))
            raise DefinitionError("wrong-type", message, got=made.text, hint=hint, excerpt=marked)
        if made.nullable and not nullable:
            message = f"Model {name!r} needs {each!r}, which may be null in stream {stream.name!r}."
            hint = f'Score only events that have it, or say inputs={{"{each}": "coalesce({each}, ...)"}}.'
            raise DefinitionError("missing-key", message, got=made.text, hint=hint)
        found.append((each, made))
    return tuple(found)


def needed(features: FeatureSet) -> dict[str, tuple[Type, bool]]:
    """The key columns and request values behind a feature set, with their types and whether they may be null."""
    found: dict[str, tuple[Type, bool]] = {}
    for part in features.keyed:
        found |= {name: (kind, False) for name, kind in part.key_types}
    for made in features.on_demands:
        found |= {each.name: (each.type, each.optional) for each in made.request if each.name not in found}
    return found


def _usual(name: str, features: FeatureSet, stream: Stream, wanted: str) -> Expression:
    """The key of a view over the stream, or the field of that name."""
    views = [each for each in features.keyed if isinstance(each, View) and each.stream.base == stream.base]
    keys = {made.text: made for view in views for column, made in view.key if column == wanted}
    if len(keys) > 1:
        message = f"Views of model {name!r} mean different things by {wanted!r}."
        hint = f'Say which with inputs={{"{wanted}": "..."}}.'
        raise DefinitionError("duplicate-name", message, got=shown(sorted(keys)), hint=hint)
    if keys:
        return next(iter(keys.values()))
    try:
        return stream.column(wanted)
    except DefinitionError as error:
        message = f"Model {name!r} needs {wanted!r}, which stream {stream.name!r} has not."
        hint = f'Say where it comes from with inputs={{"{wanted}": "..."}}.'
        raise DefinitionError("unknown-field", message, got=shown(wanted), hint=error.hint or hint) from None


def _fits(found: Type, wanted: Type) -> bool:
    return found == wanted or (isinstance(found, Integer) and isinstance(wanted, Float))


_PREDICTION = schema_of(
    {
        "id": str,
        "event_id": str,
        "version": int,
        "role": str,
        "key": str,
        "at": Timestamp,
        "event_time": Timestamp,
        "partition": int,
        "offset": int,
        "score": float,
        "decision": bool | None,
        "features": str,
        "request": str,
        "positions": str,
        "as_of": Timestamp | None,
        "freshness_ms": float | None,
        "folded": int,
        "stale": bool,
        "scored_at": Timestamp,
        "latency_ms": float,
    },
    "a prediction",
)
"""Key, features, request values and positions are JSON: what a feature set holds may change from version to version."""
