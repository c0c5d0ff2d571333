"""A flow of payments as it comes from real producers: doubled (in other partitions too), late, ahead, broken.

What is sent is also what a checker reads: one dict per record, in the order of sending, with what it was made to be.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.log.record import Message

BROKEN = [
    b"\xff\xfe not text",
    b"",
    b"{",
    b'{"id": "x"',
    b"[" * 5_000,
    b'{"id": NaN}',
    b'{"id":"a","id":"b"}',
    b"null true",
]
WRONG = [
    b"[]",
    b"null",
    b"{}",
    b'"text"',
    b'{"id":"x","card":"c","amount":1e400,"country":"DE","at":"2026-01-01T00:00:00Z"}',
]


def flow(count: int, *, seed: int, partitions: int, now: datetime, first: int = 0) -> Iterator[dict[str, Any]]:
    """`count` records as they are sent at about `now`, numbered from `first`."""
    chance = random.Random(seed)
    sent: list[dict[str, Any]] = []
    for seq in range(first, first + count):
        kind = chance.random()
        made: dict[str, Any] = {"seq": seq, "partition": chance.randrange(partitions)}
        if kind < 0.01:
            yield made | {"kind": "malformed", "value": _told(chance.choice(BROKEN))}
        elif kind < 0.02:
            yield made | {"kind": "invalid", "value": _told(chance.choice(WRONG))}
        elif kind < 0.12 and sent:
            # A copy: soon after or long after, in any partition, now and then contradicting the first.
            copied = chance.choice(sent[-50:] if chance.random() < 0.5 else sent)
            row = dict(copied["row"])
            if chance.random() < 0.05:
                row["amount"] = round(row["amount"] + 1, 2)
            yield made | _event(row, copied["at"])
        else:
            shift = -chance.expovariate(1 / 0.3)
            if kind < 0.16:
                shift = -chance.uniform(400, 4_000)
            elif kind < 0.18:
                shift = chance.uniform(300, 4_000)
            at = now + timedelta(seconds=shift)
            row = {
                "id": f"{seed}-{seq}",
                "card": f"card-{chance.randrange(300)}",
                "amount": round(chance.uniform(1, 500), 2),
                "country": chance.choice(["DE", "FR", "PL"]),
                "at": at.isoformat().replace("+00:00", "Z"),
            }
            event = _event(row, at)
            sent.append({"row": row, "at": at})
            yield made | event


def _event(row: dict[str, Any], at: datetime) -> dict[str, Any]:
    micros = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return {"kind": "event", "value": _told(json.dumps(row).encode()), "row": row, "id": row["id"], "at": micros}


def _told(value: bytes) -> str:
    return base64.b64encode(value).decode()


def message(record: dict[str, Any]) -> Message:
    """A record as it is appended; its number travels in a header."""
    return Message(base64.b64decode(record["value"]), headers=(("seq", str(record["seq"]).encode()),))
