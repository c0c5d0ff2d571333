"""Avro schemas and fields, and the meaning of Avro bytes in Python."""

from __future__ import annotations

import io
import json
import math
from decimal import Decimal as Exact
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.codec.avro.carry import carries
from headrace.codec.avro.node import parse
from headrace.codec.avro.read import avro_decoder
from headrace.codec.avro.schema import avro_schema, fields_of, fields_read
from headrace.codec.avro.write import avro_encoder
from headrace.codec.json.read import Decoded
from headrace.codec.json.write import coerce
from headrace.errors import DataError, SchemaError
from headrace.types.compatibility import check
from headrace.types.field_types import Struct, Timestamp, schema_of
from tests.codec.avro_cases import Maker, plain
from tests.codec.generate import EVERYTHING
from tests.codec.strategies import schemas, schemas_with_rows


def record_of(**fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": name, "type": form} for name, form in fields.items()]}


def decoded(data: bytes, fields: dict[str, Any], **writer: Any) -> Decoded:
    return avro_decoder(schema_of(fields), parse(record_of(**writer)))(data)


def fault(data: bytes, fields: dict[str, Any], **writer: Any) -> str:
    found = decoded(data, fields, **writer).fault
    return "" if found is None else f"{found.kind}: {found.reason}"


@given(schemas)
def test_fields_survive_the_way_through_an_avro_schema(schema: Struct):
    assert fields_of(json.dumps(avro_schema(schema, "stream"))) == schema


@given(schemas_with_rows)
def test_a_row_is_read_back_as_it_was_written_and_fastavro_reads_the_same_bytes(made: tuple[Struct, Any]):
    schema, row = made
    form = avro_schema(schema, "stream")
    node = parse(form)
    written = avro_encoder(schema, node)(row)
    assert avro_decoder(schema, node)(written) == Decoded(coerce(schema, row), None)
    source = io.BytesIO(written)
    fastavro.schemaless_reader(source, fastavro.parse_schema(form))
    assert source.tell() == len(written)


def test_what_fastavro_writes_is_read_as_fastavro_reads_it():
    maker = Maker(5)
    for _ in range(60):
        form = maker.writer(EVERYTHING, 0.0)
        data = maker.good(form)
        found = avro_decoder(EVERYTHING, parse(form))(data)
        assert found.fault is None or found.fault.kind == "invalid" or "decimal" in found.fault.reason, found
        theirs: Any = fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(plain(form)))
        if found.row is not None:
            assert found.row["id"] == theirs["id"]
            assert found.row["tags"] == theirs["tags"]
            assert math.isclose(found.row["x"], theirs["x"])


@given(st.binary(max_size=60), st.integers(0, 5))
def test_no_bytes_make_the_decoder_raise(data: bytes, seed: int):
    found = avro_decoder(EVERYTHING, parse(Maker(seed).writer(EVERYTHING)))(data)
    assert (found.row is None) is (found.fault is not None)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "there is nothing in it"),
        (b"\x04a", "it ends early"),
        (b"\x02a\x00", "1 byte follows the record"),
        (b"\x02\xff", "byte 1 is not UTF-8"),
        (b"\x01", "a length is negative"),
        (b"\x80", "it ends early"),
        (b"\xff" * 11, "a number has more than 10 bytes"),
        (b"\x00" * (8 * 1024 * 1024 + 1), "it is larger than 8,388,608 bytes"),
    ],
)
def test_bytes_that_are_not_laid_out_as_the_schema_says_are_malformed(data: bytes, reason: str):
    assert fault(data, {"s": str}, s="string") == f"malformed: {reason}"


def test_a_boolean_is_0_or_1():
    assert decoded(b"\x01", {"b": bool}, b="boolean").row == {"b": True}
    assert fault(b"\x02", {"b": bool}, b="boolean") == "malformed: a boolean is neither 0 nor 1"


