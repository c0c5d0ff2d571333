"""On-demand features: pure Python over request values, stored features and the time t.

The same function runs when a request is served, when a training set is made and when a score is audited.
"""

from __future__ import annotations

import hashlib
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

from headrace.define.dimension import Dimension, Keyed
from headrace.define.name import NamedValue, name_of, text_of, texts_of
from headrace.define.view import View
from headrace.errors import DataError, DefinitionError, did_you_mean, shown, user_location
from headrace.public_calls import check_call
from headrace.types.field_types import Schema, Struct, schema_of

TIME = "t"
KINDS = (bool, int, float, str)
"""What a function may return."""


@dataclass(frozen=True, repr=False)
class OnDemand(NamedValue):
    """A function of request values, features and t. Made by `@hr.on_demand`; calling it calls the function."""

    name: str
    function: Callable[..., Any] = field(repr=False)
    sources: tuple[View | Dimension | OnDemand, ...]
    request: Schema
    parameters: tuple[str, ...]
    owner: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    location: str | None = field(default=None, compare=False, repr=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def keyed(self) -> tuple[Keyed, ...]:
        """Every view and dimension whose features the function needs, directly or through another function."""
        found: dict[str, Keyed] = {}
        for source in self.sources:
            for each in source.keyed if isinstance(source, OnDemand) else (source,):
                found.setdefault(each.name, each)
        return tuple(found.values())

    @property
    def views(self) -> tuple[View, ...]:
        """The views among them."""
        return tuple(each for each in self.keyed if isinstance(each, View))

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions among them."""
        return tuple(each for each in self.keyed if isinstance(each, Dimension))

    @property
    def fingerprint(self) -> str:
        """A digest of the function's text, so that a changed function is a changed feature."""
        try:
            text = inspect.getsource(self.function)
        except (OSError, TypeError):
            text = self.function.__code__.co_code.hex() + repr(self.function.__code__.co_consts)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def value(self, request: Mapping[str, Any], values: Mapping[str, Any], t: int) -> Any:
        """The feature's value; `values` holds stored and earlier on-demand features by name."""
        given = {**values, **self._request(request), TIME: t}
        return self.function(**{name: given[name] for name in self.parameters})

    def _request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        missing = [f.name for f in self.request if f.name not in request and not f.optional]
        if missing:
            hint = f"Send {', '.join(map(repr, missing))} with the request."
            message = f"On-demand feature {self.name!r} needs request values that were not sent."
            raise DataError("bad-request", message, got=shown(sorted(request)), hint=hint)
        return {f.name: request.get(f.name) for f in self.request}


@check_call
def on_demand(
    *sources: View | Dimension | OnDemand,
    request: Mapping[str, Any] | None = None,
    owner: str | None = None,
    description: str | None = None,
    tags: tuple[str, ...] | list[str] = (),
) -> Callable[[Callable[..., Any]], OnDemand]:
    """Make a feature of a pure function.

    Parameters
    ----------
    sources
        Views, dimensions or other on-demand features, whose values the function takes by name.
    request
        Names to types of what the caller sends.
    owner, description, tags
        For people who search; the docstring is the description by default.

    Examples
    --------
    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"clicks_1h": hr.count(over="1h")})
    >>> @hr.on_demand(users, request={"limit": int})
    ... def over_limit(clicks_1h, limit):
    ...     return clicks_1h > limit
    >>> over_limit.value({"limit": 3}, {"clicks_1h": 5}, t=0)
    True
    """
    place = user_location()
    given: tuple[Any, ...] = sources
    for source in given:
        if not isinstance(source, View | Dimension | OnDemand):
            hint = "As in @hr.on_demand(card_activity, request={...})."
            message = "@hr.on_demand takes views, dimensions and on-demand features."
            raise DefinitionError("bad-argument", message, got=shown(source), hint=hint)

    def wrap(function: Callable[..., Any]) -> OnDemand:
        if not inspect.isfunction(function) or function.__name__ == "<lambda>" or _suspends(function):
            hint = "Decorate a plain `def` function."
            got = shown(getattr(function, "__qualname__", function))
            raise DefinitionError("bad-argument", "An on-demand feature is a plain function.", got=got, hint=hint)
        made = OnDemand(
            name=name_of(function.__name__, "an on-demand feature"),
            function=function,
            sources=sources,
            request=Struct(()) if not request else schema_of(request, "a request"),
            parameters=tuple(inspect.signature(function).parameters),
            owner=text_of(owner, "An owner"),
            description=text_of(description, "A description") or inspect.getdoc(function),
            tags=texts_of(tags, "Tags"),
            location=place,
        )
        _refuse_unknown_parameters(made)
        return made

    return wrap


def _suspends(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function)


def _refuse_unknown_parameters(made: OnDemand) -> None:
    known = [f.name for f in made.request] + [TIME]
    for source in made.sources:
        known += [source.name] if isinstance(source, OnDemand) else [f.name for f in source.features]
    doubled = {name for name in known if known.count(name) > 1}
    for name, parameter in inspect.signature(made.function).parameters.items():
        place = f"function {made.name!r}"
        if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
            message = "An on-demand function takes plain named arguments."
            raise DefinitionError("not-pure", message, got=str(parameter), where=made.location).inside(place)
        if name in doubled:
            message = "An argument could mean two things."
            hint = "Rename the request value or the feature."
            error = DefinitionError("duplicate-name", message, got=shown(name), hint=hint, where=made.location)
            raise error.inside(place)
        if name not in known:
            message = "An argument is neither a request value, a feature nor t."
            close = did_you_mean(name, known)
            raise DefinitionError("not-pure", message, got=shown(name), hint=close, where=made.location).inside(place)


def returned(made: OnDemand) -> type:
    """What a function says it returns: bool, int, float or str, perhaps None.

    >>> import headrace as hr
    >>> clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at")
    >>> users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})
    >>> @hr.on_demand(users)
    ... def busy(n) -> bool | None:
    ...     return n > 3
    >>> returned(busy)
    <class 'bool'>
    """
    try:
        said = typing.get_type_hints(made.function).get("return", inspect.Signature.empty)
    except NameError:
        said = made.function.__annotations__.get("return")
    inner = [each for each in typing.get_args(said) if each is not NoneType] or [said]
    if len(inner) == 1 and isinstance(inner[0], type) and inner[0] in KINDS:
        return inner[0]
    missing = said is inspect.Signature.empty
    message = f"On-demand feature {made.name!r} does not say what it returns, or nothing that a column can hold."
    hint = f"Write its type, as in `def {made.name}(...) -> float | None:`. Known: bool, int, float, str."
    raise DefinitionError(
        "bad-type", message, got="nothing" if missing else shown(said), hint=hint, where=made.location
    )
