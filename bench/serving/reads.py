"""Part 1: reads over HTTP of 100,000 keys, mix A and mix B.

The program under test is `headrace run serve` with a store in LMDB, which it has filled itself from the changelog. With
one worker: latencies at 1,000 reads a second, and of 20 requests a second with 100 keys each, which is twice as many
keys; for mix A also while 1,000 tile updates a second come in. With two workers: the most reads a second, beside the
load on the same two cores.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness import Result, measured
from bench.serving.content import A, B, Content, Mix, content, fill, shop, trickle
from bench.serving.floor import floor
from bench.serving.open_loop import SPAWN, Asked, Request, Schedule, ask
from bench.serving.saturate import most_per_s
from bench.serving.served import Served, served
from bench.weigh import cpu_seconds
from headrace.project import Project

RATE, BATCHES, BATCH, UPDATES = 1_000, 20, 100, 1_000
ASKED = 20_000
"""Requests that are made up before they are sent, over and over."""
FEATURES = 20


@dataclass(frozen=True)
class Size:
    """How much is measured: keys, rounds, and seconds of one round of each kind."""

    keys: int
    rounds: int
    warm: float
    seconds: float
    saturated: int


FULL = Size(keys=100_000, rounds=3, warm=3.0, seconds=20.0, saturated=10)
QUICK = Size(keys=3_000, rounds=1, warm=1.0, seconds=3.0, saturated=2)
TARGETS = {"A": (0.4, 1.5, 10_000.0), "B": (1.0, 4.0, 3_000.0)}


def reads(quick: bool) -> list[Result]:
    """Both mixes, one after the other."""
    return [result for mix in (A, B) for result in _reads(mix, QUICK if quick else FULL)]


def singles(cards: Sequence[str]) -> list[Request]:
    """One key each."""
    return [Request(f"/v1/features/cards/{card}") for card in cards]


def batches(cards: Sequence[str], each: int = BATCH) -> list[Request]:
    """Several keys each.

    >>> batches(["a", "b", "c", "d"], each=2)[1].body
    '{"view": "cards", "keys": [{"card": "c"}, {"card": "d"}]}'
    """
    bodies = [[{"card": card} for card in cards[at : at + each]] for at in range(0, len(cards), each)]
    return [Request("/v1/features", json.dumps({"view": "cards", "keys": keys})) for keys in bodies]


def _reads(mix: Mix, size: Size) -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        made = shop(Path(folder), mix)
        held = content(made, mix, size.keys)
        fill(made, held)
        with served(made) as server:
            results = _filled(mix, server, held)
            results += _latencies(made, mix, server, held, size)
        with served(made, workers=2) as server:
            server.ready()
            server.at_rest()
            asked = singles(held.asked(ASKED))
            most = [most_per_s(server.port, asked, size.saturated, Path(folder)) for _ in range(size.rounds)]
        return [*results, measured(f"{mix.name}.max_per_s", most, "higher", TARGETS[mix.name][2])]


def _filled(mix: Mix, server: Served, held: Content) -> list[Result]:
    """What filling the store shows, and whether it answers."""
    rate = server.filled(held.rows)
    server.at_rest()
    refuse_wrong(server, held)
    stats = server.status()["store"]
    print(f"{mix.name}: {held.rows:,} rows of {held.keys:,} keys, {stats['bytes']:,} bytes", file=sys.stderr)
    before = "" if mix is A else f"{mix.name}."
    target = 50_000.0 if mix is A else None
    return [
        Result(f"{before}materialise_per_s", rate, "higher", target),
        Result(f"{before}bytes_per_key", stats["bytes"] / stats["keys"], "lower"),
        Result(f"{mix.name}.tiles_per_key_asked", _tiles_asked(held), "lower"),
    ]


def _tiles_asked(held: Content) -> float:
    """How many tiles a key has that is asked for, on average."""
    sizes = [len(tiles) for tiles in held.templates]
    return sum(size * size for size in sizes) / sum(sizes)


def refuse_wrong(server: Served, held: Content) -> None:
    """Refuse to measure answers that are not what was asked for."""
    for card in held.asked(20):
        told = server.get(f"/v1/features/cards/{card}")
        longest = max((value for name, value in told["features"].items() if name.startswith("count_")), default=0)
        if told["missing"] or len(told["features"]) != FEATURES or not longest:
            raise RuntimeError(f"{card} is not served: {told}")


def _latencies(made: Project, mix: Mix, server: Served, held: Content, size: Size) -> list[Result]:
    asked = singles(held.asked(ASKED))

    def rounds(requests: Sequence[Request], rate: int) -> list[Asked]:
        schedule = Schedule(rate, size.seconds, size.warm)
        return [ask(server.port, requests, schedule, made.config.root) for _ in range(size.rounds)]

    p50, p99, _ = TARGETS[mix.name]
    before = cpu_seconds(server.pid)
    results = told(f"{mix.name}.read.1k", rounds(asked, RATE), {50: p50, 99: p99})
    spent, count = cpu_seconds(server.pid) - before, RATE * size.rounds * (size.warm + size.seconds)
    results.append(Result(f"{mix.name}.read.cpu_us", spent * 1e6 / count, "lower"))
    if mix is A:
        with floor() as port:
            schedule = Schedule(RATE, size.seconds, size.warm)
            results += told("floor.1k", [ask(port, asked, schedule, made.config.root) for _ in range(size.rounds)], {})
        results += told("A.batch100", rounds(batches(held.asked(ASKED)), BATCHES), {99: 10.0})
        seconds = size.rounds * (size.warm + size.seconds) + 30
        writing = SPAWN.Process(target=trickle, args=(made.config.root, held, UPDATES, seconds), daemon=True)
        writing.start()
        try:
            results += told("A.read.1k.while_updated", rounds(asked, RATE), {})
        finally:
            writing.terminate()
            writing.join()
    return results


def told(name: str, rounds: Sequence[Asked], targets: dict[int, float]) -> list[Result]:
    """Percentiles of some rounds, and how often the client was late itself."""
    results = [
        measured(f"{name}.p{share}_ms", [each.percentile(share) for each in rounds], "lower", targets.get(share))
        for share in (50, 99)
    ]
    late = [each.late_share for each in rounds]
    return [*results, measured(f"{name}.sent_late_share", late, "lower")]