def test_an_int_is_of_32_bits_and_may_be_longer_than_it_needs():
    assert decoded(b"\x81\x00", {"n": int}, n="int").row == {"n": -1}
    assert fault(b"\x80\x80\x80\x80\x10", {"n": int}, n="int") == "malformed: a number of 32 bits is larger than that"


def test_a_union_has_the_branches_it_has():
    assert decoded(b"\x00", {"n": int | None}, n=["null", "long"]).row == {"n": None}
    assert decoded(b"\x00\x06", {"n": int | None}, n=["long", "null"]).row == {"n": 3}
    assert fault(b"\x04", {"n": int | None}, n=["null", "long"]) == "malformed: a union has no branch 2"
    assert fault(b"\x00", {"n": int}, n=["null", "long"]) == "invalid: n is required"


def test_an_enum_is_a_string():
    suit = {"type": "enum", "name": "suit", "symbols": ["HEARTS", "SPADES"]}
    assert decoded(b"\x02", {"s": str}, s=suit).row == {"s": "SPADES"}
    assert fault(b"\x01", {"s": str}, s=suit) == "malformed: an enum has no symbol -1"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_invalid(number: float):
    import struct

    assert fault(struct.pack("<d", number), {"x": float}, x="double") == "invalid: x must be a finite number"


def test_decimals_have_the_digits_their_schema_declares():
    form = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    kind = hr.Decimal(10, 2)
    assert decoded(b"\x04\x01\x00", {"d": kind}, d=form).row == {"d": Exact("2.56")}
    assert fault(b"\x04\x27\x10", {"d": kind}, d=form) == "malformed: a decimal is not one of 4 digits"
    assert fault(b"\x00", {"d": kind}, d=form) == "malformed: a decimal is not one of 4 digits"
    # Only some of its values would fit, so none does.
    wrong = "invalid: d must be a plain number that fits decimal(3,2)"
    assert fault(b"\x02\x01", {"d": hr.Decimal(3, 2)}, d=form) == wrong


def test_moments_come_in_milliseconds_microseconds_units_or_writing():
    second = {"at": 1_000_000}
    for unit, data in (("millis", b"\xd0\x0f"), ("micros", b"\x80\x89\x7a")):
        form = {"type": "long", "logicalType": f"timestamp-{unit}"}
        assert decoded(data, {"at": Timestamp}, at=form).row == second
        assert decoded(data, {"at": Timestamp("s")}, at=form).row == second
    assert decoded(b"\x02", {"at": Timestamp("s")}, at="long").row == second
    assert decoded(b"\x281970-01-01T00:00:01Z", {"at": Timestamp}, at="string").row == second
    reason = "invalid: at must be an RFC 3339 timestamp with an offset"
    assert fault(b"\x02", {"at": Timestamp}, at="long") == reason
    assert fault(b"\x02x", {"at": Timestamp}, at="string") == reason
    date = {"type": "int", "logicalType": "date"}
    assert fault(b"\x02", {"at": Timestamp}, at=date) == reason


def test_fields_are_found_by_name_and_others_are_stepped_over():
    other = {"type": "map", "values": {"type": "array", "items": ["null", "bytes", "boolean"]}}
    data = b"\x02\x02k\x06\x00\x02\x04ab\x04\x07\x00\x00" + b"\x0a"
    assert decoded(data, {"n": int, "note": str | None}, other=other, n="long").row == {"n": 5, "note": None}
    assert fault(data, {"m": int}, other=other, n="long") == "invalid: m is required"


