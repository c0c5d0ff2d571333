"""The Python reading of a record, rule by rule."""

from __future__ import annotations

import decimal
import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.codec.json import rules
from headrace.codec.json import text as json_text
from headrace.codec.json.read import decoder
from headrace.codec.json.text import NotJsonError, parser
from headrace.types.field_types import Decimal, List, Timestamp, optional, schema_of
from tests.codec.generate import EVERYTHING, cases


def read(annotation: Any, text: str) -> Any:
    """The value of field `f`, or the fault."""
    decoded = decoder(schema_of({"f": annotation}))(f'{{"f":{text}}}'.encode())
    return decoded.fault if decoded.row is None else decoded.row["f"]


def kind(data: bytes | None) -> str:
    fault = decoder(schema_of({"f": int | None}))(data).fault
    return fault.kind if fault else "ok"


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"  ",
        b"{",
        b"}",
        b'{"f":1',
        b'{"f":1}]',
        b'{"f":1}}',
        b'{"f":1},',
        b'{"f":1} {}',
        b'{"f":1}x',
        b'{"f":1,}',
        b"{'f':1}",
        b"{f:1}",
        b'{"f":01}',
        b'{"f":+1}',
        b'{"f":.5}',
        b'{"f":1.}',
        b'{"f":NaN}',
        b'{"f":Infinity}',
        b'{"f":-Infinity}',
        b'{"f":1/*c*/}',
        b'{"f":1}//',
        b'{"f":1,"f":1}',
        b'{"x":{"a":1,"\\u0061":2}}',
        b'{"x":[{"a":1,"a":1}]}',
        b"\xef\xbb\xbf{}",
        b'{"x":"\xff"}',
        b'{"x":"\xed\xa0\x80"}',
        b'{"x":"\\ud83d"}',
        b'{"x":"\\ude00"}',
        b'{"x":"\\ude00\\ud83d"}',
        b'{"\\ud83d":1}',
        b'{"x":"\\\\\\ud83d"}',
        b'{"x":"a\nb"}',
        b'{"x":"\\x"}',
        b'{"x":"\\u12"}',
        b"\xff\xfe{\x00}\x00",
        b"{}\x00",
        b'{"f":tru}',
    ],
)
def test_what_is_not_strict_json_is_malformed(data: bytes | None):
    assert kind(data) == "malformed"


@pytest.mark.parametrize("data", [b"null", b"1", b'"{}"', b"[]", b"[{}]", b"true", b" 1.5e3\n"])
def test_json_that_is_not_an_object_is_invalid(data: bytes):
    assert decoder(EVERYTHING)(data).fault == ("invalid", "the record must be an object")


@pytest.mark.parametrize(
    "data", [b"{}", b' \t\r\n{"x":"\\ud83d\\ude00 \\\\ud83d"} ', '{"é\u2028":[[]]}'.encode(), b'{"F":"x"}']
)
def test_undeclared_fields_may_hold_anything(data: bytes):
    assert kind(data) == "ok"


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (str, '"a\\u0000\\n"', "a\0\n"),
        (bool, "false", False),
        (int, "-9223372036854775808", -(2**63)),
        (int, "-0", 0),
        (float, "3", 3.0),
        (float, "1e-400", 0.0),
        (float, "9" * 39, 1e39),
        (Decimal(5, 2), "12.5", decimal.Decimal("12.50")),
        (Decimal(5, 2), '"-1.50000"', decimal.Decimal("-1.50")),
        (Decimal(5, 2), "-0.00", decimal.Decimal("0.00")),
        (Decimal(38, 0), "9" * 38, decimal.Decimal("9" * 38)),
        (Decimal(38, 38), "0." + "7" * 38, decimal.Decimal("0." + "7" * 38)),
        (Decimal(5, 0), "7.000", decimal.Decimal(7)),
        (Timestamp, '"2026-01-01T01:00:00.1234567+01:00"', 1767225600123456),
        (Timestamp("s"), "1767225600", 1767225600000000),
        (Timestamp("ms"), "-1", -1000),
        (Timestamp("us"), "7", 7),
        (int | None, "null", None),
        (list[int | None], "[1,null]", [1, None]),
        (List(schema_of({"x": float})), '[{"x":1,"y":2}]', [{"x": 1.0}]),
        (optional({"x": str | None}), "{}", {"x": None}),
    ],
)
def test_a_value_of_its_type_is_read(annotation: Any, text: str, value: Any):
    found = read(annotation, text)
    assert found == value
    assert repr(found) == repr(value)


@pytest.mark.parametrize("text", ["-0.0", "-0e0", "-1e-400"])
def test_negative_zero_is_zero(text: str):
    assert repr(read(float, text)) == "0.0"


