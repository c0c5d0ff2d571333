"""The runs of every tile set: which there are, which one serves, and which are on their way.

A run is one hand-over from history to live. The first, `1`, has none: it reads the log from its beginning. Hand-overs
stand in the topic `headrace.runs`; serving reads them too, to know which run's tiles are right (`tiles.run_choice`).
"""

from __future__ import annotations

from headrace.errors import DataError
from headrace.log.protocol import Log
from headrace.log.record import Message
from headrace.plan.model import TileSet
from headrace.tiles.changelog import SERVING, Gone, HandOver
from headrace.tiles.changelog_format import decode, encode
from headrace.tiles.run_choice import FIRST_RUN, number

PART = 1_000


class Runs:
    """Hand-overs as a log has them; what others have said meanwhile is seen at the next look."""

    def __init__(self, log: Log, topic: str) -> None:
        self.log, self.topic = log, topic
        self._held: dict[str, dict[str, HandOver]] = {}
        self._at = log.start_offsets(topic)[0]

    def look(self) -> None:
        """Read what was said since the last look."""
        while found := self.log.read(self.topic, 0, self._at, limit=PART):
            for record in found:
                self._at = record.offset + 1
                self._take(record.key, record.value)

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        try:
            said = decode(key, value)
        except DataError:
            return
        if isinstance(said, HandOver):
            self._held.setdefault(said.tile_set, {})[said.run] = said
        elif isinstance(said, Gone):
            self._held.get(said.tile_set, {}).pop(said.run, None)

    def say(self, hand_over: HandOver) -> None:
        """Tell everybody."""
        key, value = encode(hand_over)
        self.log.append_batch(self.topic, [Message(value, key)])
        self._held.setdefault(hand_over.tile_set, {})[hand_over.run] = hand_over

    def forget(self, tile_set: TileSet, run: str) -> None:
        """Tell everybody that a run is no more."""
        held = self._held.get(tile_set.fingerprint, {}).pop(run, None)
        if held is not None:
            key, _ = encode(held)
            self.log.append_batch(self.topic, [Message(None, key)])

    def of(self, tile_set: TileSet) -> dict[str, HandOver]:
        """The runs of a tile set that have a hand-over, oldest first."""
        held = self._held.get(tile_set.fingerprint, {})
        return {run: held[run] for run in sorted(held, key=number)}

    def serving(self, tile_set: TileSet) -> HandOver | None:
        """The hand-over of the run that serves; None when that is the first run."""
        serving = [held for held in self.of(tile_set).values() if held.stage == SERVING]
        return serving[-1] if serving else None

    def next(self, tile_set: TileSet) -> str:
        """The name of a new run."""
        return str(max([number(FIRST_RUN), *map(number, self.of(tile_set))]) + 1)


def checkpoint_of(tile_set: TileSet, run: str) -> str:
    """The name of a run's checkpoint."""
    first = f"{tile_set.id}-{tile_set.fingerprint}"
    return first if run == FIRST_RUN else f"{first}-run{run}"
