"""What the three sketches share: a state of bytes that Spark or Python made, read by `datasketches`.

The library is loaded when a sketch is first touched, never by importing Headrace. Bytes depend on the order of the
events, so two states are compared by what they estimate, never byte by byte.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from headrace.aggregate.monoid import Monoid, State


@functools.cache
def datasketches() -> ModuleType:
    """The library, loaded once."""
    import datasketches

    loaded: ModuleType = datasketches
    return loaded


@dataclass(frozen=True)
class Sketch(Monoid):
    """A summary of bounded size; the state is its bytes, or None when nothing went in."""

    ddl = "BINARY"
    empty = None
    cell_is_state = True
    carried = True

    def read(self, state: bytes) -> Any:
        """What is in the bytes."""
        raise NotImplementedError

    def write(self, sketch: Any) -> bytes:
        """The bytes of what was read."""
        raise NotImplementedError

    def join(self, sketches: Iterable[Any]) -> Any:
        """One of at least two that were read."""
        raise NotImplementedError

    def merge(self, a: State, b: State) -> State:
        return self.fold((a, b))

    def fold(self, states: Iterable[State]) -> State:
        return self._closed([self.read(state) for state in states if state is not None])

    def from_spark(self, cell: Any) -> State:
        return None if cell is None else self._closed([self.read(bytes(cell))])

    def _closed(self, sketches: list[Any]) -> State:
        if not sketches:
            return None
        joined = sketches[0] if len(sketches) == 1 else self.join(sketches)
        # Spark pads its bytes, and writes an empty sketch where Headrace keeps none.
        return None if joined.is_empty() else self.write(joined)

    def unpack(self, packed: Any) -> State:
        return base64.b64decode(packed) if isinstance(packed, str) else packed