@pytest.mark.parametrize(
    ("annotation", "text", "reason"),
    [
        (str, "1", "f must be a string"),
        (str, "null", "f is required"),
        (bool, "1", "f must be true or false"),
        (int, "1.0", "f must be a whole number of 64 bits"),
        (int, "1e2", "f must be a whole number of 64 bits"),
        (int, "true", "f must be a whole number of 64 bits"),
        (int, "9223372036854775808", "f must be a whole number of 64 bits"),
        (float, "1e400", "f must be a finite number"),
        (float, '"1"', "f must be a finite number"),
        (float, "true", "f must be a finite number"),
        (Decimal(5, 2), "1e2", "f must be a plain number that fits decimal(5,2)"),
        (Decimal(5, 2), "1.005", "f must be a plain number that fits decimal(5,2)"),
        (Decimal(5, 2), "1000", "f must be a plain number that fits decimal(5,2)"),
        (Decimal(5, 2), '"01"', "f must be a plain number that fits decimal(5,2)"),
        (Decimal(5, 2), "1.5" + "0" * 37, "f must be a plain number that fits decimal(5,2)"),
        (Decimal(5, 2), "true", "f must be a plain number that fits decimal(5,2)"),
        (Timestamp, '"2026-01-01T00:00:00"', "f must be an RFC 3339 timestamp with an offset"),
        (Timestamp, '"2026-02-29T00:00:00Z"', "f must be an RFC 3339 timestamp with an offset"),
        (Timestamp, '"2026-01-01T00:00:60Z"', "f must be an RFC 3339 timestamp with an offset"),
        (Timestamp, '"0001-01-01T00:00:00+00:01"', "f must be an RFC 3339 timestamp with an offset"),
        (Timestamp, '"٢٠٢٦-01-01T00:00:00Z"', "f must be an RFC 3339 timestamp with an offset"),
        (Timestamp, "0", "f must be an RFC 3339 timestamp with an offset"),
        (Timestamp("s"), "253402300800", "f must be whole seconds since 1970"),
        (Timestamp("ms"), "1.5", "f must be whole milliseconds since 1970"),
        (Timestamp("us"), '"1"', "f must be whole microseconds since 1970"),
        (list[int], "[1,null]", "f[] is required"),
        (list[int], '{"0":1}', "f must be a list"),
        (list[list[int]], '[[],["x"]]', "f[][] must be a whole number of 64 bits"),
        ({"x": {"y": int}}, '{"x":{"y":"1"}}', "f.x.y must be a whole number of 64 bits"),
        ({"x": {"y": int}}, '{"x":{}}', "f.x.y is required"),
        ({"x": int}, "[]", "f must be an object"),
        (optional({"x": int}), "{}", "f.x is required"),
    ],
)
def test_a_value_of_another_type_is_invalid_and_named(annotation: Any, text: str, reason: str):
    assert read(annotation, text) == ("invalid", reason)


def test_a_row_holds_every_declared_field_in_order():
    decode = decoder(schema_of({"b": int | None, "a": str, "c": bool | None}))
    assert list((decode(b'{"c":true,"a":"x"}').row or {}).items()) == [("b", None), ("a", "x"), ("c", True)]


@pytest.mark.parametrize(
    ("depth", "verdict"), [(rules.DEEPEST, "ok"), (rules.DEEPEST + 1, "malformed"), (100_000, "malformed")]
)
def test_nesting_is_bounded_by_the_rule(depth: int, verdict: str):
    # The record's own braces are one level.
    assert kind(b'{"x":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}") == verdict


def test_nesting_is_bounded_by_the_rule_even_when_the_stack_is_nearly_full():
    def from_below(frames: int) -> str:
        return from_below(frames - 1) if frames else kind(b'{"x":' + b"[" * 80 + b"]" * 80 + b"}")

    here, frame = 0, sys._getframe()
    while frame.f_back is not None:
        here, frame = here + 1, frame.f_back
    assert from_below(sys.getrecursionlimit() - here - 60) == "ok"


@pytest.mark.parametrize(("length", "verdict"), [(1_000, "ok"), (1_001, "malformed")])
@pytest.mark.parametrize("start", ["1", "-1.", "0.", "5e", "1.5e-"])
def test_numbers_are_bounded_by_their_length(start: str, length: int, verdict: str):
    number = start + "1" * (length - len(start))
    assert kind(f'{{"x":{number}}}'.encode()) == verdict
    assert kind(f'{{"x":["{number}"]}}'.encode()) == "ok"


@pytest.mark.parametrize(
    ("name", "verdict"), [("é" * 50_000, "ok"), ("\U0001f600" * 25_000, "ok"), ("\U0001f600" * 25_001, "malformed")]
)
def test_names_are_bounded_as_java_counts_them(name: str, verdict: str):
    assert kind(f'{{"{name}":1}}'.encode()) == verdict


def test_a_record_may_have_eight_mebibytes_and_not_a_byte_more():
    data = b'{"x":"' + b"a" * (rules.LARGEST_VALUE - 8) + b'"}'
    assert len(data) == rules.LARGEST_VALUE
    assert kind(data) == "ok"
    assert kind(data + b" ") == "malformed"


def test_the_parser_with_its_own_stack_agrees_with_the_c_scanner():
    parse = parser(keep_numbers=True)
    for data in cases(4_000, seed=5):
        text = data.decode(errors="replace")
        if len(text) > 3_000 or "\\ud" in text.lower():
            continue
        results = []
        for one in (parse, lambda text: json_text._parse_deep(text.strip(" \t\n\r"), json_text.Number)):
            try:
                value = one(text)
                results.append("deep" if text.count("[") + text.count("{") > 90 else repr(value))
            except NotJsonError:
                results.append("refused")
        assert results[0] == results[1], text


finite = st.floats(allow_nan=False, allow_infinity=False)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | finite,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(anything)
def test_whatever_python_writes_as_json_is_read_back(value: Any):
    assert parser()(json.dumps(value)) == value
    assert parser()(json.dumps(value, ensure_ascii=False, indent=1)) == value


@given(st.binary(max_size=60))
def test_no_bytes_raise(data: bytes):
    decoded = decoder(EVERYTHING)(data)
    assert (decoded.row is None) != (decoded.fault is None)
