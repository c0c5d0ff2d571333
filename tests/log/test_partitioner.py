"""Keys go where Kafka's Java client puts them: the vectors are those of its own tests."""

from __future__ import annotations

import pytest

from headrace.log.partitioner import murmur2, partition_of


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_kafkas(key, expected):
    assert murmur2(key) == expected % 2**32


def test_a_negative_hash_is_made_positive_by_dropping_its_sign_bit():
    assert partition_of(b"foobar", 1000) == (-790332482 & 0x7FFFFFFF) % 1000
