"""The lake in object storage: a server that speaks S3 on this machine, and the same tables in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.clock import HOUR
from headrace.lake.copies import copies
from headrace.lake.files import remove
from headrace.lake.maintenance import compact
from headrace.lake.table import LakeTable
from tests.lake.bucket import bucket
from tests.lake.conftest import SHAPE, add, keys


@pytest.fixture(scope="module")
def storage() -> Iterator[dict[str, str]]:
    with bucket() as options:
        yield options


def test_a_table_in_object_storage_is_written_searched_merged_and_read(storage):
    silver = LakeTable("s3://lake/shop/clicks/silver", SHAPE, storage)
    for number in range(3):
        add(silver, [(f"e{number}", HOUR, number, HOUR, 0, number, number)], {"batch": number})
    assert silver.counter("batch") == 2

    found = copies(keys([("e1", HOUR, 1, 2 * HOUR, 1, 9, 1)]), silver).to_pylist()
    assert [tuple(row.values()) for row in found] == [(1, 9, 0, 1, False, False)]

    assert compact(silver).after == 1
    again = LakeTable("s3://lake/shop/clicks/silver", SHAPE, storage)
    assert sorted(again.delta.to_pyarrow_table().column("id").to_pylist()) == ["e0", "e1", "e2"]


def test_what_a_batch_put_down_can_be_taken_away(storage):
    table = LakeTable("s3://lake/shop/taps/silver", SHAPE, storage)
    add(table, [("e", HOUR, 1, HOUR, 0, 0, 0)])
    remove("s3://lake/shop/taps/silver/_day=1970-01-01", storage)
    remove("s3://lake/shop/nothing/there", storage)
    with pytest.raises(OSError, match=r"not exist|not found|No such|NoSuchKey|NOT_FOUND|Not Found"):
        table.delta.to_pyarrow_table()
