"""`POST /v1/features`: many keys of views or feature sets in one request.

    {"view": "fraud", "keys": [{"card": "42"}, {"card": "7"}], "request": {"amount": 12.5}, "stale": "refuse"}

`view` is the name of a view, dimension or feature set, or a list of names; `request` an object for all keys or an array
with one for each. Answers come in the order of the keys, and for each key in the order of the names, all for one
moment. A key that cannot be answered has an `error` in the place of its features and costs no other key its answer; a
request that makes no sense is refused as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import msgspec

from headrace.clock import show_time
from headrace.errors import DataError, HeadraceError, shown
from headrace.plural import show_count
from headrace.read.catalog import Readable, key_from_json
from headrace.read.feature_row import RequestValues
from headrace.read.reader import ViewValues
from headrace.serve.feature_reads import Reads, staleness, values_json
from headrace.serve.responses import error_json, status_of
from headrace.tiles.changelog import KeyPart

SLICE = 20
"""Keys read before others have their turn: about a millisecond."""

Form = TypeVar("Form")


class BatchBody(msgspec.Struct, forbid_unknown_fields=True):
    """A request as it comes."""

    view: str | list[str]
    keys: list[Any]
    request: msgspec.Raw = msgspec.Raw(b"{}")
    stale: str | None = None


@dataclass(frozen=True)
class BatchRequest:
    """A request that makes sense: what to read, for which keys, with which request values.

    `shared` has the request values of each name when they are for all keys; else `each` has those of every key, unread.
    """

    of: tuple[Readable, ...]
    keys: Sequence[Any]
    stale: str
    shared: tuple[RequestValues, ...] | None
    each: Sequence[bytes] = ()

    @cached_property
    def columns(self) -> frozenset[str]:
        """Every column that any of what is read is kept by."""
        return frozenset(name for each in self.of for name in each.by)

    def values(self, reads: Reads, place: int, number: int) -> RequestValues:
        """The request values of one name for one key."""
        return self.shared[place] if self.shared is not None else _values(self.of, reads, self.each[number])[place]


_asked = msgspec.json.Decoder(BatchBody)
_list = msgspec.json.Decoder(list[msgspec.Raw])
EXAMPLE = '{"view": "card_activity", "keys": [{"card": "42"}]}'


def batch_of(body: bytes, reads: Reads, *, most: int, stale: str) -> BatchRequest:
    """Read a request; what is wrong with it as a whole is refused.

    Parameters
    ----------
    most
        The most keys, counted once for each view that is read.
    stale
        What becomes of stale values when the request does not say.
    """
    asked = decoded(body, _asked, EXAMPLE)
    names = [asked.view] if isinstance(asked.view, str) else asked.view
    if not names or len(set(names)) < len(names):
        message = "`view` names what to read, each view or feature set once."
        raise DataError("bad-request", message, got=shown(names), hint="Name each view or feature set once.")
    if len(asked.keys) * len(names) > most:
        # Before the names are looked up, so that many unknown ones cost nothing.
        raise _too_many(len(asked.keys), len(names), most)
    of = tuple(reads.find(name) for name in names)
    refuse_too_many(len(asked.keys), of, most)
    return batch_from(of, asked.keys, bytes(asked.request), reads, stale=staleness(asked.stale, stale))


def decoded(body: bytes, decoder: msgspec.json.Decoder[Form], example: str) -> Form:
    """A request's JSON in its form; what has another is refused."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = "The request cannot be read."
        raise DataError("bad-request", message, got=shown(str(error)), hint=f"Send JSON such as {example}.") from None


def refuse_too_many(keys: int, of: Sequence[Readable], most: int) -> None:
    """Refuse more keys than a request may have, each counted once for every view that is read."""
    views = max(1, sum(len(each.views) for each in of))
    if keys * views > most:
        raise _too_many(keys, views, most)


def batch_from(
    of: tuple[Readable, ...], keys: Sequence[Any], request: bytes, reads: Reads, *, stale: str
) -> BatchRequest:
    """What to read for some keys, with request values that are for all of them or one object for each."""
    if request.lstrip()[:1] != b"[":
        return BatchRequest(of, keys, stale, _values(of, reads, request))
    each = [bytes(one) for one in _list.decode(request)]
    if len(each) != len(keys):
        message = "An array of request values has one object for each key."
        hint = "Send one object for all keys, or as many as there are keys."
        raise DataError("bad-request", message, got=f"{len(each):,} for {show_count(len(keys), 'key')}", hint=hint)
    return BatchRequest(of, keys, stale, None, each)


def _too_many(keys: int, views: int, most: int) -> DataError:
    got = show_count(keys, "key") if views == 1 else f"{show_count(keys, 'key')} of {show_count(views, 'view')}"
    hint = "Send fewer keys at a time, or raise serve.max_keys."
    return DataError("too-large", f"A request reads at most {show_count(most, 'key')}.", got=got, hint=hint)


def _values(of: Sequence[Readable], reads: Reads, request: bytes) -> tuple[RequestValues, ...]:
    known = {name for each in of for name in reads.requests(each).known}
    return tuple(reads.requests(each).read(request, known) for each in of)


async def answers(batch: BatchRequest, reads: Reads) -> dict[str, Any]:
    """Every key's answers for one moment; others have their turn in between."""
    t, found = reads.clock.now(), list[dict[str, Any]]()
    for start in range(0, len(batch.keys), SLICE):
        if start:
            await asyncio.sleep(0)
        columns = [_column(batch, reads, place, start, t) for place in range(len(batch.of))]
        found += [answer for of_key in zip(*columns, strict=True) for answer in of_key]
    return {"at": show_time(t), "answers": found, "errors": sum("error" in each for each in found)}


def _column(batch: BatchRequest, reads: Reads, place: int, start: int, t: int) -> list[dict[str, Any]]:
    """The answers of one name to a slice of keys."""
    of = batch.of[place]

    def said(key: Mapping[str, KeyPart], read: Mapping[str, ViewValues], requests: RequestValues) -> dict[str, Any]:
        return values_json(of, key, read, requests, t, batch.stale)

    return read_slice(batch, reads, place, start, t, head={"view": of.name}, said=said)


def read_slice(
    batch: BatchRequest,
    reads: Reads,
    place: int,
    start: int,
    t: int,
    *,
    head: Mapping[str, Any],
    said: Callable[[Mapping[str, KeyPart], Mapping[str, ViewValues], RequestValues], Any],
) -> list[Any]:
    """What `said` makes of each key of a slice, for one name; a key's error stands in its place, behind `head`."""
    of, found = batch.of[place], list[Any]()
    good: list[tuple[int, dict[str, KeyPart], RequestValues]] = []
    for number, given in enumerate(batch.keys[start : start + SLICE]):
        found.append({**head, "key": given})
        with errors_in(found[number]):
            good.append((number, key_from_json(of, given, batch.columns), batch.values(reads, place, start + number)))
    if not good:
        return found
    for (number, key, requests), read in zip(good, reads.read(of, [key for _, key, _ in good], t), strict=True):
        with errors_in(found[number]):
            found[number] = said(key, read, requests)
    return found


@contextmanager
def errors_in(place: dict[str, Any]) -> Iterator[None]:
    """A key's error stands in the place of its answer."""
    try:
        yield
    except HeadraceError as error:
        place |= {"error": error_json(error), "status": status_of(error)}
