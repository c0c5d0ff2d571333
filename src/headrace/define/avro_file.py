"""An Avro schema as `hr.stream` takes it: JSON text, or the path of a file beside the user's own.

What comes out is canonical text inside the stream's value: the file is read once, when the stream is declared, and a
change of it is a change of the definition.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from headrace.errors import GENERATED, PACKAGE, DefinitionError, SchemaError, shown
from headrace.types.field_types import Struct


def avro_text_of(given: Any, format: str, schema: Struct) -> str:
    """The canonical text of a producers' schema, which must be one that the stream's fields can be read from."""
    if format != "avro":
        hint = 'Say format="avro"; in the Confluent wire format the registry has the schemas.'
        message = "Only a stream of plain Avro takes an Avro schema."
        raise DefinitionError("bad-argument", message, got=shown(format), hint=hint)
    if not isinstance(given, str):
        hint = "Give JSON text, or the path of a file that holds it."
        raise DefinitionError("bad-argument", "An Avro schema is given as text.", got=shown(given), hint=hint)
    from headrace.codec.avro.schema import fields_read, record
    from headrace.types.compatibility import check

    text = given if given.lstrip().startswith(("{", "[", '"')) else _read(given)
    broken = check(fields_read(record(text), schema), schema, "backward")
    if broken:
        listed = ", ".join(f"`{change}`" for change in broken)
        message = f"The fields cannot be read from the Avro schema: {listed}."
        raise SchemaError("incompatible-schema", message, hint="Declare the fields as the Avro schema has them.")
    return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))


def _read(path: str) -> str:
    file = Path(path) if os.path.isabs(path) else _caller_folder() / path
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        hint = "A relative path starts at the file that declares the stream."
        raise DefinitionError(
            "bad-argument", "An Avro schema's file cannot be read.", got=shown(path), hint=hint
        ) from error


def _caller_folder() -> Path:
    """The folder of the innermost caller outside Headrace."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((PACKAGE, *GENERATED)):
            return Path(file).parent if os.path.isfile(file) else Path.cwd()
        frame = frame.f_back
    return Path.cwd()
