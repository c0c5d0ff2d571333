"""A label: what turned out to be true of an event that a model has scored, told by events of a stream.

Labels come hours or days after the score, twice, corrected, or never. Which prediction a label is for is said by the
scored event's id, or by its key and time. What is made of them is `evaluate`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.clock import DAY, duration, show_duration
from headrace.define.model import Model, needed
from headrace.define.name import NamedValue, name_of, text_of, texts_of
from headrace.define.stream import Stream
from headrace.errors import DefinitionError, did_you_mean, shown, user_location
from headrace.expression import Expression, underlined
from headrace.public_calls import check_call
from headrace.types.field_types import Boolean, Decimal, Float, Integer, String, Timestamp, Type

BINARY, REGRESSION = "binary", "regression"
EVENT_ID = "event_id"
"""What a label names when it names the scored event itself."""
LONGEST_HORIZON = 3_650 * DAY


@dataclass(frozen=True, repr=False)
class Label(NamedValue):
    """What turned out to be true of scored events. Made by `hr.label`.

    Parameters
    ----------
    on
        Whose label it is: the scored event's id, or each column of its key; expressions over the label's stream.
    at
        With a key, the expression that gives the scored event's own time.
    value
        The truth: of type Boolean, or a number.
    horizon
        How long after the scored event a label may happen, in microseconds.
    default
        What is taken for true when the horizon has passed without a label; None leaves it out.
    segments
        Key columns, request values or features by which figures are told apart.
    window
        The length of the windows of event time that have figures of their own, in microseconds.
    """

    name: str
    stream: Stream
    model: Model
    on: tuple[tuple[str, Expression], ...]
    at: Expression | None
    value: Expression
    horizon: int
    default: bool | float | None
    segments: tuple[str, ...]
    window: int
    owner: str | None = None
    description: str | None = None
    location: str | None = field(default=None, compare=False, repr=False)

    @property
    def kind(self) -> str:
        """Whether it says yes or no (`binary`) or how much (`regression`)."""
        return BINARY if isinstance(self.value.type, Boolean) else REGRESSION


@check_call
def label(  # noqa: PLR0913
    name: str,
    stream: Stream,
    *,
    of: Model,
    on: str | Mapping[str, str],
    horizon: Any,
    at: str | None = None,
    value: str = "true",
    default: bool | float | None = None,
    segments: Sequence[str] = (),
    window: Any = "1h",
    owner: str | None = None,
    description: str | None = None,
) -> Label:
    """Declare where the truth about a model's predictions comes from.

    Parameters
    ----------
    name
        By which its figures are asked for.
    stream
        The stream of labels, perhaps with `where`.
    of
        The model, which scores a stream.
    on
        An SQL expression over the label's fields that gives the id of the scored event; or, with `at`, one for each
        column of the model's key.
    horizon
        How long after the scored event a label may happen. What comes after that is counted and changes nothing.
    at
        With a key: the expression that gives the time at which the scored event happened.
    value
        The truth, yes or no or a number; without it, that there is a label at all.
    default
        What is taken for true once the horizon has passed without a label. Without one, nothing is.
    segments
        Key columns, request values or features by which figures are told apart.
    window
        How long the windows are that have figures of their own.
    owner, description
        For people who search.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})
    >>> buys = hr.model("buys", hr.feature_set("habits", [users]), stream=clicks)
    >>> orders = hr.stream("orders", fields={"click": str, "at": hr.Timestamp}, event_time="at")
    >>> hr.label("ordered", orders, of=buys, on="click", horizon="7d", default=False).kind
    'binary'
    """
    name_of(name, "a label")
    model, told = _scoring(name, of), _stream(name, stream)
    truth = told.expression(_written(value, name, "value"))
    if not isinstance(truth.type, Boolean | Integer | Float | Decimal):
        message, hint = f"Label {name!r} is neither yes or no nor a number.", "Compare it with something, or cast it."
        raise DefinitionError(
            "wrong-type", message, got=f"{truth.text}: {truth.type}", hint=hint, excerpt=underlined(value)
        )
    whose, moment = _whose(name, told, model, on, at)
    reach = duration(horizon, f"the horizon of label {name!r}")
    if reach > LONGEST_HORIZON:
        message = f"The horizon of label {name!r} is longer than ten years."
        raise DefinitionError("bad-argument", message, got=show_duration(reach))
    return Label(
        name=name,
        stream=told,
        model=model,
        on=whose,
        at=moment,
        value=truth,
        horizon=reach,
        default=_default(name, truth.type, default),
        segments=_segments(name, model, segments),
        window=_window(name, window),
        owner=text_of(owner, "An owner"),
        description=text_of(description, "A description"),
        location=user_location(),
    )


def _scoring(name: str, model: Any) -> Model:
    if not isinstance(model, Model):
        raise DefinitionError("bad-argument", f"Label {name!r} is of a model.", got=shown(model))
    if model.stream is None:
        message = f"Label {name!r} is of model {model.name!r}, which scores no stream: it has no predictions to label."
        raise DefinitionError("bad-argument", message, hint="Name its stream in hr.model(...).")
    return model


def _stream(name: str, stream: Any) -> Stream:
    if not isinstance(stream, Stream):
        raise DefinitionError("bad-argument", f"Label {name!r} comes from a stream.", got=shown(stream))
    return stream


def _written(text: Any, name: str, what: str) -> str:
    if isinstance(text, str):
        return text
    hint = 'An SQL expression over its fields, as in "amount > 0".'
    raise DefinitionError("bad-argument", f"The {what} of label {name!r} must be text.", got=shown(text), hint=hint)


def _whose(
    name: str, stream: Stream, model: Model, on: Any, at: str | None
) -> tuple[tuple[tuple[str, Expression], ...], Expression | None]:
    """The scored event, by its id or by its key and time."""
    if at is None:
        hint = 'For a key, say the time as well: on={"card": "card"}, at="paid_at".'
        if not isinstance(on, str):
            message = f"Label {name!r} must say the id of the scored event."
            raise DefinitionError("bad-argument", message, got=shown(on), hint=hint)
        return ((EVENT_ID, _of_type(name, stream, on, String(), "an event's id")),), None
    wanted = {column: kind for part in model.features.keyed for column, kind in part.key_types}
    if not isinstance(on, Mapping) or set(on) != set(wanted):
        message = f"Label {name!r} must name every column of the key of model {model.name!r}."
        raise DefinitionError("bad-argument", message, got=shown(on), hint=f"They are {', '.join(sorted(wanted))}.")
    for column, kind in wanted.items():
        if not isinstance(kind, String | Integer | Boolean):
            message, hint = f"Column {column!r} of the key is {kind}, which labels cannot name.", "Name the event's id."
            raise DefinitionError("wrong-type", message, hint=hint)
    columns = tuple((column, _of_type(name, stream, on[column], kind, column)) for column, kind in wanted.items())
    return columns, _of_type(name, stream, at, Timestamp(), "the time of the scored event")


def _of_type(name: str, stream: Stream, text: Any, wanted: Type, what: str) -> Expression:
    made = stream.expression(_written(text, name, "reference"))
    if type(made.type) is not type(wanted):
        message = f"Label {name!r} gives {what} as {made.type}, and it is {wanted}."
        raise DefinitionError("wrong-type", message, got=made.text, excerpt=underlined(text))
    return made


def _default(name: str, kind: Type, default: Any) -> bool | float | None:
    if default is None:
        return None
    wanted = bool if isinstance(kind, Boolean) else (int, float)
    if isinstance(default, wanted) and isinstance(default, bool) == isinstance(kind, Boolean):
        return default if isinstance(default, bool) else float(default)
    message = f"The default of label {name!r} is no {kind}."
    raise DefinitionError("wrong-type", message, got=shown(default))


def _segments(name: str, model: Model, given: Any) -> tuple[str, ...]:
    known = {*needed(model.features), *(column for column, _ in model.columns)}
    for each in texts_of(given, "Segments"):
        if each not in known:
            message = f"Model {model.name!r} has no key column, request value or feature by which label {name!r} asks."
            raise DefinitionError("unknown-field", message, got=shown(each), hint=did_you_mean(each, known))
    return tuple(given)


def _window(name: str, window: Any) -> int:
    length = duration(window, f"the window of label {name!r}")
    if DAY % length and length % DAY:
        message, hint = f"The windows of label {name!r} do not fit into days.", "Say 5m, 1h, 6h, 1d or 7d."
        raise DefinitionError("bad-argument", message, got=show_duration(length), hint=hint)
    return length
