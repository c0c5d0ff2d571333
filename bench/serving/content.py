"""A project whose changelog has the tiles of any number of keys, in the order of time, as a pipeline writes them.

Some keys are computed with the monoids of the plan from payments spread over the longest window; all others are copies
of them under other names, so that a hundred thousand keys take a minute to write and are read like any. How many tiles
a key has is drawn from a log-normal distribution: most have a few, some have hundreds. A card is read when it is used,
so keys are asked for in proportion to their tiles.
"""

from __future__ import annotations

import math
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from headrace import project
from headrace.cli.init import create
from headrace.clock import DAY, HOUR, SECOND, SystemClock
from headrace.config.config import names
from headrace.log.protocol import Log
from headrace.log.record import Message
from headrace.plan.model import TileSet
from headrace.project import Project
from headrace.status.records import PipelineStatus
from headrace.status.topic import StatusPublisher
from headrace.tiles.changelog import ProgressRow, TileRow
from headrace.tiles.changelog_format import encode
from headrace.tiles.run_choice import FIRST_RUN
from headrace.topics import STATUS, open_log, topics
from headrace.topics import create as create_topics
from tests.serve.shape import to_json

HERE = Path(__file__).parent
CHUNK = 20_000
TICK = 0.02
MERCHANTS = 500
CARD = "card-@"
"""Stands for a key's name in a row that is to be copied."""


@dataclass(frozen=True)
class Mix:
    """Features, and the keys they are of.

    Parameters
    ----------
    file
        Where the view is defined.
    back
        Microseconds over which a key's tiles are spread; a little less than the longest window.
    median, sigma, most
        The log-normal distribution of the tiles of a key.
    """

    name: str
    file: str
    back: int
    median: float
    sigma: float
    most: int = 1_000


A = Mix("A", "mix_a.py", 7 * DAY - 2 * HOUR, median=10, sigma=1.2)
B = Mix("B", "mix_b.py", 30 * DAY - 12 * HOUR, median=15, sigma=1.0)


@dataclass(frozen=True)
class Tile:
    """A tile of a template: when it begins, its newest event, how many it has, and its columns."""

    start: int
    newest: int
    events: int
    partials: bytes


