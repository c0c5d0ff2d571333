"""Spark and Python make the same states: one query over every monoid and type, held to the definitions key by key."""

from __future__ import annotations

import decimal
import random
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from datasketches import kll_doubles_sketch

from headrace.aggregate import Aggregate, Distinct, EventSql, Frequent, Monoid, Quantiles, aggregate
from headrace.types.field_types import Boolean, Decimal, Float, Integer, String, Timestamp, Type
from tests.aggregate.cases import AGGREGATE_CASES, MONOID_CASES, TYPES, folded, known, same

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

GRAIN = 5_000_000
T = 25_000_000
AT = EventSql("time", "id", "tile")
COLUMNS = {kind: f"v{place}" for place, kind in enumerate(TYPES)}
CASES = list(dict.fromkeys(MONOID_CASES))
KEYS = ("calm", "large", "wild", "null")


@dataclass(frozen=True)
class Tiles:
    """The generated events by key, type and tile, and what Spark made of them."""

    events: dict[tuple[str, Type], dict[int, list[tuple[int, str, Any]]]]
    frame: DataFrame
    states: dict[tuple[str, int], list[Any]]


@pytest.fixture(scope="module")
def tiles(spark: SparkSession) -> Tiles:
    rows = _rows()
    columns = ", ".join(
        f"{name} {'BIGINT' if isinstance(kind, Timestamp) else kind.ddl}" for kind, name in COLUMNS.items()
    )
    given = spark.createDataFrame(rows, f"key STRING, tile BIGINT, time BIGINT, id STRING, keep BOOLEAN, {columns}")
    given.createOrReplaceTempView("given")
    made = ", ".join(f"{monoid.spark(_value_sql(kind), AT)} AS m{place}" for place, (monoid, kind) in enumerate(CASES))
    frame = spark.sql(f"SELECT key, tile, {made} FROM given GROUP BY key, tile").cache()
    states = {(row["key"], row["tile"]): [row[f"m{place}"] for place in range(len(CASES))] for row in frame.collect()}
    return Tiles(_by_key(rows), frame, states)


def _value_sql(kind: Type) -> str:
    column = f"timestamp_micros({COLUMNS[kind]})" if isinstance(kind, Timestamp) else COLUMNS[kind]
    return f"CASE WHEN keep THEN {column} END"


