"""The format of the changelog's records: a row as bytes, bytes as a row, and the Spark SQL that writes a tile's row.

A record's key is the whole identity, its value everything else, both JSON, times in integer microseconds. The wire
structs below name each field once; Python and SQL both write from them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from headrace.errors import DataError, shown
from headrace.tiles.changelog import Gone, HandOver, Key, ProgressRow, Row, TileRow

Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Lane = Annotated[str, msgspec.Meta(min_length=1, max_length=16, pattern="^[a-z_]*$")]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern="^[!-~]*$")]


class _Names(msgspec.Struct, gc=False):
    tiles: Name
    run: Name
    lane: Lane | None = None


@functools.lru_cache(maxsize=1_024)
def _check_names(tiles: str, run: str, lane: str | None) -> None:
    """Refuse names that are none; the same few come over and over, and a pattern takes longer than all the rest."""
    msgspec.convert({"tiles": tiles, "run": run, "lane": lane}, _Names)


class _WireKey(msgspec.Struct, omit_defaults=True, gc=False):
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


class _WireProgress(msgspec.Struct, omit_defaults=True, gc=False):
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
    identity = _WireKey(row.tile_set, row.run)
    match row:
        case ProgressRow():
            identity.progress = True
            progress = _WireProgress(dict(row.positions), row.as_of, row.ordered, row.late_as_of)
            return _write(identity), _write(progress)
        case HandOver():
            identity.hand_over = True
            return _write(identity), _write(_WireHandOver(*msgspec.structs.astuple(row)[2:]))
        case Gone(tile=None):
            identity.progress = True
            return _write(identity), None
    identity.key = dict(zip(names, row.key, strict=True))
    identity.tile, identity.lane = row.tile, row.lane
    if isinstance(row, Gone):
        return _write(identity), None
    times = (row.max_event_time, row.max_arrived_at)
    return _write(identity), _write(_WireTile(row.version, msgspec.Raw(row.partials), dict(row.positions), *times))


def key_sql(tile_set: str, run: str, key: Mapping[str, str], tile: str, lane: str) -> str:
    """Spark SQL for the key of a tile's record; `key` and `tile` are SQL, the rest are names.

    >>> key_sql("ab12", "1", {}, "`~tile`", "late")
    "to_json(named_struct('tiles', 'ab12', 'run', '1', 'key', map(), 'tile', `~tile`, 'lane', 'late'))"
    """
    return _json_sql(_WireKey, f"'{tile_set}'", f"'{run}'", _struct_sql(key) if key else "map()", tile, f"'{lane}'")


def value_sql(
    version: str, partials: Mapping[str, str], positions: Mapping[int, str], max_event_time: str, max_arrived_at: str
) -> str:
    """Spark SQL for the value of a tile's record; all of it is SQL but the names of columns and partitions."""
    texts = {str(partition): text for partition, text in positions.items()}
    return _json_sql(_WireTile, version, _struct_sql(partials), _struct_sql(texts), max_event_time, max_arrived_at)


def _json_sql(wire: type[msgspec.Struct], *fields: str) -> str:
    """The first fields of a wire struct as JSON text that Spark makes."""
    return f"to_json({_struct_sql(dict(zip(wire.__struct_fields__, fields, strict=False)))})"


def _struct_sql(fields: Mapping[str, str]) -> str:
    listed = ", ".join(f"'{name}', {text}" for name, text in fields.items())
    return f"named_struct({listed})"
