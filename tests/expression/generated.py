"""Random well-typed expressions and rows full of edge cases, for holding Python to Spark."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal as Exact
from typing import Any

from hypothesis import strategies as st

from headrace.expression import ColumnType
from headrace.types.field_types import Boolean, Decimal, Field, Float, Integer, List, String, Struct, Timestamp

PLACE = Struct((Field("zone", Integer(), optional=True), Field("site", Struct((Field("name", String()),)))))
COLUMNS: dict[str, ColumnType] = {
    "i": ColumnType(Integer()),
    "j": ColumnType(Integer(), nullable=True),
    "f": ColumnType(Float()),
    "g": ColumnType(Float(), nullable=True),
    "d": ColumnType(Decimal(10, 2)),
    "e": ColumnType(Decimal(18, 6), nullable=True),
    "h": ColumnType(Decimal(38, 10), nullable=True),
    "s": ColumnType(String()),
    "t": ColumnType(String(), nullable=True),
    "at": ColumnType(Timestamp()),
    "seen": ColumnType(Timestamp(), nullable=True),
    "yes": ColumnType(Boolean()),
    "maybe": ColumnType(Boolean(), nullable=True),
    "counts": ColumnType(List(Integer(), optional=True), nullable=True),
    "rates": ColumnType(List(Float())),
    "tags": ColumnType(List(String(), optional=True)),
    "place": ColumnType(PLACE, nullable=True),
}

WHOLES = [0, 1, -1, 2, 3, 7, 10, 24, 100, 2**31 - 1, 2**31, -(2**31), 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.1, 0.5, 1.5, 2.5, -2.5, 3.0, 1e15, 1e16, 1e300, -1e308, 1.7976931348623157e308]
FLOATS += [5e-324, 2.2250738585072014e-308, 9.223372036854775807e18, -9.223372036854775808e18, 1e19, 123456.789]
TEXTS = ["", " ", "a", "A", "ab", "abc", " a ", "a b", "%", "_", "\\", "a%b", "a_b", "it's", '"', "é", "e\u0301", "ß"]
TEXTS += [
    "İ",
    "😀",
    "a😀b",
    "日本",
    "\u00a0x",
    "\n",
    "a\n",
    "\t1",
    "true",
    "false",
    "TRUE",
    "t",
    "1",
    "-1",
    "+7",
    " 12 ",
]
TEXTS += ["007", "1.5", "-.5", "5.", "1e5", "1E-3", "1e400", "NaN", "Infinity", "0x1F", "1_000", "9223372036854775807"]
TEXTS += ["1f", "1d", "9223372036854775808", "-9223372036854775808", "99999999.995", "0.005", "12345678901234567890.5"]
TEXTS += ["2026-01-01T00:00:00Z", "2026-02-29T00:00:00Z", "2026-01-01 23:59:59.123456789+05:30", "2026-01-01T00:00:00"]
TEXTS += ["0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2026-01-01T24:00:00Z"]
TEXTS += ["2026-01-01T00:00:60Z", "2026-01-01T00:00:00+18:00", "2026-01-01T00:00:00-17:59", "2026-01-01T00:00:00+19:00"]
TEXTS += [
    "2026-01-01T00:00:00Z\n",
    "12\n",
    "true\n",
    "1.5\n",
    "-0",
    "+",
    "1e",
    ".",
    "\u2028",
    "\0",
    "\ufffd",
    "${x}",
    "١٢",
]
CENTS = [Exact(f"{n}e-2") for n in (0, 1, -1, 50, 99, 100, 150, 250, -250, 12345, 9999999999, -9999999999)]
SIXES = [Exact(f"{n}e-6") for n in (0, 1, -1, 500000, 1500000, -2500000, 10**18 - 1, 1 - 10**18)]
TENS = [Exact(f"{n}e-10") for n in (0, 1, -1, 10**10, 15 * 10**9, 10**38 - 1, 1 - 10**38, 2**63 * 10**10)]
MOMENTS = [0, 1, -1, 999_999, 1_767_225_600_000_000, -62_135_596_800_000_000, 253_402_300_799_999_999]
MOMENTS += [951_782_400_000_000, -2_203_891_200_000_000, 1_709_164_800_000_000, -1_000_000, 86_399_999_999]


def rows(count: int, seed: int) -> list[dict[str, Any]]:
    """Rows that mix edge values with each other and with nulls."""
    rng = random.Random(seed)

    def one(values: list[Any], optional: bool = False) -> Any:
        return None if optional and rng.random() < 0.15 else rng.choice(values)

    def several(values: list[Any], optional: bool = False) -> list[Any]:
        return [one(values, optional) for _ in range(rng.randrange(4))]

    def place() -> Any:
        return {"zone": one(WHOLES, True), "site": {"name": one(TEXTS)}} if rng.random() > 0.15 else None

    small, plain = [*WHOLES, *range(-5, 13)], [*FLOATS, *(n / 4 for n in range(-9, 9))]
    makers: dict[str, Callable[[], Any]] = {
        "i": lambda: one(small),
        "j": lambda: one(small, True),
        "f": lambda: one(plain),
        "g": lambda: one(plain, True),
        "d": lambda: one(CENTS),
        "e": lambda: one(SIXES, True),
        "h": lambda: one(TENS, True),
        "s": lambda: one(TEXTS),
        "t": lambda: one(TEXTS, True),
        "at": lambda: one(MOMENTS) if rng.random() < 0.5 else rng.randrange(MOMENTS[5], MOMENTS[6]),
        "seen": lambda: one(MOMENTS, True),
        "yes": lambda: one([True, False]),
        "maybe": lambda: one([True, False], True),
        "counts": lambda: several(small, True) if rng.random() > 0.15 else None,
        "rates": lambda: several(plain),
        "tags": lambda: several(TEXTS, True),
        "place": place,
    }
    return [{name: make() for name, make in makers.items()} for _ in range(count)]


def quote(text: str) -> str:
    """A string as expression text."""
    escaped = text.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n").replace("\0", "\\0")
    return f"'{escaped}'"


Draw = Callable[[st.SearchStrategy[str]], str]
KINDS = ("int", "float", "decimal", "string", "boolean", "moment")
NUMBERS = ("int", "float", "decimal")
LEAVES: dict[str, list[str]] = {
    "int": ["i", "j", "place.zone", "counts[0]", *map(str, WHOLES)],
    "float": ["f", "g", "rates[0]", "rates[1]", "0.1", "-1.5", "1e308", "2.5", "1e-300", "0.0", "3e18"],
    "decimal": ["d", "e", "h", "CAST(1.25 AS DECIMAL(3,2))", "CAST(-7 AS DECIMAL(5,0))", "CAST(NULL AS DECIMAL(9,3))"],
    "string": ["s", "t", "tags[0]", "place.site.name", *(quote(text) for text in TEXTS)],
    "boolean": ["yes", "maybe", "TRUE", "FALSE", "CAST(NULL AS BOOLEAN)"],
    "moment": ["at", "seen", "TIMESTAMP '2026-01-01T00:00:00Z'", "TIMESTAMP '0001-01-01T00:00:00.000001Z'"],
}
PATTERNS = [
    "'%'",
    "'a%'",
    "'%b'",
    "'_'",
    "'%a%'",
    "'a_b'",
    r"'a\\%b'",
    r"'\_%'",
    "''",
    r"'\\\\'",
    "'_%_'",
    "'%😀_'",
    "'a%b%'",
]
TYPES = {
    "int": "BIGINT",
    "float": "DOUBLE",
    "string": "STRING",
    "boolean": "BOOLEAN",
    "moment": "TIMESTAMP",
    "decimal": "DECIMAL(12,3)",
}
DIGITS = ["6,6", "7,0", "9,2", "10,2", "12,5", "18,0", "18,6", "19,3", "20,0", "22,2", "30,10", "38,0", "38,20"]
CASTS = {
    "int": ["string", "float", "decimal", "boolean"],
    "float": ["string", "int", "decimal"],
    "decimal": ["string", "int", "decimal"],
    "string": ["int", "boolean"],
    "boolean": ["string", "int"],
    "moment": ["string"],
}


@st.composite
def expressions(draw: Draw, depth: int = 4) -> str:
    """The text of a random expression of any type."""
    return grown(draw, draw(st.sampled_from(KINDS)), depth, early=False)


def grown(draw: Draw, kind: str, depth: int, *, early: bool = True) -> str:
    """The text of a random expression of one type, at most `depth` levels deep; fewer when it may end `early`."""
    if depth <= 0 or (early and draw(st.sampled_from("0123456789")) == "9"):
        return draw(st.sampled_from(LEAVES[kind]))

    def sub(of: str = kind) -> str:
        return f"({grown(draw, of, depth - 1)})"

    def pick(*options: str) -> str:
        return draw(st.sampled_from(options))

    shared: list[Callable[[], str]] = [
        lambda: f"CASE WHEN {sub('boolean')} THEN {sub()} WHEN {sub('boolean')} THEN {sub()} ELSE {sub()} END",
        lambda: f"CASE {sub(k := pick(*KINDS))} WHEN {sub(k)} THEN {sub()} END",
        lambda: f"IF({sub('boolean')}, {sub()}, {sub()})",
        lambda: f"COALESCE({sub()}, {sub()})",
        lambda: f"NULLIF({sub()}, {sub()})",
        lambda: f"{pick('GREATEST', 'LEAST')}({sub()}, {sub()}, {sub()})",
        lambda: _cast(draw, kind, sub),
    ]
    productions = shared + 2 * _own(kind, sub, pick)
    return productions[int(draw(st.sampled_from([str(n) for n in range(len(productions))])))]()


def _cast(draw: Draw, kind: str, sub: Callable[..., str]) -> str:
    target = TYPES[kind]
    if kind == "moment":
        return f"CAST(concat({sub('string')}, {draw(st.sampled_from(['s', 't', 'place.site.name']))}) AS TIMESTAMP)"
    if kind == "decimal":
        target = f"DECIMAL({draw(st.sampled_from(DIGITS))})"
    return f"CAST({sub(draw(st.sampled_from(CASTS[kind])))} AS {target})"


def _own(kind: str, sub: Callable[..., str], pick: Callable[..., str]) -> list[Callable[[], str]]:
    if kind == "boolean":
        return _conditions(sub, pick)
    if kind == "string":
        return [
            lambda: f"{pick('lower', 'upper', 'trim')}({sub()})",
            lambda: f"{sub()} || {sub()}",
            lambda: f"concat({sub()}, {sub()}, {sub()})",
            lambda: f"substring({sub()}, {sub('int')}, {sub('int')})",
            lambda: f"substring({sub()}, {pick('0', '1', '2', '-1', '-2', '-9')}, {pick('0', '1', '2', '-1', '9')})",
            lambda: f"substring({sub()}, {pick('0', '1', '2', '-1')})",
            lambda: f"replace({sub()}, {sub()}, {sub()})",
        ]
    if kind == "moment":
        return [lambda: f"COALESCE({sub()}, {sub()})"]
    own: list[Callable[[], str]] = [
        lambda: f"{sub()} {pick('+', '-', '*', '%')} {sub()}",
        lambda: f"{sub()} {pick('+', '-', '*')} {pick('1', '2', '10')}",
        lambda: f"- {sub()}",
        lambda: f"abs({sub()})",
    ]
    if kind == "int":
        parts = ("hour", "minute", "second", "day", "month", "year", "dayofweek", "unix_seconds", "unix_micros")
        own += [
            lambda: f"{pick(*parts)}({sub('moment')})",
            lambda: f"length({sub('string')})",
            lambda: f"{pick('floor', 'ceil')}({sub(pick('float', 'int'))})",
            lambda: f"size({pick('counts', 'rates', 'tags')})",
            lambda: f"counts[{sub()}]",
        ]
    if kind == "float":
        own += [
            lambda: f"{sub(pick(*NUMBERS))} / {sub(pick(*NUMBERS))}",
            lambda: f"{sub(pick(*NUMBERS))} {pick('+', '-', '*', '%')} {sub()}",
            lambda: f"sqrt({sub(pick(*NUMBERS))})",
            lambda: f"finite({sub()})",
        ]
    if kind == "decimal":
        own += [
            lambda: f"round({sub()}, {pick('0', '1', '2', '5')})",
            lambda: f"{pick('floor', 'ceil')}({sub()})",
            lambda: f"{sub()} {pick('+', '-', '*', '%')} {sub('int')}",
            lambda: f"{sub()} {pick('+', '-', '*', '%')} {pick('1.5', '0.01', '100')}",
        ]
    return own


def _conditions(sub: Callable[..., str], pick: Callable[..., str]) -> list[Callable[[], str]]:
    comparisons = ("=", "<>", "<", "<=", ">", ">=", "<=>")
    many = ", ".join(str(n) for n in range(-3, 12))
    return [
        lambda: f"{sub(k := pick(*KINDS))} {pick(*comparisons)} {sub(k)}",
        lambda: f"{sub(pick(*NUMBERS))} {pick(*comparisons)} {sub(pick(*NUMBERS))}",
        lambda: f"{sub()} {pick('AND', 'OR')} {sub()}",
        lambda: f"NOT {sub()}",
        lambda: f"{sub(pick(*KINDS))} IS {pick('', 'NOT')} NULL",
        lambda: f"{sub()} IS {pick('', 'NOT')} {pick('TRUE', 'FALSE')}",
        lambda: f"{sub(k := pick(*KINDS))} IS {pick('', 'NOT')} DISTINCT FROM {sub(k)}",
        lambda: f"{sub(k := pick(*KINDS))} {pick('', 'NOT')} BETWEEN {sub(k)} AND {sub(k)}",
        lambda: f"{sub(pick(*NUMBERS))} {pick('', 'NOT')} IN (1, {pick('0', '0.0', 'NULL', '-2.5')}, 2)",
        lambda: f"{sub(pick(*NUMBERS))} IN ({many}{pick('', ', NULL', ', 0.5')})",
        lambda: f"{sub('string')} IN ('a', {pick(quote('it' + chr(39) + 's'), 'NULL', quote('😀'))}, '')",
        lambda: f"{sub('string')} {pick('', 'NOT')} LIKE {pick(*PATTERNS)}",
        lambda: f"{pick('startswith', 'endswith', 'contains')}({sub('string')}, {sub('string')})",
        lambda: f"array_contains(counts, {pick('1', '0', '-9223372036854775808')})",
        lambda: f"array_contains(rates, {pick('1', '0', '-2.5')})",
        lambda: f"array_contains(tags, {pick(*(quote(text) for text in TEXTS[:12]))})",
    ]
