"""The bytes of the changelog: what one of each kind of row looks like as a record's key and value."""

from __future__ import annotations

from headrace.tiles.changelog_format import decode, encode
from tests.frozen.shop import ROWS


def test_every_kind_of_row_has_the_bytes_it_had(golden):
    lines = []
    for name, (row, key_columns) in ROWS.items():
        key, value = encode(row, key_columns)
        lines += [name, f"  key   {key.hex()}", f"  value {'none' if value is None else value.hex()}"]
    golden("frozen/changelog_bytes", "\n".join(lines))


def test_every_kind_of_row_is_read_back_from_its_bytes():
    assert [decode(*encode(row, columns)) for row, columns in ROWS.values()] == [row for row, _ in ROWS.values()]
