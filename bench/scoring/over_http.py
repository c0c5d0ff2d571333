"""Part 1: scores over HTTP, one card each, of 100,000 cards with mix A.

The program under test is `headrace run serve` with a store that it has filled itself and that is at rest, and the
process of the model's version that it has started. With one worker: latencies at 1,000 requests a second. With two: the
most a second, beside the load on the same two cores. The requests are those of `bench.serving`'s reads, with a body.
"""

from __future__ import annotations

import json
import tempfile
import urllib.error
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.harness import Result, measured
from bench.realtime.compare import until
from bench.scoring.champion import MIX, MODEL, promoted, shop
from bench.serving.content import Content, content, fill
from bench.serving.open_loop import Request, Schedule, ask
from bench.serving.reads import ASKED, FEATURES, FULL, QUICK, RATE, Size, told
from bench.serving.saturate import most_per_s
from bench.serving.served import Served, served
from bench.weigh import cpu_seconds

PATH = f"/v1/score/{MODEL}"
LOOKED = 40
"""Scores in a row that must be right before any is timed: every worker has answered some of them."""
SHARE = 0.999
"""Of a saturated server's answers, how many must have been scores."""


def http(quick: bool) -> list[Result]:
    """Latencies with one worker, then the most with two."""
    size = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = shop(folder)
        version = promoted(made)
        held = content(made, MIX, size.keys)
        fill(made, held)
        asked = bodies(held.asked(ASKED))
        with served(made) as server:
            server.filled(held.rows)
            _settled(server, held, version)
            results = _latencies(server, asked, size, folder)
        with served(made, workers=2) as server:
            server.ready()
            _settled(server, held, version)
            most = [_most(server, asked, size.saturated, folder) for _ in range(size.rounds)]
    return [*results, measured("score.max_per_s", most, "higher")]


def bodies(cards: Sequence[str]) -> list[Request]:
    """A card each.

    >>> bodies(["card-7"])
    [Request(path='/v1/score/fraud', body='{"key": {"card": "card-7"}}')]
    """
    return [Request(PATH, json.dumps({"key": {"card": card}})) for card in cards]


def _settled(server: Served, held: Content, version: int) -> None:
    """Wait until every worker scores and nothing is left to do, and refuse what is no score of these cards."""
    cards = held.asked(LOOKED)
    until(lambda: _answers(server, cards), "the model does not answer")
    server.at_rest()
    refuse_wrong([server.post(PATH, {"key": {"card": card}}) for card in cards], version)


def _answers(server: Served, cards: Sequence[str]) -> bool:
    try:
        return not any(server.post(PATH, {"key": {"card": card}})["errors"] for card in cards)
    except urllib.error.HTTPError as error:
        error.close()
        return False


def refuse_wrong(said: Sequence[dict[str, Any]], version: int) -> None:
    """Refuse to measure answers that are no scores of a version, made of all features of cards that are there."""
    scores = set()
    for each in said:
        (answer,) = each["answers"]
        features = answer.get("features", {})
        good = "score" in answer and answer["version"] == version and len(features) == FEATURES
        if not good or not features["count_7d"]:
            raise RuntimeError(f"the answer is no score: {each}")
        scores.add(answer["score"])
    if len(scores) < 2:
        raise RuntimeError(f"all cards have the same score, {scores}")


def _latencies(server: Served, asked: Sequence[Request], size: Size, folder: Path) -> list[Result]:
    schedule = Schedule(RATE, size.seconds, size.warm)
    before = _standing(server)
    spent = cpu_seconds(server.pid)
    rounds = [ask(server.port, asked, schedule, folder) for _ in range(size.rounds)]
    after, count = _standing(server), size.rounds * int((size.warm + size.seconds) * RATE)
    refuse_unscored(before, after, count)
    if before["processes"] != after["processes"]:
        raise RuntimeError(f"the model's process has died: {before['processes']}, then {after['processes']}")
    return [
        *told("score.1k", rounds, {99: 3.0}),
        Result("score.cpu_us", (cpu_seconds(server.pid) - spent) * 1e6 / count, "lower"),
    ]


def _most(server: Served, asked: Sequence[Request], seconds: int, folder: Path) -> float:
    before = _standing(server)
    most = most_per_s(server.port, asked, seconds, folder)
    refuse_unscored(before, _standing(server), int(most * seconds * SHARE))
    return most


def _standing(server: Served) -> dict[str, Any]:
    standing: dict[str, Any] = server.status()["models"][MODEL]
    return standing


def refuse_unscored(before: dict[str, Any], after: dict[str, Any], count: int) -> None:
    """Refuse a run in which not every answer was a score: one with an error in it is a 200 as well.

    Parameters
    ----------
    before, after
        What `/status.json` says of the model.
    count
        How many scores there must have been in between, at the least.
    """
    scored, failures = (after[what] - before[what] for what in ("scored", "failures"))
    if scored < count or failures:
        raise RuntimeError(f"{scored:,} of {count:,} answers were scores, and {failures:,} failed")