def _rows() -> list[tuple[Any, ...]]:
    draws = random.Random(11)
    rows: list[tuple[Any, ...]] = []
    for key in KEYS:
        for number in range(80):
            time = draws.choice([draws.randrange(4 * GRAIN), 2 * GRAIN, 2 * GRAIN + 1])
            values = [None if key == "null" or draws.random() < 0.2 else _value(kind, key, draws) for kind in TYPES]
            rows.append((key, time // GRAIN * GRAIN, time, f"{number * 7919 % 80:02}é", draws.random() < 0.9, *values))
    return rows


def _value(kind: Type, key: str, draws: random.Random) -> Any:
    match kind:
        case String():
            return draws.choice(["", "a", "b", "B", "ä", "🜁", "\uffff", "long " * 9, f"user-{draws.randrange(99)}"])
        case Boolean():
            return draws.random() < 0.5
        case Integer():
            return draws.choice([2**63 - 1, -(2**63), -1, 2**32]) if key == "wild" else draws.randrange(-50, 1_000)
        case Float():
            centre = {"calm": 0.0, "large": 1e9}.get(key)
            if centre is None:
                return draws.choice([1e300, -1e300, 0.0, -0.0, 5e-324, 0.1, -3.25])
            return centre + draws.gauss(0, 1)
        case Decimal(precision, scale):
            most = 10**precision - 1
            whole = (
                draws.choice([most, -most, 1, 0, draws.randrange(-most, most)])
                if key == "wild"
                else draws.randrange(500)
            )
            return decimal.Decimal(f"{whole}E-{scale}")
    return draws.choice([0, -1, 1_767_225_600_123_456, draws.randrange(2**50)])


def _by_key(rows: list[tuple[Any, ...]]) -> dict[tuple[str, Type], dict[int, list[tuple[int, str, Any]]]]:
    events: dict[tuple[str, Type], dict[int, list[tuple[int, str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for key, tile, time, id, keep, *values in rows:
        for kind, value in zip(TYPES, values, strict=True):
            events[key, kind][tile].append((time, id, value if keep else None))
    return events


def test_every_state_column_has_the_declared_type(tiles: Tiles) -> None:
    from pyspark.sql.types import DataType

    for place, (monoid, _) in enumerate(CASES):
        assert DataType.fromDDL(monoid.ddl).simpleString() == tiles.frame.schema[f"m{place}"].dataType.simpleString()


def test_spark_makes_the_same_state_of_a_tile_as_python(tiles: Tiles) -> None:
    for (key, tile), cells in tiles.states.items():
        for (monoid, kind), cell in zip(CASES, cells, strict=True):
            events = tiles.events[key, kind][tile]
            made, lifted = monoid.from_spark(cell), folded(monoid, events)
            assert same(monoid, made, lifted, events), (key, tile, monoid, made, lifted)


def test_a_tile_of_nulls_is_empty(tiles: Tiles) -> None:
    for (key, _), cells in tiles.states.items():
        if key == "null":
            for (monoid, _), cell in zip(CASES, cells, strict=True):
                assert monoid.from_spark(cell) == monoid.empty


def test_arrow_cells_are_read_like_collected_ones(tiles: Tiles) -> None:
    for row in tiles.frame.toArrow().to_pylist():
        for place, (monoid, _) in enumerate(CASES):
            collected = tiles.states[row["key"], row["tile"]][place]
            assert monoid.from_spark(row[f"m{place}"]) == monoid.from_spark(collected)


@pytest.mark.parametrize("key", KEYS)
def test_tiles_from_spark_finish_in_the_defined_value(tiles: Tiles, key: str) -> None:
    for asked in AGGREGATE_CASES:
        events = known(event for tile in tiles.events[key, asked.fed].values() for event in tile)
        states = [_merged(tiles, key, monoid, asked.fed) for monoid in asked.monoids]
        got, wanted = asked.finish(states, T), asked.exact(events, T)
        assert asked.close(got, wanted, events), (asked, got, wanted)


def _merged(tiles: Tiles, key: str, monoid: Monoid, kind: Type) -> Any:
    place = _place(monoid, kind)
    return monoid.fold(monoid.from_spark(cells[place]) for (owner, _), cells in tiles.states.items() if owner == key)


def _place(monoid: Monoid, kind: Type) -> int:
    return CASES.index((monoid, kind))


@pytest.mark.parametrize("key", ["calm", "wild"])
def test_values_hash_alike_in_spark_and_in_python(tiles: Tiles, key: str) -> None:
    for kind in TYPES:
        monoid, asked = Distinct(kind), aggregate("count_distinct", kind)
        events = known(event for tile in tiles.events[key, kind].values() for event in tile)
        both = monoid.merge(_merged(tiles, key, monoid, kind), folded(monoid, events))
        assert asked.finish([both], T) == asked.exact(events, T)


def test_spark_builds_sketches_of_the_declared_size(tiles: Tiles) -> None:
    hll, kll, items = Distinct(String()), Quantiles(Float()), Frequent(String(), 10)
    one_tile = tiles.states["calm", 0]
    assert hll.read(one_tile[_place(hll, String())]).lg_config_k == hll.form["lg_registers"]
    assert kll_doubles_sketch.deserialize(one_tile[_place(kll, Float())]).k == kll.form["k"]
    assert items.read(one_tile[_place(items, String())]).epsilon == 3.5 / 2 ** items.form["lg_slots"]


MANY = 20_000
LARGE: dict[Aggregate, tuple[Monoid, str]] = {
    aggregate("count_distinct", String()): (Distinct(String()), "concat('user-', id)"),
    aggregate("count_distinct", Integer()): (Distinct(Integer()), "id * 1000003"),
    aggregate("count_distinct", Float()): (Distinct(Float()), "id / 7D"),
    aggregate("count_distinct", Decimal(20, 3)): (Distinct(Decimal(20, 3)), "CAST(id / 8 AS DECIMAL(20,3))"),
    aggregate("quantile", Float(), q=0.5): (Quantiles(Float()), "sqrt(id)"),
    aggregate("top_k", Integer(), k=5): (Frequent(Integer(), 10), "CAST(pow(id, 0.5) / 4 AS BIGINT)"),
    aggregate("top_k", String(), k=5): (Frequent(String(), 10), "CAST(id * id % 1999 AS STRING)"),
}


def test_large_sketches_of_spark_and_python_merge_within_their_declared_error(spark: SparkSession) -> None:
    columns = [f"{sql} AS v{place}" for place, (_, sql) in enumerate(LARGE.values())]
    spark.range(MANY).selectExpr("id", *columns).createOrReplaceTempView("large")
    made = ", ".join(f"{monoid.spark(f'v{place}', AT)} AS m{place}" for place, (monoid, _) in enumerate(LARGE.values()))
    cells = {row["half"]: row for row in spark.sql(f"SELECT id % 2 half, {made} FROM large GROUP BY half").collect()}
    values = spark.sql("SELECT * FROM large ORDER BY id").toArrow().to_pydict()
    for place, (asked, (monoid, _)) in enumerate(LARGE.items()):
        events = [(0, str(id), value) for id, value in enumerate(values[f"v{place}"])]
        even, odd = (monoid.from_spark(cells[half][f"m{place}"]) for half in (0, 1))
        python = monoid.fold(monoid.lift(value, time, id) for time, id, value in events[1::2])
        for merged in (monoid.merge(even, odd), monoid.merge(even, python)):
            assert asked.close(asked.finish([merged], T), asked.exact(events, T), events), asked
        if isinstance(monoid, Distinct):
            twice = asked.finish([monoid.fold([even, odd, python])], T)
            assert asked.close(twice, twice, events), asked
