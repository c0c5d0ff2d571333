"""Cases: small streams of their own that share one log, told apart by what their keys begin with.

A case says which events there are and how often, when and where each is delivered; `messages_of` makes of all cases the
messages of the two streams, in the order in which they are appended. What they mean is the reference interpreter's
business, over the records that a log then holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headrace.clock import SECOND
from headrace.codec.wire import encoder
from headrace.log.record import Message, Position, Record
from headrace.meaning.verdict import ARRIVED_AT
from tests.conformance.definitions import ARRIVED, clicks, orders

BASE = 1_767_225_600 * SECOND  # 2026-01-01T00:00:00Z, on every boundary there is
EVERYTHING = "everything"
"""The one case of a view without a key: all others together."""


@dataclass(frozen=True)
class Delivery:
    """One record of an event: how long after it happened it arrives, and in which partition.

    With `again` it was appended so much later once more, with its first arrival in a header.
    """

    delay: int = 0
    partition: int = 0
    again: int | None = None


@dataclass(frozen=True)
class Sent:
    """One event, `happened` after `BASE`, and its deliveries. `raw` is sent in place of its fields."""

    id: str
    happened: int
    card: str = "a"
    fields: Mapping[str, Any] = field(default_factory=dict)
    deliveries: tuple[Delivery, ...] = (Delivery(),)
    raw: bytes | None = None


@dataclass(frozen=True)
class Case:
    """A named stream. Its events' ids and cards begin with its name, unless it brings cards nobody else has."""

    name: str
    sent: tuple[Sent, ...]
    own_cards: bool = False

    def card(self, sent: Sent) -> str:
        """The card of an event."""
        return sent.card if self.own_cards else f"{self.name}/{sent.card}"


class Appended(NamedTuple):
    """A message and where and when it is appended."""

    at: int
    topic: str
    partition: int
    message: Message


def messages_of(cases: Sequence[Case]) -> list[Appended]:
    """The messages of every case in the order of their appends."""
    users = users_of(cases)
    write = {stream.name: encoder(stream) for stream in (orders, clicks)}
    made: list[Appended] = []
    for case in cases:
        for sent in case.sent:
            happened, card = BASE + sent.happened, case.card(sent)
            order = {"shop": 1, "online": False, **sent.fields, "id": f"{case.name}/{sent.id}", "card": card}
            for delivery in sent.deliveries:
                arrived = happened + delivery.delay
                click = {"user": users[card], "cents": sent.fields.get("cents"), "at": happened, "seen": arrived}
                for topic, fields in (("orders", {**order, "at": happened}), ("clicks", click)):
                    value = write[topic](fields) if sent.raw is None else sent.raw
                    made.append(_appended(topic, delivery, arrived, value))
    return sorted(made, key=lambda each: each.at)


def _appended(topic: str, delivery: Delivery, arrived: int, value: bytes) -> Appended:
    headers = [(ARRIVED, str(arrived).encode())]
    if delivery.again is not None:
        headers.append((ARRIVED_AT, str(arrived).encode()))
    at = arrived + (delivery.again or 0)
    return Appended(at, topic, delivery.partition, Message(value, None, tuple(headers)))


def records_of(cases: Sequence[Case]) -> list[Record]:
    """The records of every case as a log would hold them that takes every message at its time."""
    heads: Counter[tuple[str, int]] = Counter()
    made = []
    for at, topic, partition, message in messages_of(cases):
        place = Position(partition, heads[topic, partition])
        made.append(Record(topic, *place, at, message.key, message.value, message.headers))
        heads[topic, partition] += 1
    return made


def users_of(cases: Iterable[Case]) -> dict[str, int]:
    """A number for every card, which is the key of the clicks; negative ones too."""
    cards = dict.fromkeys(case.card(sent) for case in cases for sent in case.sent)
    return {card: number * (-1) ** number for number, card in enumerate(cards)}


def cases_by_key(cases: Sequence[Case]) -> dict[Any, str]:
    """The name of the case that a card, or a user's number, belongs to."""
    users = users_of(cases)
    found: dict[Any, str] = {}
    for case in cases:
        for sent in case.sent:
            for part in (case.card(sent), users[case.card(sent)]):
                if found.setdefault(part, case.name) != case.name:
                    raise ValueError(f"cases {case.name} and {found[part]} share the key {part!r}")
    return found
