"""An event: what a record that could be read says, when it happened, and when it became known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Place = tuple[int, int, int]
"""(arrived_at, partition, offset): the order in which things became known."""


@dataclass(frozen=True, slots=True)
class Event:
    """What a record that could be read says, and where it stands."""

    row: Mapping[str, Any]
    event_time: int
    event_id: str
    place: Place

    @property
    def arrived_at(self) -> int:
        """When it became known."""
        return self.place[0]
