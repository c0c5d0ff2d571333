"""A judgement of compatibility is a promise about records, so it is held to records."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.codec.json.read import decoder
from headrace.errors import SchemaError
from headrace.types.compatibility import changes, check
from headrace.types.field_types import Decimal, List, Struct, Timestamp, optional, schema_of
from tests.codec.generate import value_text
from tests.codec.strategies import schema_pairs, schemas


def refused(writer: Struct, reader: Struct, seed: int, count: int = 12) -> list[Any]:
    """Records of the writer's schema, in any form it may take, that the reader's decoder refuses."""
    rng = random.Random(seed)
    own, other = decoder(writer), decoder(reader)
    records = [value_text(writer, rng).encode() for _ in range(count)]
    assert [own(record).fault for record in records] == [None] * count
    return [(record, fault) for record in records if (fault := other(record).fault) is not None]


@given(schema_pairs, st.integers(0, 2**32))
def test_a_new_reader_reads_old_records_when_judged_backward(pair: tuple[Struct, Struct], seed: int):
    old, new = pair
    if not check(old, new, "backward"):
        assert refused(old, new, seed) == []


@given(schema_pairs, st.integers(0, 2**32))
def test_an_old_reader_reads_new_records_when_judged_forward(pair: tuple[Struct, Struct], seed: int):
    old, new = pair
    if not check(old, new, "forward"):
        assert refused(new, old, seed) == []


@given(schema_pairs)
def test_full_is_both_and_none_is_neither(pair: tuple[Struct, Struct]):
    both = {*check(*pair, "backward"), *check(*pair, "forward")}
    assert set(check(*pair, "full")) == both
    assert check(*pair, "none") == ()


@given(schema_pairs)
def test_backward_one_way_is_forward_the_other_way(pair: tuple[Struct, Struct]):
    old, new = pair
    there, back = check(old, new, "backward"), check(new, old, "forward")
    assert {change.path for change in there} == {change.path for change in back}


@given(schemas)
def test_a_schema_has_not_changed_against_itself_in_any_order(schema: Struct):
    assert changes(schema, Struct(tuple(reversed(schema.fields)))) == ()


SCHEMAS: list[tuple[dict[str, Any], dict[str, Any], str, bytes]] = [
    ({"a": int}, {"a": int, "b": str}, "+ b string", b'{"a":1}'),
    ({"a": int}, {"a": str}, "~ a integer -> string", b'{"a":1}'),
    ({"a": float}, {"a": int}, "~ a float -> integer", b'{"a":1.5}'),
    ({"a": int | None}, {"a": int}, "~ a became required", b"{}"),
    ({"a": Decimal(10, 2)}, {"a": Decimal(10, 3)}, "~ a decimal(10,2) -> decimal(10,3)", b'{"a":12345678}'),
    ({"a": Decimal(10, 2)}, {"a": Decimal(10, 1)}, "~ a decimal(10,2) -> decimal(10,1)", b'{"a":0.25}'),
    ({"a": Decimal(10, 2)}, {"a": float}, "~ a decimal(10,2) -> float", b'{"a":"1.5"}'),
    ({"a": Decimal(5)}, {"a": int}, "~ a decimal(5,0) -> integer", b'{"a":1.0}'),
    ({"a": int}, {"a": Decimal(18)}, "~ a integer -> decimal(18,0)", b'{"a":9223372036854775807}'),
    ({"a": Timestamp}, {"a": Timestamp("ms")}, "~ a timestamp -> timestamp", b'{"a":"2026-01-01T00:00:00Z"}'),
    ({"a": list[int | None]}, {"a": list[int]}, "~ a[] became required", b'{"a":[null]}'),
    ({"a": list[int]}, {"a": list[str]}, "~ a[] integer -> string", b'{"a":[1]}'),
    ({"a": list[int]}, {"a": int}, "~ a list of integer -> integer", b'{"a":[]}'),
    ({"a": {"b": int}}, {"a": {"b": int, "c": int}}, "+ a.c integer", b'{"a":{"b":1}}'),
    ({"a": optional({"b": int})}, {"a": {"b": int}}, "~ a became required", b'{"a":null}'),
    (
        {"a": List(schema_of({"b": int | None}))},
        {"a": List(schema_of({"b": int}))},
        "~ a[].b became required",
        b'{"a":[{}]}',
    ),
]


@pytest.mark.parametrize(("old", "new", "text", "witness"), SCHEMAS)
def test_a_breaking_change_is_named_and_has_a_witness(old: Any, new: Any, text: str, witness: bytes):
    before, after = schema_of(old), schema_of(new)
    assert [str(change) for change in check(before, after, "backward")] == [text]
    assert decoder(before)(witness).fault is None
    assert decoder(after)(witness).fault is not None
    # Read the other way round, the same witness breaks the old reader.
    assert len(check(after, before, "forward")) == 1


@pytest.mark.parametrize(
    ("old", "new", "texts"),
    [
        ({"a": int}, {"a": int, "country": str | None}, ["+ country string?"]),
        ({"a": int, "b": str}, {"a": int}, ["- b string"]),
        ({"amount": int}, {"amount": float}, ["~ amount integer -> float"]),
        ({"a": int}, {"a": Decimal(21, 2)}, ["~ a integer -> decimal(21,2)"]),
        ({"a": Decimal(10, 2)}, {"a": Decimal(12, 3)}, ["~ a decimal(10,2) -> decimal(12,3)"]),
        ({"a": int}, {"a": float | None}, ["~ a became optional", "~ a integer -> float"]),
        ({"a": {"b": int}}, {"a": {"b": int, "c": list[int] | None}}, ["+ a.c list of integer?"]),
    ],
)
def test_a_safe_change_is_told_but_breaks_nothing(old: Any, new: Any, texts: list[str]):
    before, after = schema_of(old), schema_of(new)
    assert [str(change) for change in changes(before, after)] == texts
    assert check(before, after, "backward") == ()


def test_an_unknown_level_is_refused():
    with pytest.raises(SchemaError) as error:
        check(schema_of({"a": int}), schema_of({"a": int}), "backwards")
    assert (error.value.code, error.value.hint) == ("bad-argument", "Did you mean 'backward'?")
