"""The bytes of the changelog: what a tile's row, a progress record and a hand-over look like on their way out of Spark.

A record's key is the whole identity, its value everything else, both JSON, times in integer microseconds. The partial
columns stay the JSON that Spark wrote: what they mean is decided by whoever knows the plan (`tiles.partials`). Rows go
on to a store (`store.protocol`), which keeps the one with the greatest version of each identity. Hand-overs have a
topic of their own, `headrace.runs`, so that whoever runs them need not read all tiles.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from headrace.errors import DataError, shown

KeyPart = str | int | bool
Key = tuple[KeyPart, ...]
Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Lane = Annotated[str, msgspec.Meta(min_length=1, max_length=16, pattern="^[a-z_]*$")]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern="^[!-~]*$")]


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


class _Names(msgspec.Struct, gc=False):
    tiles: Name
    run: Name
    lane: Lane | None = None


@functools.lru_cache(maxsize=1_024)
def _check_names(tiles: str, run: str, lane: str | None) -> None:
    """Refuse names that are none; the same few come over and over, and a pattern takes longer than all the rest."""
    msgspec.convert({"tiles": tiles, "run": run, "lane": lane}, _Names)


class _WireKey(msgspec.Struct, gc=False):
    tiles: str
    run: str
    key: dict[str, str | bool | Long] | msgspec.UnsetType = msgspec.UNSET
    tile: Long | None = None
    lane: str | None = None
    progress: bool = False
    hand_over: bool = False


class _WireTile(msgspec.Struct, gc=False):
    version: Long
    partials: msgspec.Raw
    positions: dict[int, Offset] = {}
    max_event_time: Long | None = None
    max_arrived_at: Long | None = None


class _WireProgress(msgspec.Struct, gc=False):
    positions: dict[int, Offset]
    as_of: Long
    ordered: bool = False
    late_as_of: Long | None = None


class _WirePositions(msgspec.Struct, gc=False):
    positions: dict[int, Offset] = {}


class _WireHandOver(msgspec.Struct, gc=False):
    point: Long
    cut: dict[int, Offset]
    begin: dict[int, Offset]
    version: Long
    stage: Literal["filling", "filled", "serving"]
    filled: Long | None = None


_read_key = msgspec.json.Decoder(_WireKey).decode
_read_tile = msgspec.json.Decoder(_WireTile).decode
_read_progress = msgspec.json.Decoder(_WireProgress).decode
_read_positions = msgspec.json.Decoder(_WirePositions).decode
_read_hand_over = msgspec.json.Decoder(_WireHandOver).decode
_write = msgspec.json.Encoder().encode


def decode(key: bytes | None, value: bytes | None) -> Row:
    """The row in a changelog record; one that cannot be read is refused with `bad-changelog`.

    Examples
    --------
    >>> row = decode(
    ...     b'{"tiles":"ab12","run":"r1","key":{"card":"42"},"tile":0,"lane":"on_time"}',
    ...     b'{"version":5,"partials":{"count_1":3},"positions":{"0":17}}',
    ... )
    >>> row.key, row.version, row.partials, row.positions
    (('42',), 5, b'{"count_1":3}', {0: 17})
    """
    try:
        found = _read_key(key or b"")
        _check_names(found.tiles, found.run, found.lane)
        if found.progress:
            return _progress(found, value)
        if found.hand_over:
            return _hand_over(found, value)
        if found.key is msgspec.UNSET or found.tile is None or found.lane is None:
            raise msgspec.ValidationError("The key names neither a tile nor progress")
        return _tile(found, tuple(found.key.values()), found.tile, found.lane, value)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        got = f"{error}; key {shown(key)}, value {shown(value)}"
        raise DataError("bad-changelog", "A changelog record cannot be read.", got=got) from error


def prefix(tile_set: str, run: str) -> bytes:
    """How the keys of a run's records begin; Spark writes them as `encode` does.

    >>> prefix("ab12", "1")
    b'{"tiles":"ab12","run":"1",'
    """
    return _write({"tiles": tile_set, "run": run})[:-1] + b","


def positions_of(value: bytes) -> Mapping[int, int]:
    """The next offsets that a tile's row or a progress record names, without reading the rest.

    >>> positions_of(b'{"version":5,"partials":{"count_1":3},"positions":{"0":17}}')
    {0: 17}
    """
    return _read_positions(value).positions


def _progress(found: _WireKey, value: bytes | None) -> Row:
    if value is None:
        return Gone(found.tiles, found.run)
    said = _read_progress(value)
    return ProgressRow(found.tiles, found.run, said.positions, said.as_of, said.ordered, said.late_as_of)


def _hand_over(found: _WireKey, value: bytes | None) -> Row:
    if value is None:
        return Gone(found.tiles, found.run)
    said = _read_hand_over(value)
    return HandOver(found.tiles, found.run, *msgspec.structs.astuple(said))


def _tile(found: _WireKey, key: Key, tile: int, lane: str, value: bytes | None) -> Row:
    if value is None:
        return Gone(found.tiles, found.run, key, tile, lane)
    said = _read_tile(value)
    partials = bytes(said.partials)
    if not partials.startswith(b"{"):
        raise msgspec.ValidationError("Expected `object` - at `$.partials`")
    times = (said.max_event_time, said.max_arrived_at)
    return TileRow(found.tiles, found.run, key, tile, lane, said.version, partials, said.positions, *times)


def encode(row: Row, names: tuple[str, ...] = ()) -> tuple[bytes, bytes | None]:
    """Key and value of a row's changelog record; `names` are the key's columns.

    Examples
    --------
    >>> encode(ProgressRow("ab12", "r1", {0: 18}, 7))
    (b'{"tiles":"ab12","run":"r1","progress":true}', b'{"positions":{"0":18},"as_of":7}')
    """
    identity: dict[str, Any] = {"tiles": row.tile_set, "run": row.run}
    if isinstance(row, HandOver):
        identity["hand_over"] = True
    elif isinstance(row, ProgressRow) or (isinstance(row, Gone) and row.tile is None):
        identity["progress"] = True
    else:
        identity |= {"key": dict(zip(names, row.key, strict=True)), "tile": row.tile, "lane": row.lane}
    match row:
        case ProgressRow():
            more: dict[str, Any] = {"ordered": True} if row.ordered else {}
            more |= {} if row.late_as_of is None else {"late_as_of": row.late_as_of}
            return _write(identity), _write({"positions": row.positions, "as_of": row.as_of, **more})
        case HandOver():
            said = msgspec.structs.asdict(row)
            return _write(identity), _write({name: said[name] for name in said if name not in ("tile_set", "run")})
        case TileRow():
            return _write(identity), _write(_said(row))
    return _write(identity), None


def _said(row: TileRow) -> dict[str, Any]:
    return {
        "version": row.version,
        "partials": msgspec.Raw(row.partials),
        "positions": row.positions,
        "max_event_time": row.max_event_time,
        "max_arrived_at": row.max_arrived_at,
    }
