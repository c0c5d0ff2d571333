"""Avro records that a reader may meet: random writer's schemas, good records, damaged ones and built traps.

The bytes of good records are fastavro's, so that a third party has a say. Everything comes from one seed.
"""

from __future__ import annotations

import copy
import io
import json
import math
import random
from typing import Any

import fastavro

from headrace.types.field_types import Decimal, List, Struct, Timestamp, Type
from tests.codec.generate import MOMENTS

MARK = bytes.fromhex("1F68656164726163652D656E642D1E00")
TEXTS = ["", "a", "Zürich", "\U0001f600", "NaN", "2026-01-01T00:00:00Z", "x" * 70, MARK.decode("latin-1")]
MOMENT_TEXTS = [json.loads(text) for text in MOMENTS if text.startswith('"')]


class Maker:
    """Makes schemas and data; every named type gets its own name."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.count = 0
        self.oddness = 0.0

    def name(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def writer(self, schema: Struct, luck: float = 0.6) -> dict[str, Any]:
        """A schema whose records fit the fields but for at most one, which is absent, null at times or of any type."""
        names = [field.name for field in schema]
        odd = self.rng.choice(names) if self.rng.random() < luck else None
        fields = []
        for field in schema:
            form = self.fitting(field.type)
            if field.name == odd:
                form = self.rng.choice([None, self.nullable(form), self.anything(2), self.anything(2)])
            elif field.optional:
                form = self.rng.choice([None, form, *[self.nullable(form)] * 8])
            if form is not None:
                fields.append({"name": field.name, "type": form})
        fields += [{"name": f"extra{at}", "type": self.anything(3)} for at in range(self.rng.randint(0, 3))]
        self.rng.shuffle(fields)
        return {"type": "record", "name": self.name(), "fields": fields}

    def nullable(self, form: Any) -> Any:
        if isinstance(form, list) or form == "null":
            return form
        return self.rng.choice([["null", form], [form, "null"]])

    def fitting(self, kind: Type) -> Any:
        pick = self.rng.choice
        match kind:
            case Decimal(_, scale):
                digits, point = kind.precision - kind.scale, self.rng.randint(0, scale)
                whole = self.rng.randint(0, digits)
                if whole + point == 0:
                    whole, point = (1, 0) if digits else (0, 1)
                base = pick(["bytes", "fixed"])
                form: dict[str, Any] = {"type": base, "logicalType": "decimal", "precision": whole + point}
                form["scale"] = point
                room = {"name": self.name(), "size": (whole + point) // 2 + 1 + self.rng.randint(0, 3)}
                form |= room if base == "fixed" else {}
                return pick([form, form, "int" if digits >= 10 else form, "long" if digits >= 19 else form])
            case Timestamp(unit):
                forms = [{"type": "long", "logicalType": f"timestamp-{one}"} for one in ("millis", "micros")]
                text = {"type": "string", "written": True}
                return pick([*forms, text] if unit == "rfc3339" else [*forms, "long", "int"])
            case List(element):
                inside = self.fitting(element)
                return {"type": "array", "items": self.nullable(inside) if kind.optional else inside}
            case Struct():
                return self.writer(kind, 0.05)
        symbols = {"type": "enum", "name": self.name(), "symbols": ["A", "B", "NaN"]}
        choices = {"string": ["string", "string", symbols], "boolean": ["boolean"], "integer": ["int", "long"]}
        return pick(choices.get(kind.name, ["double", "double", "float", "int", "long"]))

    def anything(self, depth: int) -> Any:
        """Any Avro type, as a field that nobody asks for may have."""
        simple = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
        named = [
            {"type": "enum", "name": self.name(), "symbols": ["X", "Y"]},
            {"type": "fixed", "name": self.name(), "size": self.rng.randint(0, 5)},
            {"type": "int", "logicalType": "date"},
            {"type": "long", "logicalType": "time-micros"},
        ]
        if depth == 0 or self.rng.random() < 0.6:
            return self.rng.choice([*simple, *named])
        match self.rng.randrange(4):
            case 0:
                return {"type": "map", "values": self.anything(depth - 1)}
            case 1:
                return {"type": "array", "items": ["null", {"type": "map", "values": self.anything(0)}]}
            case 2:
                return self.mixed()
        some = [{"name": f"g{at}", "type": self.anything(depth - 1)} for at in range(self.rng.randint(0, 3))]
        return {"type": "record", "name": self.name(), "fields": some}

    def mixed(self) -> list[Any]:
        every = ["null", "int", "long", "string", "boolean", {"type": "array", "items": "int"}]
        return self.rng.sample(every, self.rng.randint(1, len(every)))

    def datum(self, form: Any) -> Any:
        """A value as fastavro writes it; logical types are left out, so it is the bytes' own."""
        pick, rng, odd = self.rng.choice, self.rng, self.rng.random() < self.oddness
        if isinstance(form, list):
            at = rng.randrange(len(form))
            value = self.datum(form[at])
            return value if len(form) == 1 or form[at] == "null" else (_branch(form[at]), value)
        kind = form["type"] if isinstance(form, dict) else form
        match kind:
            case "null":
                return None
            case "boolean":
                return rng.random() < 0.5
            case "int":
                return pick([0, 1, -1, 2**31 - 1, -(2**31), rng.randint(-(2**31), 2**31 - 1)])
            case "long":
                spread = pick([10**3, 10**10]) if not odd else pick([10**13, 10**16, 2**63 - 1])
                edges = [253402300799999, 253402300800, -62135596800000] if odd else [0]
                return pick([rng.randint(-spread, spread), *edges])
            case "float" | "double":
                number = rng.uniform(-1e6, 1e6) if kind == "double" else float(rng.randint(-(2**20), 2**20)) / 8
                return pick([number, 0.0, -0.0, 1e30]) if not odd else pick([math.nan, math.inf, -math.inf])
            case "string" if "written" in form and not odd:
                return f"2026-0{rng.randint(1, 9)}-01T00:00:00.{rng.randint(0, 10**6)}{pick(['Z', '+05:30'])}"
            case "string":
                return pick(TEXTS + MOMENT_TEXTS)
            case "bytes" | "fixed":
                return self.run(form)
            case "enum":
                return pick(form["symbols"])
            case "array":
                return [self.datum(form["items"]) for _ in range(rng.randint(0, 3))]
            case "map":
                return {pick(TEXTS): self.datum(form["values"]) for _ in range(rng.randint(0, 2))}
        return {field["name"]: self.datum(field["type"]) for field in form["fields"]}

    def run(self, form: Any) -> bytes:
        rng = self.rng
        if isinstance(form, dict) and form.get("logicalType") == "decimal" and rng.random() > self.oddness:
            limit = 10 ** form["precision"] - (rng.random() > self.oddness)
            number = rng.choice([0, limit, -limit, rng.randint(-limit, limit)])
            size = form.get("size") or (abs(number).bit_length() + 8) // 8 + rng.randint(0, 2)
            return int(number).to_bytes(int(size), "big", signed=True)
        size = form["size"] if isinstance(form, dict) and "size" in form else rng.choice([0, 1, 3, 17, 40])
        return rng.randbytes(int(size))

    def good(self, form: dict[str, Any]) -> bytes:
        self.oddness = self.rng.choice([0.0, 0.05])
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(plain(form)), self.datum(form))
        return out.getvalue()

    def damaged(self, data: bytes) -> bytes:
        """A good record after one accident."""
        rng, broken = self.rng, bytearray(data)
        at = rng.randrange(len(broken)) if broken else 0
        odd = [b"\0", b"\x01", b"\x02", b"\xff", b"\x80\x00", b"\xff" * 9 + b"\x01", b"\xfe\xff\xff\xff\x0f", MARK]
        match rng.randrange(7):
            case 0 if broken:
                broken[at] ^= 1 << rng.randrange(8)
            case 1:
                del broken[at:]
            case 2:
                broken += rng.choice([b"\0", b"\xff", b"abc", MARK, MARK[:5], MARK + b"x"])
            case 3:
                broken[at : at + 1] = rng.choice(odd)
            case 4:
                broken[at:at] = rng.choice(odd)
            case 5 if broken:
                broken[at] = rng.randrange(256)
            case _:
                return rng.randbytes(rng.randint(1, 40))
        return bytes(broken)


def plain(form: Any) -> Any:
    """The schema without logical types: fastavro then writes the bytes it is given."""
    stripped = copy.deepcopy(form)
    waiting = [stripped]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            one.pop("logicalType", None)
        waiting += list(one.values()) if isinstance(one, dict) else one if isinstance(one, list) else []
    return stripped


def _branch(form: Any) -> str:
    """The name by which fastavro is told a union's branch."""
    if isinstance(form, dict):
        return str(form.get("name", form["type"]))
    return str(form)
