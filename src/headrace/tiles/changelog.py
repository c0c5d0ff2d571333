"""The rows of the changelog: a tile's row, a progress record, a hand-over, and the tombstone of each.

Their bytes are `tiles.changelog_format`. Partial columns stay the JSON that Spark wrote: what they mean is decided by
whoever knows the plan (`tiles.partials`). Rows go on to a store (`store.protocol`), which keeps the one with the
greatest version of each identity. Hand-overs have a topic of their own, `headrace.runs`, so that whoever runs them need
not read all tiles.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

KeyPart = str | int | bool
Key = tuple[KeyPart, ...]


class TileRow(msgspec.Struct, frozen=True, gc=False):
    """One tile of one key in one lane, as a run computed it.

    Parameters
    ----------
    tile_set, run, key, tile, lane
        The identity: the tile set's fingerprint, the run's name, the key's values in the order of the view's `by`,
        the tile's start, and the lane.
    version
        Of two rows of one identity the greater one wins.
    partials
        A JSON object of partial columns, as Spark's `to_json` wrote it.
    positions
        The next offset of each partition of the stream that is not in the row.
    max_event_time, max_arrived_at
        The newest event in the row, by its two times. When the row was emitted is the log's own knowledge.
    """

    tile_set: str
    run: str
    key: Key
    tile: int
    lane: str
    version: int
    partials: bytes = b"{}"
    positions: Mapping[int, int] = {}
    max_event_time: int | None = None
    max_arrived_at: int | None = None


class ProgressRow(msgspec.Struct, frozen=True, gc=False):
    """How far a run has come: of the on-time lane all that had arrived before `as_of` is in the rows before this one.

    Of the late lane it is all that had arrived before `late_as_of`; None as long as nothing is known of it. The rows
    after it are `ordered` when they come in the order in which each partition was read (`store.implied_progress`).
    """

    tile_set: str
    run: str
    positions: Mapping[int, int]
    as_of: int
    ordered: bool = False
    late_as_of: int | None = None


FILLING, FILLED, SERVING = "filling", "filled", "serving"


class HandOver(msgspec.Struct, frozen=True, gc=False):
    """Where a run of a tile set changes from batch to stream, and how far it is.

    Parameters
    ----------
    point
        Tiles before it are written once by a batch over the lake, tiles from it on by the stream.
    cut
        What the batch reads: the lake's rows before these offsets.
    begin
        Where the stream begins.
    version
        The version of the batch's rows.
    stage
        `filling` while the batch runs, `filled` until the stream has caught up, then `serving`.
    filled
        While filling: tiles before it are written.
    """

    tile_set: str
    run: str
    point: int
    cut: Mapping[int, int]
    begin: Mapping[int, int]
    version: int
    stage: str = FILLING
    filled: int | None = None


class Gone(msgspec.Struct, frozen=True, gc=False):
    """A tombstone: the row of this identity is no more. Without a tile it is all that was said of the run itself."""

    tile_set: str
    run: str
    key: Key = ()
    tile: int | None = None
    lane: str = ""


Row = TileRow | ProgressRow | HandOver | Gone