def test_lists_come_in_blocks_with_or_without_their_size():
    form = {"type": "array", "items": "long"}
    assert decoded(b"\x02\x02\x03\x04\x04\x06\x00", {"l": list[int]}, l=form).row == {"l": [1, 2, 3]}
    assert fault(b"\xfe\xff\xff\xff\x0f", {"l": list[int]}, l=form) == "malformed: it ends early"


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("{", "An Avro schema is not JSON."),
        ({"type": "recrod"}, "An Avro type is not known."),
        ({"type": "record", "name": "r", "fields": [{"name": "me", "type": ["null", "r"]}]}, "contains itself"),
        (record_of(a={"type": "array", "items": "null"}), "take no bytes"),
        (record_of(a=["null", ["int"]]), "holds a union"),
        (record_of(a={"type": "enum", "name": "e", "symbols": ["a'b"]}), "symbols of an Avro enum"),
        (record_of(a={"type": "fixed", "name": "f", "size": 2**40}), "size of an Avro fixed"),
        ({"type": "record", "name": "r", "fields": [{"name": "a b", "type": "int"}]}, "fields of an Avro record"),
    ],
)
def test_a_schema_that_cannot_be_read_safely_is_refused(form: Any, told: str):
    with pytest.raises(SchemaError, match=told) as error:
        parse(form)
    assert error.value.code == "bad-avro"


def test_a_schema_that_unfolds_without_bounds_is_refused():
    forms: Any = "int"
    for at in range(20):
        forms = {"type": "record", "name": f"r{at}", "fields": [{"name": "a", "type": forms}]}
        forms["fields"].append({"name": "b", "type": f"r{at - 1}" if at else "int"})
    with pytest.raises(SchemaError, match="too deep or too large"):
        parse(forms)


@pytest.mark.parametrize("form", ["bytes", {"type": "map", "values": "int"}, ["int", "string"]])
def test_an_avro_type_that_no_field_has_is_refused(form: Any):
    with pytest.raises(SchemaError, match="No type of field reads the Avro type of 'a'"):
        fields_of(record_of(a=form))


def test_a_writers_schema_is_compared_as_its_reader_reads_it():
    wanted = schema_of({"at": Timestamp, "n": float, "day": int, "place": {"lat": float}, "tags": list[str]})
    place = {"type": "record", "name": "p", "fields": [{"name": "lat", "type": "int"}]}
    date = {"type": "int", "logicalType": "date"}
    form = record_of(
        at={"type": "long", "logicalType": "timestamp-micros"},
        n="int",
        day=date,
        place=place,
        Place="bytes",
        tags="bytes",
    )
    broken = check(fields_read(form, wanted), wanted, "backward")
    assert [str(change) for change in broken] == [
        "~ day Avro's date -> integer",
        "~ tags Avro's bytes -> list of string",
    ]


def test_a_row_that_its_writers_schema_has_no_room_for_is_refused():
    suit = {"type": "enum", "name": "suit", "symbols": ["A"]}
    small = {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 1}
    cases: list[tuple[Any, Any, Any]] = [
        (str, suit, "B"),
        (int, "int", 2**40),
        (float, "float", 0.1),
        (float, "long", 0.5),
        (hr.Decimal(10, 2), small, Exact("100.5")),
        (hr.Decimal(10, 2), small, Exact("1.25")),
        (Timestamp, {"type": "long", "logicalType": "timestamp-millis"}, 1),
    ]
    for kind, form, value in cases:
        encode = avro_encoder(schema_of({"v": kind}), parse(record_of(v=form)))
        with pytest.raises(DataError):
            encode({"v": value})


def test_a_writers_schema_that_no_row_fits_is_refused():
    for form in (record_of(), record_of(n="string"), record_of(n="long", m="long")):
        with pytest.raises(SchemaError, match="cannot be written as Avro") as error:
            avro_encoder(schema_of({"n": int}), parse(form))
        assert error.value.code == "incompatible-schema"


@pytest.mark.parametrize("form", [record_of(), record_of(n="long"), record_of(n=["long"])])
def test_a_value_or_a_null_without_a_place_is_refused_row_by_row(form: Any):
    schema, writer = schema_of({"n": int | None}), parse(form)
    encode, decode = avro_encoder(schema, writer), avro_decoder(schema, writer)
    fits, not_fits = ({"n": None}, {"n": 1}) if not form["fields"] else ({"n": 1}, {"n": None})
    assert encode(fits) == b"" or decode(encode(fits)).row == fits
    with pytest.raises(DataError):
        encode(not_fits)
    assert not carries(schema, writer)
