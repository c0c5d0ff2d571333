"""Byte strings that a reader of JSON may meet: good records, damaged ones and built traps, all from one seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from headrace.types.field_types import Decimal, List, Struct, Timestamp, optional, schema_of

EVERYTHING: Struct = schema_of(
    {
        "id": str,
        "ok": bool,
        "n": int,
        "x": float,
        "price": Decimal(10, 2),
        "whole": Decimal(38, 0) | None,
        "tiny": Decimal(38, 38) | None,
        "at": Timestamp,
        "s": Timestamp("s") | None,
        "ms": Timestamp("ms") | None,
        "us": Timestamp("us") | None,
        "note": str | None,
        "flag": bool | None,
        "count": int | None,
        "ratio": float | None,
        "tags": list[str],
        "gaps": list[int | None] | None,
        "amounts": List(Decimal(6, 3)) | None,
        "grid": list[list[float]] | None,
        "place": {"city": str, "lat": float | None, "inner": optional({"deep": int, "when": Timestamp})},
        "items": List(schema_of({"sku": str, "qty": int | None, "parts": List(schema_of({"p": float})) | None})) | None,
        "timestamp": int | None,
        "__text": str | None,
    }
)


def sections() -> dict[str, list[str]]:
    """The lists of odd JSON values beside this file, one value a line."""
    text = Path(__file__).with_name("odd_values.txt").read_text(encoding="utf-8")
    parts = (part.split("\n") for part in text.removeprefix("== ").split("\n== "))
    return {name: [line for line in lines if line] for name, *lines in parts}


ODD = sections()
NUMBERS = [
    *ODD["numbers"],
    *("1" * n for n in (38, 39, 40, 999, 1000, 1001, 1200)),
    *("-" + "9" * n for n in (38, 39, 1000, 1001)),
    *("0." + "0" * n + "1" for n in (36, 37, 38, 996, 997, 998, 999, 1000)),
    *("1." + "0" * n for n in (2, 36, 37, 38, 39, 999, 1000)),
    *("12." + "50" + "0" * n for n in (33, 34, 35, 36)),
    *("1.5e" + "1" * n for n in (997, 998, 999)),
    *("0." + "1" * n for n in (37, 38, 39)),
    *("1" * n + "." + "1" * (38 - n) for n in (1, 8, 19, 37)),
    *("7" * n + "." + "7" * (digits - n) for n in (1, 500) for digits in (998, 999, 1000, 1001)),
]
MOMENTS = ODD["moments"]
STRINGS = [*ODD["strings"], '"a\nb"', '""']
OTHERS = ODD["others"]
JUNK = [
    *b'] } , [ { 0 null "x" ]} }] ,1 ,"~end~"] ,"x"] ]junk };alert(1) // /**/ \x00 \x0b \x0c \x1e \xff \xc0\x80'.split(
        b" "
    ),
    *(
        b"\n",
        b" ",
        b"\t",
        b"\r\n",
        b"\xed\xa0\x80",
        b',"\\u007eend~"]',
        "\ufeff".encode(),
        "\xa0".encode(),
        "\u2028".encode(),
    ),
]
RAW = (
    b"",
    b" ",
    b"null",
    b"true",
    b"1",
    b'"a"',
    b"[]",
    b"{}",
    b"[{}]",
    b"{} {}",
    b"{}{}",
    b"{},{}",
    b"]",
    b"}",
    b"[",
    b"{",
    b"\xef\xbb\xbf{}",
    b"\xff\xfe{\x00}\x00",
    b"\x00",
    b"{}\x00",
    b"\xc3\x28",
    b'"\xed\xa0\x80"',
    b'"\xf4\x90\x80\x80"',
    b'"\xc0\xaf"',
    b'"\xe0\x80\x80"',
    b'"\xf0\x80\x80\x80"',
    b'"\xf8\x88\x80\x80\x80"',
    b'"\xe2\x82"',
    b'"\xf4\x8f\xbf\xbf"',
    b'1,"~end~"] junk',
    b'1,"\\u007eend~"] junk',
    b'1,"xxxxxxxxxxxxxxxx"]',
    b'{},"~end~"',
    b'{}],"~end~"',
    b'{},"xxxxxx"]',
    b"NaN",
    b"-Infinity",
    b"tru",
    b"nul",
    b"1.",
    b"01",
    b"- 1",
    b"'a'",
    b'{"a":1}{"b":2}',
    b'{"a":1]',
    b"[1}",
    b'"\\',
    b'"\\u',
)


def cases(count: int, seed: int = 20260131) -> list[bytes]:
    """`count` byte strings; the first ones are the built traps, the rest random."""
    rng = random.Random(seed)
    found = [*RAW, *traps(rng)]
    makers: list[Callable[[random.Random], bytes]] = [
        good,
        good,
        one_odd_value,
        one_odd_value,
        damaged,
        damaged,
        renamed,
    ]
    while len(found) < count:
        found.append(rng.choice(makers)(rng))
    return found[:count]


def traps(rng: random.Random) -> Iterator[bytes]:
    """Nesting, names and numbers around the limits, each odd value in each field, junk around a good record."""
    good_text = text_of(fields(rng), rng)
    for depth in (50, 99, 100, 101, 500, 997, 998, 999, 1000, 1001, 3000):
        for opening, closing in (("[", "]"), ('{"k":', "}")):
            nest = opening * depth + ("1" if opening != "[" else "") + closing * depth
            yield nest.encode()
            yield (opening * depth).encode()
            yield with_extra(good_text, f'"deep":{nest}')
            yield with_extra(good_text, f'"deep":{nest},"deep":1')
            yield with_extra(good_text, f'"deep":{nest[:-1]}')
    for length in (49_999, 50_000, 50_001):
        for unit in ("a", "é", "\U0001f600", "\\u00e9", "\\ud83d\\ude00"):
            name = unit * (length // 2 if unit in ("\U0001f600", "\\ud83d\\ude00") else length)
            yield with_extra(good_text, f'"{name}":1')
            yield with_extra(good_text, f'"{name}x":1')
    for number in NUMBERS:
        yield with_extra(good_text, f'"extra":{number}')
        yield with_extra(good_text, f'"in \\\\\\"{number} a\\\\":["{number}",\t{number}\n,"\\"{number}"]')
    for junk in JUNK:
        yield good_text + junk
        yield junk + good_text
        yield b"{}" + junk
        yield b"{" + junk + b"}"
        yield b'{"a":1' + junk + b"}"
    for field in EVERYTHING:
        for odd in (*NUMBERS, *STRINGS, *OTHERS, *MOMENTS):
            if rng.random() < 0.12 or relevant(field.type.name, odd):
                yield text_of(fields(rng) | {field.name: odd}, rng)


def relevant(kind: str, odd: str) -> bool:
    """Whether an odd value is made for this type, so that it is never left to chance."""
    if kind == "timestamp":
        return odd in MOMENTS or odd in NUMBERS
    return odd in {"string": STRINGS, "list": OTHERS, "struct": OTHERS, "boolean": OTHERS}.get(kind, NUMBERS)


def with_extra(record: bytes, extra: str) -> bytes:
    """A record with one more member, which nobody declared."""
    return record[: record.rindex(b"}")] + f",{extra}}}".encode()


def fields(rng: random.Random) -> dict[str, str]:
    """Valid JSON text for each field; optional ones are at times null or left out."""
    found = {field.name: value_text(field.type, rng) for field in EVERYTHING}
    for field in EVERYTHING:
        if field.optional and rng.random() < 0.4:
            if rng.random() < 0.5:
                del found[field.name]
            else:
                found[field.name] = "null"
    return found


def value_text(kind: Any, rng: random.Random) -> str:
    """Valid JSON text of a value of this type."""
    match kind.name:
        case "string":
            return rng.choice(['"a"', '"Zürich"', '"\\u00e9\\n"', '"\U0001f600"', '"~end~"', '""', f'"{rng.random()}"'])
        case "boolean":
            return rng.choice(["true", "false"])
        case "integer":
            return str(rng.choice([0, -(2**63), 2**63 - 1, rng.randint(-(2**63), 2**63 - 1), rng.randint(-99, 99)]))
        case "float":
            return rng.choice(
                [repr(rng.uniform(-1e9, 1e9)), repr(rng.random() * 10.0 ** rng.randint(-300, 300)), "7", "-0.0", "1.50"]
            )
        case "decimal":
            digits = "".join(rng.choice("0123456789") for _ in range(rng.randint(0, kind.scale)))
            before = kind.precision - kind.scale
            whole = rng.choice([str(rng.randint(0, 10 ** rng.randint(0, before) - 1)), "9" * before or "0"])
            text = rng.choice(["", "-"]) + whole + (f".{digits}" if digits else "")
            return rng.choice([text, f'"{text}"'])
        case "timestamp" if kind.unit == "rfc3339":
            day, hour = f"{rng.randint(1, 9999):04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}", rng.randint(0, 23)
            fraction = f".{rng.randint(0, 10**9 - 1)}" if rng.random() < 0.5 else ""
            offset = rng.choice(["Z", "+00:00", "-00:00", "+05:30", "-18:00", "+17:59"])
            return (
                f'"{day}{rng.choice("T ")}{hour:02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}{fraction}{offset}"'
            )
        case "timestamp":
            return str(rng.randint(-62135596800, 253402300799) * (1_000_000 // Timestamp.units[kind.unit]))
        case "list":
            some = [value_text(kind.element, rng) for _ in range(rng.randint(0, 3))]
            return f"[{','.join('null' if kind.optional and rng.random() < 0.3 else one for one in some)}]"
    shown = [field for field in kind if not field.optional or rng.random() < 0.7]
    texts = ["null" if field.optional and rng.random() < 0.3 else value_text(field.type, rng) for field in shown]
    return "{" + ",".join(f'"{field.name}":{text}' for field, text in zip(shown, texts, strict=True)) + "}"


def text_of(members: dict[str, str], rng: random.Random) -> bytes:
    """Members as an object: in any order, with any white space and at times undeclared keys."""
    pairs = [f'"{name}"{space(rng)}:{space(rng)}{value}' for name, value in members.items()]
    if rng.random() < 0.3:
        pairs.append(
            rng.choice(['"":1', '"a.b":1', '"$":[{}]', '"ID":1', '"é\\u0000\\"":"x"', '"Id":{"id":null}', '"__root":1'])
        )
    if rng.random() < 0.5:
        rng.shuffle(pairs)
    return (space(rng) + "{" + space(rng) + ("," + space(rng)).join(pairs) + "}" + space(rng)).encode(
        "utf-8", "surrogatepass"
    )


def space(rng: random.Random) -> str:
    return "" if rng.random() < 0.9 else rng.choice([" ", "\n", "\t", "\r\n", "  "])


def good(rng: random.Random) -> bytes:
    return text_of(fields(rng), rng)


def one_odd_value(rng: random.Random) -> bytes:
    members = fields(rng)
    odd = rng.choice([NUMBERS, STRINGS, OTHERS, MOMENTS])
    members[rng.choice([field.name for field in EVERYTHING])] = rng.choice(odd)
    return text_of(members, rng)


def renamed(rng: random.Random) -> bytes:
    """A key in another case, missing, twice, or twice with one spelled by an escape."""
    members = fields(rng)
    name = rng.choice(list(members))
    text = text_of(members, rng)
    other = rng.choice([name.upper(), name + " ", "x", f"\\u{ord(name[0]):04x}{name[1:]}"])
    if rng.random() < 0.5:
        return text.replace(f'"{name}"'.encode(), f'"{other}"'.encode(), 1)
    return with_extra(text, f'"{other}":{members[name]}')


def damaged(rng: random.Random) -> bytes:
    """A good record after one accident."""
    text = bytearray(good(rng))
    at = rng.randrange(len(text))
    match rng.randrange(6):
        case 0:
            text[at] ^= 1 << rng.randrange(8)
        case 1:
            del text[at:]
        case 2:
            del text[at]
        case 3:
            text[at:at] = rng.choice(JUNK)
        case 4:
            text[at:at] = rng.choice([b",", b'"', b"\\", b"null", b"0", b"}", b"]", b":", b"\xf0\x9f"])
        case _:
            text[at] = rng.randrange(256)
    return bytes(text)
