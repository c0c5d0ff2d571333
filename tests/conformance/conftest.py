"""Worlds and what engines leave in them, each made once and then asked about by many tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from headrace.log import MemoryLog
from headrace.log.record import Message
from headrace.read.reader import Reader
from headrace.store import LmdbStore, Materialiser
from headrace.store.protocol import Store
from headrace.tiles.run_choice import FIRST_RUN
from tests.budget import count_cases
from tests.conformance.cases import EVERYTHING
from tests.conformance.compare import Difference, Meaning, folded, row_differences, tile_differences, value_differences
from tests.conformance.engines import ENGINES, Engine, Pairs
from tests.conformance.generated import generated
from tests.conformance.scenarios import SCENARIOS
from tests.conformance.world import FEW_COLUMNS, World, embedded_world, kafka_world

SHARE = 2 / 5
"""20 generated cases in `make test`, 200 in `make prove`."""


class Result:
    """The tiles that an engine made of a world, held to what they should be; every comparison is made once."""

    def __init__(self, engine: Engine, meaning: Meaning, changelogs: dict[str, Pairs]) -> None:
        self.engine, self.meaning, self.changelogs = engine, meaning, changelogs
        self._differences: dict[str, dict[str, list[str]]] = {}

    def _once(self, what: str, made: Callable[[], Iterable[Difference]]) -> dict[str, list[str]]:
        if what not in self._differences:
            by_case: dict[str, list[str]] = defaultdict(list)
            for case, said in made():
                by_case["generated" if case.startswith("generated") else case].append(f"{case}: {said}")
            self._differences[what] = by_case
        return self._differences[what]

    def tiles(self, case: str) -> list[str]:
        """Where the tiles of a case are not those of the reference."""

        def made() -> Iterable[Difference]:
            for tile_set in self.meaning.plan.tile_sets:
                yield from tile_differences(self.meaning, tile_set, folded(self.changelogs[tile_set.id]))

        return self._once("tiles", made).get(case, [])

    def rows(self) -> list[str]:
        """Where rows say of themselves what is not so."""

        def made() -> Iterable[Difference]:
            for tile_set in self.meaning.plan.tile_sets:
                found = folded(self.changelogs[tile_set.id])
                yield from row_differences(self.meaning, tile_set, found, counted=self.engine.run == FIRST_RUN)

        return [said for each in self._once("rows", made).values() for said in each]

    def values(self, case: str, store: Store, most: int) -> list[str]:
        """Where values that are read from a store of these tiles are not those of the reference."""

        def made() -> Iterable[Difference]:
            plan = self.meaning.plan
            reader = Reader(
                plan, self._filled(store), dict.fromkeys((tile_set.id for tile_set in plan.tile_sets), self.engine.run)
            )
            for view in {planned.view.name: planned.view for planned in plan.features}.values():
                yield from value_differences(self.meaning, reader, view, most)

        return self._once(f"values in a {type(store).__name__}", made).get(case, [])

    def _filled(self, store: Store) -> Store:
        """The store, with the changelogs folded in by the materialiser."""
        log = MemoryLog()
        for name, pairs in self.changelogs.items():
            log.create_topic(name, compacted=True)
            log.append_batch(name, [Message(value, key) for key, value in pairs])
        filler = Materialiser(log, store, list(self.changelogs))
        while filler.step():
            pass
        assert not filler.counts["malformed"]
        return store


@pytest.fixture(scope="session")
def world_of(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[World, Meaning]]:
    """A world by its name and what it means, made when it is first asked for."""
    made: dict[str, tuple[World, Meaning]] = {}
    cases = [*SCENARIOS.values(), *generated(count_cases(SHARE))]

    def of(name: str) -> tuple[World, Meaning]:
        if name not in made:
            folder = tmp_path_factory.mktemp("world")
            match name:
                case "kafka":
                    world = kafka_world(cases, folder, request.getfixturevalue("kafka").brokers)
                case "half archived":
                    world = embedded_world(cases, folder, FEW_COLUMNS)
                case _:
                    world = embedded_world(cases, folder)
            made[name] = (world, Meaning(world))
        return made[name]

    return of


def _engine(engine: Engine) -> object:
    marks = [] if engine.name == "reference" else [pytest.mark.spark]
    if engine.world == "kafka":
        marks.append(pytest.mark.kafka)
    return pytest.param(engine, id=engine.name.replace(" ", "-"), marks=marks)


@pytest.fixture(scope="session", params=[_engine(engine) for engine in ENGINES])
def result(request: pytest.FixtureRequest, world_of: Callable[[str], tuple[World, Meaning]]) -> Result:
    """What an engine leaves behind, together with the late lane of the same world."""
    engine: Engine = request.param
    session = None if engine.name == "reference" else request.getfixturevalue("spark")
    world, meaning = world_of(engine.world)
    return Result(engine, meaning, engine.everything(world, session))


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Result], Store]:
    """A store in files for each result."""
    made: dict[str, LmdbStore] = {}

    def of(result: Result) -> Store:
        if result.engine.name not in made:
            made[result.engine.name] = LmdbStore(Path(tmp_path_factory.mktemp("store")))
        return made[result.engine.name]

    return of


CASES = (*SCENARIOS, "generated", EVERYTHING)
