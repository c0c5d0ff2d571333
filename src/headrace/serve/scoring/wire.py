"""What serving and a process that scores say to each other: frames of msgpack over a socket.

Serving asks with a number and some rows, each a list of values in the order of the model's columns; the process answers
with the number, the seconds it took and for every row a score or a fault. Floats go over bit by bit. A row is written
once, whoever it is sent to.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Iterable
from typing import Any

import msgspec

from headrace.errors import CODES, DataError, HeadraceError, MachineError

LENGTH = struct.Struct(">I")
"""Stands before every frame: how many bytes it has."""
DECIMAL = 1
"""The kind of an extension that holds a decimal's digits."""
FAULT = "model-failed"
_KINDS: dict[int, type[HeadraceError]] = {400: DataError, 503: MachineError}


class ScoreFault(msgspec.Struct, frozen=True, array_like=True):
    """An error as it goes over the socket."""

    code: str
    message: str
    got: str | None
    hint: str | None
    status: int

    def error(self) -> HeadraceError:
        """The error again.

        >>> fault_of(DataError("bad-request", "It is none.", got="7")).error().brief
        'It is none. 7'
        """
        code = self.code if self.code in CODES else FAULT
        return _KINDS.get(self.status, HeadraceError)(code, self.message, got=self.got, hint=self.hint)


def fault_of(error: HeadraceError) -> ScoreFault:
    """An error as it goes over."""
    return ScoreFault(error.code, error.message, error.got, error.hint, error.http_status)


class ScoreReply(msgspec.Struct, frozen=True, array_like=True):
    """The answer to a number: seconds of scoring, and a score or a fault for every row."""

    number: int
    seconds: float
    results: list[float | ScoreFault]


class Started(msgspec.Struct, frozen=True, array_like=True):
    """What a process says first: None when it can score, else why not."""

    fault: ScoreFault | None


def row_of(values: Iterable[Any]) -> msgspec.Raw:
    """A row as it goes over; what has no form raises `ValueError` or `TypeError`.

    >>> read_asked(asking(7, [row_of([1, None, decimal.Decimal("1.50")])])[LENGTH.size :])
    (7, [[1, None, Decimal('1.50')]])
    """
    try:
        return msgspec.Raw(_encode([_written(value) for value in values]))
    except OverflowError as error:
        raise ValueError(str(error)) from error


def asking(number: int, rows: list[msgspec.Raw]) -> bytes:
    """The frame that asks for scores."""
    return framed((number, rows))


def framed(said: Any) -> bytes:
    """Something as a frame."""
    body = _encode(said)
    return LENGTH.pack(len(body)) + body


def read_asked(frame: bytes) -> tuple[int, list[list[Any]]]:
    """The number and the rows of a frame that asks."""
    return _asked.decode(frame)


def read_told(frame: bytes) -> ScoreReply:
    """A frame that answers."""
    return _told.decode(frame)


def read_started(frame: bytes) -> Started:
    """A process's first frame."""
    return _started.decode(frame)


class Frames:
    """Cuts what comes over a socket into frames.

    >>> frames = Frames()
    >>> whole = framed([1, 2])
    >>> frames.feed(whole[:3]), len(frames.feed(whole[3:] + whole))
    ([], 2)
    """

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Every frame that is whole now."""
        self._rest += data
        found, at = list[bytes](), 0
        while len(self._rest) - at >= LENGTH.size:
            end = at + LENGTH.size + LENGTH.unpack_from(self._rest, at)[0]
            if len(self._rest) < end:
                break
            found.append(bytes(self._rest[at + LENGTH.size : end]))
            at = end
        del self._rest[:at]
        return found


def _written(value: Any) -> Any:
    """Decimals keep their kind: as plain msgpack they would be text."""
    return msgspec.msgpack.Ext(DECIMAL, str(value).encode()) if isinstance(value, decimal.Decimal) else value


def _plain(value: Any) -> Any:
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a value of type {type(value).__name__}")


def _extension(kind: int, data: memoryview) -> Any:
    if kind != DECIMAL:
        raise ValueError(f"an extension of kind {kind}")
    return decimal.Decimal(bytes(data).decode())


_encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode
_asked = msgspec.msgpack.Decoder(tuple[int, list[list[Any]]], ext_hook=_extension)
_told = msgspec.msgpack.Decoder(ScoreReply)
_started = msgspec.msgpack.Decoder(Started)
