"""What was caught, how fast it was, and whether everything adds up: the demo's report as JSON."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from headrace.clock import micros
from headrace.codec.json.rules import LATEST
from headrace.define.view import View
from headrace.log.protocol import Log
from headrace.log.record import Record
from headrace.meaning.equality import differences
from headrace.meaning.reference import ReferenceResult
from headrace.project import Project
from headrace.serve.monitor import percentiles
from headrace.skew.audit import audit
from headrace_demo import stack
from headrace_demo.shop import Past
from headrace_demo.stale import Stale
from headrace_demo.traffic import Seen
from headrace_demo.world.files import KEPT
from headrace_demo.world.report import Comparison, Quality, compare
from headrace_demo.world.stream import history

FALSE_ALARMS = 0.01
"""The share of honest payments that may raise an alarm, whoever scores."""
CARDS, READS = 3, 500
PATIENCE = 300.0
"""Seconds in which everything must be servable: on a small machine that is busy with other things it takes a while."""
LATE_LANE = 120.0
"""Seconds in which late payments must count."""
IMPORTED = 1_000
"""The partition that history is given when it is handed to the reference."""


def observed(project: Project, past: Past, log: Log, reader: stack.Reader, seen: Seen) -> dict[str, Any]:
    """What can be said while everything still runs: verdicts, values beside the reference, how fast it was."""
    view = next(view for view in project.views if view.name == "card_activity")
    busiest, live = _busiest(seen), stack.everything(log, "payments", "payments")
    verdicts, meaning = (
        ReferenceResult(project.plan(), live).verdicts("payments"),
        _meaning(project, past, live, busiest),
    )
    stack.included(reader, view, busiest[0], max(each.sent_at for each in seen.sent), PATIENCE)
    status, known = stack.settled(reader, "payments"), seen.scored.values()
    return {
        "sent": len(seen.sent),
        "verdicts": status["streams"]["payments"]["verdicts"],
        "reference_verdicts": verdicts,
        "payments": len(seen.payments),
        "scored": len(seen.scored),
        "alarms": {"raised": seen.alarms, "fraud": seen.caught},
        "arrival_to_score": _shares([each.latency_ms for each in known]),
        "feature_age": _shares([each.freshness_ms for each in known if each.freshness_ms is not None]),
        "arrival_to_servable": status["latency"]["arrival_to_servable"],
        "read": _shares(_timed_reads(reader, view, busiest)),
        "skew": audit(project.plan(), project.config, log, min(each.sent_at for each in seen.sent), LATEST).as_json(),
        "features": _beside_the_reference(meaning, view, reader, busiest),
    }


def _busiest(seen: Seen) -> list[str]:
    counts = Counter(each.event["card"] for each in seen.payments.values())
    return [card for card, _ in counts.most_common(CARDS)]


def _meaning(project: Project, past: Past, live: Sequence[Record], cards: Sequence[str]) -> ReferenceResult:
    """What the reference makes of all payments of some cards, those of the past included."""
    keys = {card.encode() for card in cards}
    before = [each for each in history(past.world, moved=past.moved) if each.key in keys and each.kind in KEPT]
    imported = [Record("payments", IMPORTED, at, each.sent_at, each.key, each.value) for at, each in enumerate(before)]
    return ReferenceResult(project.plan(), [*imported, *(record for record in live if record.key in keys)])


def _beside_the_reference(
    outcome: ReferenceResult, view: View, reader: stack.Reader, cards: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """What is served of cards beside what the reference says of the same moment, and where they differ.

    Late payments count some seconds after they came, when their lane has them: so long it is looked again.
    """
    deadline = time.monotonic() + LATE_LANE
    while True:
        found = {card: _compared(outcome, view, card, reader.features(view, card)) for card in cards}
        if not any(each["differences"] for each in found.values()) or time.monotonic() > deadline:
            return found
        time.sleep(1.0)


def _compared(outcome: ReferenceResult, view: View, card: str, answer: Any) -> dict[str, Any]:
    moment = (micros(answer["at"]),)
    return {
        "served": answer["features"],
        "reference": outcome.values(view, (card,), moment),
        "differences": differences(outcome, view, (card,), moment, answer["features"]),
    }


def _shares(milliseconds: Sequence[float]) -> dict[str, float | None]:
    median, high = percentiles(milliseconds)
    return {"p50_ms": median, "p99_ms": high}


def _timed_reads(reader: stack.Reader, view: View, cards: list[str]) -> list[float]:
    taken = []
    for number in range(READS):
        began = time.perf_counter()
        reader.features(view, cards[number % len(cards)])
        taken.append((time.perf_counter() - began) * 1_000)
    return taken


def caught(seen: Seen, stale: Stale) -> dict[str, Any]:
    """How much of the fraud each score catches at the same rate of false alarms; `stale` in the order of `scored`."""
    truth = [seen.payments[name].is_fraud for name in seen.scored]
    fresh = [each.score for each in seen.scored.values()]
    same, own = (compare(truth, fresh=fresh, stale=each, false_alarm_rate=FALSE_ALARMS) for each in stale)
    return {
        "false_alarm_rate": FALSE_ALARMS,
        "frauds": same.fresh.caught.frauds,
        "honest": same.fresh.caught.honest,
        "fresh": _quality(same.fresh),
        "hour_old": _quality(same.stale) | _against(same),
        "hour_old_own_model": _quality(own.stale) | _against(own),
    }


def _quality(quality: Quality) -> dict[str, Any]:
    found = quality.caught
    low, high = found.interval
    more = {"recall": found.recall, "recall_interval": [low, high], "auc": quality.auc}
    return {name: value for name, value in asdict(found).items() if name not in ("frauds", "honest")} | more


def _against(made: Comparison) -> dict[str, Any]:
    return {"only_fresh": made.only_fresh, "only_this": made.only_stale, "by_luck": made.by_luck}


def judge(found: dict[str, Any]) -> dict[str, Any]:
    """The report with its verdict on itself.

    Do the counts add up, are the values equal, has every payment a score, was nothing served that nothing excuses?
    """
    adds_up = sum(found["verdicts"].values()) == found["sent"] and found["verdicts"] == found["reference_verdicts"]
    equal = not any(card["differences"] for card in found["features"].values())
    return found | {
        "verdicts_add_up": adds_up,
        "equal": equal,
        "all_scored": found["scored"] == found["payments"],
        "no_defect": not found["skew"]["causes"]["defect"],
    }