@dataclass(frozen=True)
class Content:
    """What is in a changelog: so many keys, each a copy of a template."""

    keys: int
    templates: Sequence[Sequence[Tile]]

    @cached_property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(len(self.templates[number % len(self.templates)]) for number in range(self.keys))

    def asked(self, count: int, seed: int = 11) -> list[str]:
        """Keys in the order in which they are asked for, in proportion to their tiles."""
        chance, kinds = random.Random(seed), range(min(len(self.templates), self.keys))
        chosen = chance.choices(kinds, weights=[len(self.templates[kind]) for kind in kinds], k=count)
        step = len(self.templates)
        return [card(kind + step * chance.randrange((self.keys - kind - 1) // step + 1)) for kind in chosen]


def card(number: int) -> str:
    """A key.

    >>> card(7)
    'card-7'
    """
    return f"card-{number}"


def shop(folder: Path, mix: Mix, settings: str = "", *, mode: str = "micro-batch") -> Project:
    """A project with the view of a mix."""
    root = folder / "shop"
    create(root)
    shutil.copy(HERE / mix.file, root / "features.py")
    file = root / "headrace.toml"
    text = file.read_text("utf-8").replace('mode = "micro-batch"', f'mode = "{mode}"')
    file.write_text(text + settings, encoding="utf-8")
    return project.load(root)


def prepare(made: Project, log: Log) -> None:
    """Create the topics."""
    create_topics(log, topics(made.plan(), names(made.config), made.config.log.partitions))


def content(made: Project, mix: Mix, keys: int, templates: int = 500) -> Content:
    """Templates for so many keys, as of now."""
    chance, now = random.Random(5), SystemClock().now()
    (tile_set,) = made.plan().tile_sets
    sizes = [_size(chance, mix) for _ in range(min(templates, keys))]
    return Content(keys, [list(_tiles(tile_set, chance, size, mix.back, now)) for size in sizes])


def _size(chance: random.Random, mix: Mix) -> int:
    return min(mix.most, max(1, round(chance.lognormvariate(math.log(mix.median), mix.sigma))))


def _tiles(tile_set: TileSet, chance: random.Random, tiles: int, back: int, now: int) -> Iterator[Tile]:
    """Tiles of one key: more of them lately than long ago, each of one to three payments."""
    columns = [(partial.name, partial.monoid, partial.value.python()) for partial in tile_set.partials]
    starts = set[int]()
    while len(starts) < tiles:
        at = now - int(back * chance.random() ** 3)
        starts.add(at - at % tile_set.grain)
    for start in sorted(starts):
        states: dict[str, Any] = {name: monoid.empty for name, monoid, _ in columns}
        moments = sorted(start + chance.randrange(tile_set.grain) for _ in range(chance.randint(1, 3)))
        for number, at in enumerate(moments):
            row = _payment(f"p{start}-{number}", at, chance)
            for name, monoid, eaten in columns:
                states[name] = monoid.merge(states[name], monoid.lift(eaten(row), at, row["id"]))
        partials = to_json((name, monoid, states[name]) for name, monoid, _ in columns)
        yield Tile(start, moments[-1], len(moments), partials)


def _payment(name: str, at: int, chance: random.Random) -> dict[str, Any]:
    amount, number = chance.randint(1, 90_000) / 100, chance.randrange(MERCHANTS)
    return {"id": name, "card": CARD, "amount": amount, "country": "DE", "merchant": f"m{number}", "at": at}


def fill(made: Project, held: Content) -> None:
    """Write the changelog, and say that a pipeline is there and has read everything."""
    (tile_set,) = made.plan().tile_sets
    topic = names(made.config).topic(f"changelog.{tile_set.id}")
    with closing(open_log(made.config)) as log:
        prepare(made, log)
        waiting = list[Message]()
        for message in messages(tile_set, held):
            waiting.append(message)
            if len(waiting) == CHUNK:
                log.append_batch(topic, waiting)
                waiting = []
        log.append_batch(topic, waiting)
        say(made, log)


def messages(tile_set: TileSet, held: Content) -> Iterator[Message]:
    """All rows, oldest tile first, so that rows of one key lie far apart."""
    step = len(held.templates)
    ordered = sorted(
        ((tile, kind) for kind, tiles in enumerate(held.templates) for tile in tiles), key=lambda each: each[0].start
    )
    for tile, kind in ordered:
        before, after, value = parts(tile_set, tile)
        for number in range(kind, held.keys, step):
            yield Message(value, before + card(number).encode() + after)


def parts(tile_set: TileSet, tile: Tile) -> tuple[bytes, bytes, bytes]:
    """What stands before and after a key's name in the key of a tile's record, and the record's value."""
    row = TileRow(
        tile_set.fingerprint,
        FIRST_RUN,
        (CARD,),
        tile.start,
        "on_time",
        tile.events,
        tile.partials,
        {0: tile.start // SECOND},
        tile.newest,
        tile.newest + 1_000,
    )
    key, value = encode(row, tuple(name for name, _ in tile_set.key))
    before, _, after = key.partition(CARD.encode())
    return before, after, value or b""


def say(made: Project, log: Log) -> None:
    """What a pipeline says: that everything up to now is included, and that it is there."""
    named, now = names(made.config), SystemClock().now()
    (tile_set,) = made.plan().tile_sets
    key, value = encode(ProgressRow(tile_set.fingerprint, FIRST_RUN, {0: now // SECOND}, now))
    log.append(named.topic(f"changelog.{tile_set.id}"), value, key=key)
    StatusPublisher(log, named.topic(STATUS), SystemClock()).publish(PipelineStatus())


def trickle(root: Path, held: Content, per_s: int, seconds: float) -> None:
    """Go on writing the changelog as a pipeline would: tiles of now, of keys in proportion to their tiles."""
    made = project.load(root)
    (tile_set,) = made.plan().tile_sets
    topic, clock = names(made.config).topic(f"changelog.{tile_set.id}"), SystemClock()
    cards, columns = held.asked(CHUNK, seed=13), [tile.partials for tiles in held.templates for tile in tiles]
    with closing(open_log(made.config)) as log:
        began, sent, spoke = time.perf_counter(), 0, 0
        while (passed := time.perf_counter() - began) < seconds:
            due, now, waiting = int(passed * per_s), clock.now(), list[Message]()
            for number in range(sent, due):
                tile = Tile(now - now % tile_set.grain, now, number + 1, columns[number % len(columns)])
                before, after, value = parts(tile_set, tile)
                waiting.append(Message(value, before + cards[number % len(cards)].encode() + after))
            log.append_batch(topic, waiting)
            sent = max(sent, due)
            if int(passed) > spoke:
                spoke = int(passed)
                say(made, log)
            time.sleep(TICK)
