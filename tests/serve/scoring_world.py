"""A serving application with a model over memory, and versions of the model in a folder."""

from __future__ import annotations

import dataclasses
import textwrap
from decimal import Decimal
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.config.serve_settings import DEFAULTS, ServeSettings
from headrace.log import MemoryLog
from headrace.models import Manifest, ModelColumn, ModelRegistry
from headrace.plan.build import build
from headrace.serve.scoring.models import Models
from headrace.serve.server_options import ServerOptions
from headrace.store import MemoryStore
from headrace.testing import FakeClock
from headrace.topics import create, topics
from tests.serve.conftest import NAMES, World, everyone, habits, pace, rests, shops, users
from tests.serve.serving import Serving
from tests.streams import BASE


@hr.on_demand(users, request={"budget": float})
def share(budget: float, spent_1h: Decimal) -> float | None:
    return float(spent_1h) / budget


spending = hr.feature_set("spending", [users.only("clicks_1h", "spent_1h", "last_at"), share])
churn = hr.model("churn", spending)
plan = build([users, shops, everyone, habits, pace, rests, spending, churn])

PLAIN = "return min(1.0, {low} + 0.1 * (row['clicks_1h'] or 0) + 0.01 * (row['share'] or 0))"
"""A score that tells its version by where it begins, and its features by the rest."""
RAISES = "if row['clicks_1h']: raise ValueError('no')\nreturn 0.5"
"""Takes plain zeros, so that it is accepted, and fails on whoever asks."""


class ScoreWorld(World):
    """All of serving in one process, with a model that has no version yet."""

    def __init__(
        self,
        folder: Path,
        settings: ServeSettings = DEFAULTS,
        terms: ServerOptions | None = None,
        **scoring: Any,
    ) -> None:
        self.clock = FakeClock(BASE)
        self.log = MemoryLog(clock=self.clock)
        create(self.log, topics(plan, NAMES, 2))
        self.store, self.folder = MemoryStore(), folder
        self.registry = ModelRegistry(folder / "models", self.clock)
        # Long, so that a machine with other things to do fails no test that is about something else.
        scoring = {"score_timeout": 10.0, "models_every": 0.05} | scoring
        self.models = Models(plan, folder / "models", dataclasses.replace(settings, **scoring), self.clock)
        terms = terms or ServerOptions(settings=dataclasses.replace(settings, sample=0.0))
        self.serving = Serving(plan, self.log, self.store, NAMES, self.clock, terms=terms, models=self.models)
        self.pipeline(
            {"id": "a", "user": "ann", "price": "1.50", "at": BASE},
            {"id": "b", "user": "ann", "at": BASE - 1},
            {"id": "c", "user": "bob", "shop": 7, "price": "4", "at": BASE},
        )
        self.clock.advance("2s")

    def add(self, body: str = PLAIN, *, low: float = 0.1, **details: Any) -> Manifest:
        """A version whose function has such a body."""
        text = body.replace("{low}", repr(low))
        file = self.folder / "score.py"
        file.write_text(f"import os, time\n\n\ndef score(row):\n{textwrap.indent(text, '    ')}\n")
        columns = details.pop("columns", self.models.find("churn").columns)
        return self.registry.add("churn", file, features="spending", columns=columns, allow_code=True, **details)

    def promote(self, *given: Any, **more: Any) -> int:
        """Add a version and make it the champion."""
        version = self.add(*given, **more).version
        self.registry.promote("churn", version)
        return version

    def score(self, user: str = "ann", **more: Any) -> Any:
        """The answer to a request for one key."""
        return self.ask("POST", "/v1/score/churn", json={"key": {"user": user}, "request": {"budget": 10}} | more)

    def champion(self) -> int | None:
        """Which version answers now."""
        seat = self.models.find("churn").lineup.champion
        return None if seat is None else seat.version


def columns_with(columns: tuple[ModelColumn, ...], place: int, **changed: str) -> tuple[ModelColumn, ...]:
    """The same columns, one of them changed."""
    from msgspec.structs import replace

    return (*columns[:place], replace(columns[place], **changed), *columns[place + 1 :])
