"""What `import headrace` promises to say: of a name that is not there, and of arguments that a function does not take.

Python's own words are an AttributeError and a TypeError without a way out. Here they become errors of Headrace's, with
the user's file and line and a hint.
"""

from __future__ import annotations

import functools
import inspect
import opcode
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from headrace.errors import DefinitionError, UnknownImportError, UnknownNameError, did_you_mean, shown
from headrace.plural import show_count

IMPORT_FROM = opcode.opmap["IMPORT_FROM"]
MODULES = ("testing",)
"""Public modules that need an import of their own."""

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")
_Class = TypeVar("_Class", bound=type[Any])


def refuse_name(name: str, known: Sequence[str]) -> DefinitionError:
    """The error for a name that `headrace` does not have; called by the module's `__getattr__`.

    In `from headrace import cuont` Python swallows an AttributeError, so that it is an ImportError there.

    >>> refuse_name("cuont", ["count", "sum"]).hint
    "Did you mean 'count'?"
    """
    frame = sys._getframe(2)
    imported = frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == IMPORT_FROM
    kind = UnknownImportError if imported else UnknownNameError
    hint = f"Write `import headrace.{name}`." if name in MODULES else did_you_mean(name, known)
    return kind("unknown-name", f"headrace has no name {shown(name, 60)}.", got=shown(name), hint=hint)


def check_call(function: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """Refuse arguments that a public function does not take.

    >>> @check_call
    ... def tumbling(size, *, resolution=None):
    ...     return size
    >>> try:
    ...     tumbling("1h", resoluton="1m")
    ... except DefinitionError as error:
    ...     print(error.message, error.hint)
    hr.tumbling has no argument 'resoluton'. Did you mean 'resolution'?
    """

    @functools.wraps(function)
    def called(*args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            # A call that does not fit has no frame of the function's own.
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            refusal = _refusal(function, args, kwargs)
            if refusal is None:
                raise
            raise refusal from None

    return called


def check_making(kind: _Class) -> _Class:
    """Refuse arguments that a public class is not made from.

    >>> @check_making
    ... class Client:
    ...     def __init__(self, url): ...
    >>> try:
    ...     Client()
    ... except DefinitionError as error:
    ...     print(error.message, error.hint)
    hr.Client needs 'url'. As in hr.Client(url).
    """
    setattr(kind, "__init__", check_call(kind.__init__))  # noqa: B010
    return kind


def _refusal(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> DefinitionError | None:
    """What is wrong with a call."""
    method = "." in function.__qualname__ and function.__qualname__.rpartition(".")[0][-1] != ">"
    parameters = dict(list(inspect.signature(function).parameters.items())[method:])
    given, name = args[method:], _name_of(function, method=method)
    places = [each for each, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    open_ended = {p.kind for p in parameters.values()}
    unknown = [each for each in kwargs if each not in parameters]
    if unknown and inspect.Parameter.VAR_KEYWORD not in open_ended:
        got = f"{unknown[0][:60]}={shown(kwargs[unknown[0]])}"
        return _wrong(f"{name} has no argument {shown(unknown[0], 60)}.", got, did_you_mean(unknown[0], parameters))
    if len(given) > len(places) and inspect.Parameter.VAR_POSITIONAL not in open_ended:
        names = [each for each, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
        hint = f"Name the others, as in {names[0]}=..." if names else None
        surplus = ", ".join(shown(each) for each in given[len(places) :])[:200]
        message = f"{name} takes {_count(len(places))} without a name, and {len(given)} came."
        return _wrong(message, surplus, hint and f"{hint}{'' if hint.endswith('.') else '.'}")
    doubled = [each for each in places[: len(given)] if each in kwargs]
    if doubled:
        return _wrong(f"{name} is given {doubled[0]!r} twice.", f"{doubled[0]}={shown(kwargs[doubled[0]])}", None)
    required = [each for each, p in parameters.items() if p.default is p.empty and p.kind.value in (1, 3)]
    missing = [each for each in required if each not in kwargs and each not in places[: len(given)]]
    if missing:
        example = ", ".join(each if each in places else f"{each}=..." for each in required)
        listed = " and ".join(map(repr, missing))
        got = shown([*given, *kwargs]) if given or kwargs else "nothing"
        return _wrong(f"{name} needs {listed}.", got, f"As in {name}({example}).")
    return None


def _wrong(message: str, got: str, hint: str | None) -> DefinitionError:
    return DefinitionError("bad-argument", message, got=got, hint=hint)


def _count(number: int) -> str:
    return "nothing" if number == 0 else show_count(number, "argument")


def _name_of(function: Callable[..., Any], *, method: bool) -> str:
    """A function as users write it."""
    if not method:
        return f"{'headrace.testing' if function.__module__ == 'headrace.testing' else 'hr'}.{function.__name__}"
    kind, _, name = function.__qualname__.rpartition(".")
    return f"hr.{kind.rpartition('.')[2]}" if name == "__init__" else f"{kind.rpartition('.')[2]}.{name}"
