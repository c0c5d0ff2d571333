"""Cases where Java, Python and SQL each have an opinion: what Headrace says, and that Spark says it too."""

from __future__ import annotations

from decimal import Decimal as Exact
from typing import TYPE_CHECKING, Any

import pytest

from tests.expression.asking import read, value
from tests.expression.both_sides import differences
from tests.expression.generated import COLUMNS, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BIG, SMALL = 2**63 - 1, -(2**63)
NASTY: list[tuple[str, dict[str, Any], Any]] = [
    # 64-bit edges
    ("i + 1", {"i": BIG}, None),
    ("i - 1", {"i": SMALL}, None),
    ("i - 1", {"i": SMALL + 1}, SMALL),
    ("i + 1", {"i": BIG - 1}, BIG),
    ("i * -1", {"i": SMALL}, None),
    ("-i", {"i": SMALL}, None),
    ("-i", {"i": BIG}, -BIG),
    ("abs(i)", {"i": SMALL}, None),
    ("i % -1", {"i": SMALL}, 0),
    ("i % j", {"i": -7, "j": 3}, -1),
    ("i % j", {"i": 7, "j": -3}, 1),
    ("i % j", {"i": 7, "j": 0}, None),
    ("i / j", {"i": 7, "j": 0}, None),
    ("i / j", {"i": 7, "j": 2}, 3.5),
    ("i / j", {"i": BIG, "j": BIG}, 1.0),
    # floats
    ("f * 10", {"f": 1e308}, None),
    ("f * 10 > 1", {"f": 1e308}, True),
    ("f * 10 - f * 10 = f * 100 - f * 100", {"f": 1e308}, True),
    ("f * 10 - f * 10 > 1e308", {"f": 1e308}, True),
    ("1.0 <= f * 10 - f * 10", {"f": 1e308}, True),
    ("f * 10 - f * 10 >= f * 10", {"f": 1e308}, True),
    ("f * 10 - f * 10 <> f * 10", {"f": 1e308}, True),
    ("f * 10 - f * 10 <=> f * 10 - f * 10", {"f": 1e308}, True),
    ("least(f * 10 - f * 10, 1.0)", {"f": 1e308}, 1.0),
    ("greatest(f * 10 - f * 10, 1.0)", {"f": 1e308}, None),
    ("sqrt(f)", {"f": -1.0}, None),
    ("sqrt(f) > 0", {"f": -1.0}, True),
    ("f = 0.0", {"f": -0.0}, True),
    ("f < 0.0", {"f": -0.0}, False),
    ("f IN (0.0, 1.0)", {"f": -0.0}, True),
    ("f IN (0.0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)", {"f": -0.0}, True),
    ("g / f", {"g": 1.0, "f": -0.0}, None),
    ("f % 0.0", {"f": 1.0}, None),
    ("f % 2", {"f": -7.5}, -1.5),
    ("f * 10 % 3 > 1e308", {"f": 1e308}, True),
    ("floor(f)", {"f": 1e19}, None),
    ("floor(f)", {"f": -9.223372036854775808e18}, None),
    ("floor(f)", {"f": 9.223372036854773760e18}, 9223372036854773760),
    ("floor(f)", {"f": -0.5}, -1),
    ("ceil(f)", {"f": -0.5}, 0),
    ("ceil(g)", {"g": None}, None),
    ("CAST(f AS BIGINT)", {"f": 9.223372036854775808e18}, None),
    ("CAST(f AS BIGINT)", {"f": -9.223372036854775808e18}, SMALL),
    ("CAST(f AS BIGINT)", {"f": -2.9}, -2),
    ("i = f", {"i": 2**53 + 1, "f": 2.0**53}, True),
    # decimals
    ("d * d", {"d": Exact("99999999.99")}, Exact("9999999998000000.0001")),
    ("d % 0", {"d": Exact("1.00")}, None),
    ("d % 0.3", {"d": Exact("-1.00")}, Exact("-0.10")),
    ("CAST(d AS DECIMAL(9,1))", {"d": Exact("0.25")}, Exact("0.3")),
    ("CAST(d AS DECIMAL(9,1))", {"d": Exact("-0.25")}, Exact("-0.3")),
    ("CAST(d AS DECIMAL(4,1))", {"d": Exact("999.95")}, None),
    ("round(d)", {"d": Exact("0.50")}, Exact("1")),
    ("floor(d)", {"d": Exact("-0.50")}, Exact("-1")),
    ("CAST(h AS BIGINT)", {"h": Exact("9223372036854775807.9")}, BIG),
    ("CAST(h AS BIGINT)", {"h": Exact("9223372036854775808")}, None),
    ("CAST(h AS DOUBLE)", {"h": Exact("9999999999999999999999999999.9999999999")}, 1e28),
    ("h = 0.1", {"h": Exact("0.1")}, True),
    ("d / 3", {"d": Exact("1.00")}, 1 / 3),
    ("d IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12.5)", {"d": Exact("12.50")}, True),
    # three values
    ("maybe AND FALSE", {"maybe": None}, False),
    ("maybe AND TRUE", {"maybe": None}, None),
    ("maybe OR TRUE", {"maybe": None}, True),
    ("NOT maybe", {"maybe": None}, None),
    ("j IN (1, NULL)", {"j": 1}, True),
    ("j IN (1, NULL)", {"j": 2}, None),
    ("j NOT IN (1, NULL)", {"j": 2}, None),
    ("j IN (1, 2)", {"j": None}, None),
    ("j BETWEEN 1 AND 0", {"j": None}, None),
    ("j NOT BETWEEN 5 AND NULL", {"j": 1}, True),
    ("j <=> NULL", {"j": None}, True),
    ("maybe IS NOT TRUE", {"maybe": None}, True),
    ("greatest(j, i)", {"j": None, "i": 1}, 1),
    ("CASE WHEN maybe THEN 1 ELSE 2 END", {"maybe": None}, 2),
    ("CASE j WHEN NULL THEN 1 ELSE 2 END", {"j": None}, 2),
    ("array_contains(counts, 1)", {"counts": [None, 2]}, None),
    ("array_contains(counts, 2)", {"counts": [None, 2]}, True),
    ("size(counts)", {"counts": None}, None),
    ("counts[3]", {"counts": [1]}, None),
    ("counts[i]", {"counts": [1], "i": -1}, None),
    ("place.site.name", {"place": None}, None),
    # strings
    ("s < t", {"s": "\uffff", "t": "😀"}, True),
    ("length(s)", {"s": "a😀"}, 2),
    ("length(s)", {"s": "e\u0301"}, 2),
    ("upper(s)", {"s": "aßéi"}, "AßéI"),
    ("lower(s)", {"s": "AİÉ"}, "aİÉ"),
    ("trim(s)", {"s": " \t a \u00a0 "}, "\t a \u00a0"),
    ("substring(s, 0, 2)", {"s": "abc"}, "ab"),
    ("substring(s, -5, 3)", {"s": "abc"}, "a"),
    ("substring(s, -1)", {"s": "a😀"}, "😀"),
    ("substring(s, 2, -1)", {"s": "abc"}, ""),
    ("substring(s, i)", {"s": "abc", "i": 2**31}, None),
    ("substring(s, 2, 2147483647)", {"s": "abc"}, "bc"),
    ("replace(s, '', 'x')", {"s": "ab"}, "ab"),
    ("replace(s, 'a')", {"s": "banana"}, "bnn"),
    ("s LIKE 'a_c'", {"s": "a😀c"}, True),
    ("s LIKE 'a%'", {"s": "a\nb"}, True),
    (r"s LIKE '10\%'", {"s": "10%"}, True),
    (r"s LIKE '10\%'", {"s": "100"}, False),
    (r"s LIKE '\\\\%'", {"s": "\\x"}, True),
    ("s = '${system:user.dir}'", {"s": "${system:user.dir}"}, True),
    ("s = 'it''s'", {"s": "it's"}, True),
    (r"s = 'a\nb\\'", {"s": "a\nb\\"}, True),
    ("contains(s, '')", {"s": ""}, True),
    # casts of text
    ("CAST(s AS BIGINT)", {"s": " 1"}, None),
    ("CAST(s AS BIGINT)", {"s": "1.0"}, None),
    ("CAST(s AS BIGINT)", {"s": "+007"}, 7),
    ("CAST(s AS BIGINT)", {"s": "9223372036854775808"}, None),
    ("CAST(s AS BIGINT)", {"s": "12\n"}, None),
    ("CAST(s AS BIGINT)", {"s": "\u0661"}, None),
    ("CAST(s AS DOUBLE)", {"s": "1e400"}, None),
    ("CAST(s AS DOUBLE)", {"s": "NaN"}, None),
    ("CAST(s AS DOUBLE)", {"s": "1d"}, None),
    ("CAST(s AS DOUBLE)", {"s": "-.5e-1"}, -0.05),
    ("CAST(s AS DOUBLE)", {"s": "2.2250738585072012e-308"}, 2.2250738585072012e-308),
    ("CAST(s AS DECIMAL(5,2))", {"s": "123.455"}, Exact("123.46")),
    ("CAST(s AS DECIMAL(5,2))", {"s": "999.995"}, None),
    ("CAST(s AS DECIMAL(38,0))", {"s": "9" * 38}, Exact("9" * 38)),
    ("CAST(s AS DECIMAL(38,0))", {"s": "9" * 39}, None),
    ("CAST(s AS DECIMAL(38,38))", {"s": "0." + "1" * 60}, Exact("0." + "1" * 38)),
    ("CAST(s AS BOOLEAN)", {"s": "true"}, True),
    ("CAST(s AS BOOLEAN)", {"s": "True"}, None),
    ("CAST(s AS BOOLEAN)", {"s": "1"}, None),
    ("CAST(s AS TIMESTAMP)", {"s": "1970-01-01T00:00:00.1234567Z"}, 123456),
    ("CAST(s AS TIMESTAMP)", {"s": "1970-01-01 01:00:00+01:00"}, 0),
    ("CAST(s AS TIMESTAMP)", {"s": "1970-01-01T00:00:00"}, None),
    ("CAST(s AS TIMESTAMP)", {"s": "0000-01-01T00:00:00Z"}, None),
    ("CAST(s AS TIMESTAMP)", {"s": "2026-02-29T00:00:00Z"}, None),
    ("unix_seconds(CAST(s AS TIMESTAMP))", {"s": "0001-01-01T00:00:00+18:00"}, -62_135_661_600),
    # time
    ("unix_seconds(at)", {"at": -1}, -1),
    ("second(at)", {"at": -1}, 59),
    ("hour(at)", {"at": -1}, 23),
    ("year(at)", {"at": -62_135_596_800_000_000}, 1),
    ("dayofweek(at)", {"at": 0}, 5),
    ("dayofweek(at)", {"at": -86_400_000_001}, 3),
    ("day(at)", {"at": 951_782_400_000_000}, 29),
]


@pytest.mark.parametrize(("text", "row", "expected"), NASTY, ids=[f"{text}-{row}" for text, row, _ in NASTY])
def test_python_gives_the_stated_value(text: str, row: dict[str, Any], expected: Any) -> None:
    found = value(text, **row)

    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.spark
def test_spark_gives_what_python_gives_in_every_nasty_case(spark: SparkSession) -> None:
    filler = rows(1, seed=0)[0]

    assert not differences(spark, [read(text) for text, _, _ in NASTY], [filler | row for _, row, _ in NASTY], COLUMNS)
