"""Versions of schemas: never changed, never skipped, never incompatible without saying so."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from headrace.codec.registry import files as module
from headrace.codec.registry.files import SchemaFiles, fingerprint
from headrace.errors import SchemaError
from headrace.types.field_types import Struct, schema_of
from tests.codec.strategies import schemas

ONE = schema_of({"card": str, "amount": float})
TWO = schema_of({"card": str, "amount": float, "country": str | None})


def test_a_registered_schema_comes_back(tmp_path: Path):
    registry = SchemaFiles(tmp_path / "schemas")
    assert registry.latest("payments") is None
    assert registry.versions("payments") == []
    assert registry.streams() == []
    registry.register("payments", ONE, "full")
    registry.register("payments", TWO)
    again = SchemaFiles(tmp_path / "schemas")
    assert again.versions("payments") == [1, 2]
    assert again.streams() == ["payments"]
    assert (again.get("payments", 1).schema, again.get("payments", 1).compatibility) == (ONE, "full")
    latest = again.latest("payments")
    assert latest is not None
    assert (latest.number, latest.schema) == (2, TWO)


def test_the_newest_schema_again_is_the_same_version(tmp_path: Path):
    registry = SchemaFiles(tmp_path)
    first = registry.register("payments", ONE)
    assert registry.register("payments", ONE, "full") == first
    assert registry.versions("payments") == [1]


def test_a_file_holds_nothing_that_depends_on_when_or_where(tmp_path: Path):
    for folder in ("a", "b"):
        SchemaFiles(tmp_path / folder).register("payments", ONE)
    files = [(tmp_path / folder / "payments" / "1.json").read_bytes() for folder in ("a", "b")]
    assert files[0] == files[1]
    assert json.loads(files[0]) == {
        "stream": "payments",
        "version": 1,
        "fingerprint": fingerprint(ONE),
        "compatibility": "backward",
        "schema": {"struct": [{"name": "card", "type": "string"}, {"name": "amount", "type": "float"}]},
    }


def test_an_incompatible_change_is_refused_and_shown(tmp_path: Path):
    registry = SchemaFiles(tmp_path)
    registry.register("payments", ONE)
    with pytest.raises(SchemaError) as error:
        registry.register("payments", schema_of({"card": int, "amount": float, "country": str, "note": str | None}))
    assert error.value.code == "incompatible-schema"
    assert error.value.message == (
        "The new schema of stream 'payments' is not backward compatible with version 1: "
        "`~ card string -> integer`, `+ country string`."
    )
    assert registry.versions("payments") == [1]


def test_a_schema_is_held_to_every_version_and_not_only_the_last(tmp_path: Path):
    registry = SchemaFiles(tmp_path)
    registry.register("payments", schema_of({"a": int, "b": str}))
    registry.register("payments", schema_of({"a": int}))
    with pytest.raises(SchemaError, match=r"version 1: `~ b string -> integer`"):
        registry.register("payments", schema_of({"a": int, "b": int | None}))


def test_with_compatibility_none_history_starts_anew(tmp_path: Path):
    registry = SchemaFiles(tmp_path)
    registry.register("payments", schema_of({"a": int}))
    registry.register("payments", schema_of({"a": str}), "none")
    assert registry.register("payments", schema_of({"a": str, "b": int | None})).number == 3


def test_the_tenth_version_comes_after_the_ninth(tmp_path: Path):
    registry = SchemaFiles(tmp_path)
    fields: dict[str, Any] = {"a": int}
    for number in range(11):
        fields[f"f{number}"] = str | None
        registry.register("payments", schema_of(fields))
    assert registry.versions("payments") == list(range(1, 12))
    latest = registry.latest("payments")
    assert latest is not None
    assert latest.number == 11


def test_an_unknown_version_lists_the_known_ones(tmp_path: Path):
    registry = SchemaFiles(tmp_path)
    registry.register("payments", ONE)
    with pytest.raises(SchemaError) as error:
        registry.get("payments", 7)
    assert (error.value.code, error.value.hint) == ("unknown-version", "Known: 1.")


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".", "x" * 1_000_000, None, 5])
def test_a_name_that_is_no_name_never_becomes_a_path(tmp_path: Path, name: Any):
    with pytest.raises(SchemaError) as error:
        SchemaFiles(tmp_path).register(name, ONE)
    assert error.value.code == "bad-name"
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_level_is_refused_even_for_the_first_version(tmp_path: Path):
    with pytest.raises(SchemaError) as error:
        SchemaFiles(tmp_path).register("payments", ONE, "backwards")
    assert error.value.code == "bad-argument"


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:40],
        lambda text: "",
        lambda text: "[]",
        lambda text: "null",
        lambda text: text.replace('"float"', '"integer"'),
        lambda text: text.replace('"card"', '"a b"'),
        lambda text: text.replace('"version": 1', '"version": 2'),
        lambda text: text.replace('"backward"', '"none"', 1).replace("fingerprint", "finger"),
        lambda text: "\udcff" + text,
    ],
)
def test_a_version_that_was_changed_by_hand_is_refused(tmp_path: Path, damage: Any):
    registry = SchemaFiles(tmp_path)
    registry.register("payments", ONE)
    file = tmp_path / "payments" / "1.json"
    file.write_bytes(damage(file.read_text()).encode("utf-8", "surrogateescape"))
    with pytest.raises(SchemaError) as error:
        registry.latest("payments")
    assert error.value.code == "bad-type"
    assert error.value.where == str(file)


def test_a_crash_before_the_link_leaves_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    registry = SchemaFiles(tmp_path)

    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "link", crash)
    with pytest.raises(KeyboardInterrupt):
        registry.register("payments", ONE)
    monkeypatch.undo()
    assert registry.versions("payments") == []
    assert list((tmp_path / "payments").iterdir()) == []
    assert registry.register("payments", ONE).number == 1


def test_of_two_that_register_at_once_each_gets_its_own_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    barrier = threading.Barrier(2, timeout=10)
    write = module._write
    first = threading.local()

    def together(file: Path, form: dict[str, Any]) -> bool:
        if not hasattr(first, "done"):
            first.done = True
            barrier.wait()
        return write(file, form)

    monkeypatch.setattr(module, "_write", together)
    found: list[int] = []
    wanted = [schema_of({"a": int, name: str | None}) for name in ("x", "y")]
    threads = [
        threading.Thread(target=lambda schema=schema: found.append(SchemaFiles(tmp_path).register("s", schema).number))
        for schema in wanted
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert sorted(found) == [1, 2]


@given(schemas)
def test_a_fingerprint_tells_schemas_apart(schema: Struct):
    other = Struct((*schema.fields[1:], *schema.fields[:1]))
    assert (fingerprint(other) == fingerprint(schema)) == (other == schema)
