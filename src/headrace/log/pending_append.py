"""Appends that are under way: begun, and waited for later or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from headrace.log.record import Position


class Appending(Protocol):
    """An append that was begun."""

    @property
    def over(self) -> bool:
        """Whether it is known what became of it."""
        ...

    def positions(self) -> list[Position]:
        """Where the messages went, once all are safe; waits for that, and fails as `Log.append_batch` does."""
        ...


@dataclass(frozen=True)
class Appended:
    """One that was over when it had begun."""

    went: Sequence[Position]
    over: bool = True

    def positions(self) -> list[Position]:
        """Where the messages went."""
        return list(self.went)
