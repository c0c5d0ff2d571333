"""The bytes of the changelog: what is written is read, and what cannot be read is refused."""

from __future__ import annotations

import pytest
from hypothesis import given

from headrace.errors import DataError
from headrace.tiles.changelog import Gone, ProgressRow, TileRow
from headrace.tiles.changelog_format import decode, encode
from tests.store.rows import gone_rows, progress_rows, tile_rows

KEY = b'{"tiles":"ab12","run":"r1","key":{"card":"42"},"tile":1767225600000000,"lane":"on_time"}'
VALUE = b'{"version":5,"partials":{"span_1":{"n":0}},"positions":{"0":17,"1":20},"max_event_time":7}'


@given(tile_rows | progress_rows | gone_rows)
def test_a_row_is_read_as_it_was_written(row):
    names = tuple(f"column_{place}" for place in range(len(getattr(row, "key", ()))))
    assert decode(*encode(row, names)) == row


def test_the_written_form_of_a_row_is_the_agreed_one():
    row = TileRow("ab12", "r1", ("42",), 1767225600000000, "on_time", 5, b'{"a":1.50}', {0: 17}, 1, 2)
    assert encode(row, ("card",)) == (
        KEY,
        b'{"version":5,"partials":{"a":1.50},"positions":{"0":17},"max_event_time":1,"max_arrived_at":2}',
    )


def test_absent_and_unknown_members_are_no_fault():
    assert decode(KEY, VALUE[:-1] + b',"added_later":[1]}') == TileRow(
        "ab12", "r1", ("42",), 1767225600000000, "on_time", 5, b'{"span_1":{"n":0}}', {0: 17, 1: 20}, 7
    )


def test_the_key_of_a_global_view_is_empty():
    row = decode(b'{"tiles":"ab12","run":"r1","key":{},"tile":0,"lane":"late"}', VALUE)
    assert isinstance(row, TileRow)
    assert row.key == ()


def test_a_progress_record_names_no_tile():
    row = decode(b'{"tiles":"ab12","run":"r1","progress":true}', b'{"positions":{"0":18},"as_of":9}')
    assert row == ProgressRow("ab12", "r1", {0: 18}, 9)


def test_a_tombstone_says_that_a_row_is_gone():
    assert decode(KEY, None) == Gone("ab12", "r1", ("42",), 1767225600000000, "on_time")
    assert decode(b'{"tiles":"ab12","run":"r1","progress":true}', None) == Gone("ab12", "r1")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, VALUE),
        (b"", VALUE),
        (b"\xff\xfe", VALUE),
        (b"[]", VALUE),
        (b"{}", VALUE),
        (KEY.replace(b'"tile":1767225600000000,', b""), VALUE),
        (KEY.replace(b'"42"', b"4.2"), VALUE),
        (KEY.replace(b'"42"', b"null"), VALUE),
        (KEY.replace(b'"42"', b"9223372036854775808"), VALUE),
        (KEY.replace(b'"42"', b'"\\ud800"'), VALUE),
        (KEY.replace(b"1767225600000000", b"9223372036854775808"), VALUE),
        (KEY.replace(b"on_time", b"on time, but very much too long to be one"), VALUE),
        (KEY.replace(b"ab12", b""), VALUE),
        (KEY.replace(b"r1", b"r" * 101), VALUE),
        (KEY, b""),
        (KEY, b"null"),
        (KEY, VALUE[:-1]),
        (KEY, b'{"partials":{}}'),
        (KEY, b'{"version":1}'),
        (KEY, b'{"version":"1","partials":{}}'),
        (KEY, b'{"version":1,"partials":[1]}'),
        (KEY, b'{"version":1,"partials":{"a":tru}}'),
        (KEY, b'{"version":1,"partials":{},"positions":{"0":-1}}'),
        (b'{"tiles":"ab12","run":"r1","progress":true}', b'{"as_of":1}'),
        (b'{"tiles":"ab12","run":"r1","progress":true}', b'{"positions":{},"as_of":"now"}'),
    ],
)
def test_a_record_that_cannot_be_read_is_refused_with_its_reason(key, value):
    with pytest.raises(DataError) as refused:
        decode(key, value)
    assert refused.value.code == "bad-changelog"
    assert refused.value.got
