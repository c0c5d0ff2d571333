"""A prediction as the scorer writes it, for tests and benchmarks that need many and no scorer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headrace.clock import show_time
from headrace.log.record import Message


def predicted(
    payment: str,
    score: float,
    at: int,
    *,
    event_time: int | None = None,
    version: int = 1,
    card: str = "a",
    decision: bool | None = None,
    features: Mapping[str, Any] | None = None,
) -> Message:
    """What a version said of a payment that arrived at a moment."""
    told = {
        "id": f"{payment}@{version}",
        "event_id": payment,
        "version": version,
        "role": "champion",
        "key": json.dumps({"card": card}),
        "at": show_time(at),
        "event_time": show_time(at if event_time is None else event_time),
        "partition": 0,
        "offset": 0,
        "score": score,
        "decision": score >= 0.5 if decision is None else decision,
        "features": json.dumps(features or {}),
        "request": "{}",
        "positions": "{}",
        "as_of": None,
        "freshness_ms": None,
        "folded": 0,
        "stale": False,
        "scored_at": show_time(at),
        "latency_ms": 1.0,
    }
    return Message(json.dumps(told).encode(), payment.encode())
