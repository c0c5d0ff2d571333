"""The partial columns of a tile, for every aggregate: names, Spark types, SQL and packed states."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from headrace.aggregate import EventSql
from headrace.meaning.reference import ReferenceResult
from headrace.plan.build import build
from headrace.testing import record
from headrace.tiles.fold import folds
from headrace.tiles.levels import ReadPiece
from tests.frozen.shop import MINUTE
from tests.serve.shape import rows_of
from tests.streams import BASE, every_aggregate, payments

plan = build([every_aggregate])
(tile_set,) = plan.tile_sets
AMOUNTS = (12.5, None, -3.25, 99.0, 1e9)


def tile_rows():
    """Rows of one card: five payments, a minute apart, one of them without an amount."""
    given = []
    for number, amount in enumerate(AMOUNTS):
        country = ("DE", "FR")[number % 2]
        fields = {"id": f"p{number}", "card": "42", "amount": amount, "cents": 7 * number, "country": country}
        made = record(payments, at=BASE + number * MINUTE, arrived_at=BASE + number * MINUTE + 5, **fields)
        given.append(replace(made, offset=number))
    return rows_of(ReferenceResult(plan, given), tile_set, (BASE + 60 * MINUTE,))


def test_every_partial_column_has_the_name_type_and_sql_that_it_had(golden):
    at = EventSql("`~event_time`", "`~event_id`", "`~start`")
    lines = []
    for column in tile_set.partials:
        lines += [f"{column.name} {column.monoid.ddl}", f"  {column.monoid.spark(column.value.spark(), at)}"]
    golden("frozen/partial_columns", "\n".join(lines))


def test_a_level_row_has_the_bytes_that_it_had(golden):
    fold = folds(plan)[tile_set.fingerprint]
    pieces = [ReadPiece(row.tile, 0, row.partials) for row in tile_rows()]
    lines = [f"layout {msgspec.json.encode(fold.layout).decode()}"]
    lines += [f"tile {piece.start} {piece.partials!r}" for piece in pieces]
    lines.append(f"level 1 {fold.merge(1, pieces).hex()}")
    golden("frozen/level_row", "\n".join(lines))
