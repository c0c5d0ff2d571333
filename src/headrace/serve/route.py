"""A route, and the router that finds the route of a path.

A route says everything of one path: who answers it, which role it needs, under which name it is counted and what the
OpenAPI document says. The rows are in `routes`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from headrace.errors import ProjectError, UsageError, shown
from headrace.serve.access import READ

if TYPE_CHECKING:
    from headrace.serve.openapi import Catalog


@dataclass(frozen=True)
class Route:
    """One path of the HTTP interface.

    Parameters
    ----------
    path
        The path; see `http_paths`.
    handler
        Answers a request.
    name, summary
        What the OpenAPI document calls it, and says of it; `%(view)s` stands for a name of the plan.
    method
        The method it takes; with GET it takes HEAD too.
    role
        The role that a caller needs; None for a route that is open to all.
    label
        The name in metrics; the path when left out.
    tag
        The group that the OpenAPI document puts it in.
    type
        The type of an answer: text or JSON.
    answers
        What each status means; `summary` for 200 when left out.
    operations
        Makes the operations where they depend on the plan; left out, they are made of the fields above.
    is_documented
        Whether the OpenAPI document has it.
    """

    path: str
    handler: Callable[[Any, Request], Awaitable[Response]]
    name: str
    summary: str
    _: KW_ONLY
    method: str = "GET"
    role: str | None = READ
    label: str = ""
    tag: str = "standing"
    type: Any = dict[str, Any]
    answers: Mapping[int, str] | None = None
    operations: Callable[[Route, Catalog], Mapping[str, Any]] | None = None
    is_documented: bool = True

    @property
    def metric(self) -> str:
        """The name in metrics."""
        return self.label or self.path

    @property
    def template(self) -> str:
        """The path as people read it."""
        return self.path.replace(":path", "")

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods it takes."""
        return ("GET", "HEAD") if self.method == "GET" else (self.method,)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What its paths match."""
        tail = re.sub(r"/\{(\w+):path\}", r"(?:/(?P<\1>.*))?", self.path)
        return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]*)", tail), re.DOTALL)

    def wrong_method(self, method: str, path: str) -> UsageError:
        """The error for a method that the route does not take."""
        message, hint = "The path does not take that method.", f"It takes {', '.join(self.methods)}."
        return UsageError("wrong-method", message, got=f"{method} {shown(path)}", hint=hint)


class Router:
    """Finds the route of a path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._whole = {route.path: route for route in self.routes if "{" not in route.path}
        self._patterned = [route for route in self.routes if "{" in route.path]

    def find(self, path: str) -> tuple[Route | None, dict[str, str]]:
        """The route of a path with the parts that are filled in; None when there is none."""
        route = self._whole.get(path)
        if route is not None:
            return route, {}
        for route in self._patterned:
            found = route.pattern.fullmatch(path)
            if found is not None:
                return route, found.groupdict()
        return None, {}

    def unknown_path(self, path: str) -> ProjectError:
        """The error for a path without a route."""
        *paths, last = (route.template for route in self.routes)
        hint = f"There is {', '.join(paths)} and {last}."
        return ProjectError("unknown-path", "There is nothing at this path.", got=shown(path), hint=hint)
