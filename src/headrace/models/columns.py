"""The columns a model takes, and how they differ from those it is given.

A model learns columns by their place; nothing in a matrix says which feature a number is. So order, name, type and
definition of each are kept beside the model and held against the features it is to score.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

import msgspec

from headrace.errors import DataError

NUMBERS = ("integer", "float", "boolean", "timestamp", "decimal")
"""The types that become a number as they are; a decimal's digits follow in brackets."""
TEXT = "string"


class ModelColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One input of a model.

    Parameters
    ----------
    name
        The feature's name in its feature set.
    type
        The text of its Headrace type: `integer`, `float`, `boolean`, `string`, `timestamp`, `decimal(10,2)`.
    fingerprint
        A digest of all that decides its values.
    """

    name: str
    type: str
    fingerprint: str

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers as they are.

        >>> ModelColumn("price", "decimal(10,2)", "").is_number, ModelColumn("country", "string", "").is_number
        (True, False)
        """
        return self.type.partition("(")[0] in NUMBERS

    @property
    def is_text(self) -> bool:
        """Whether its values are text, which a matrix takes as the place in a list of categories."""
        return self.type == TEXT


def fingerprint(columns: Iterable[ModelColumn]) -> str:
    """Twelve hexadecimal digits in which order, names, types and definitions all count.

    >>> a, b = ModelColumn("a", "integer", "1f"), ModelColumn("b", "float", "2e")
    >>> fingerprint([a, b]) == fingerprint([b, a])
    False
    """
    told = [[each.name, each.type, each.fingerprint] for each in columns]
    return hashlib.sha256(json.dumps(told, separators=(",", ":")).encode()).hexdigest()[:12]


def differences(taken: Sequence[ModelColumn], given: Sequence[ModelColumn]) -> list[str]:
    """How the columns that are given differ from those a model takes: a sentence for each difference.

    >>> taken = [ModelColumn("n", "integer", "1f"), ModelColumn("spend", "float", "2e")]
    >>> differences(taken, [ModelColumn("n", "float", "1f")])
    ["Column 'spend' is missing: the model takes it, and it is not given.", \
"Column 'n' is given as float, and the model takes it as integer."]
    """
    before, now = {each.name: each for each in taken}, {each.name: each for each in given}
    found = [f"Column {name!r} is missing: the model takes it, and it is not given." for name in before.keys() - now]
    found += [f"Column {name!r} is extra: it is given, and the model does not take it." for name in now.keys() - before]
    found.sort()
    both, places = [name for name in before if name in now], [name for name in now if name in before]
    for place, name in enumerate(both, start=1):
        elsewhere = places.index(name) + 1
        if place != elsewhere:
            found.append(
                f"Column {name!r} is in another place: number {elsewhere}, where the model takes it as {place}."
            )
        if before[name].type != now[name].type:
            found.append(
                f"Column {name!r} is given as {now[name].type}, and the model takes it as {before[name].type}."
            )
        elif before[name].fingerprint != now[name].fingerprint:
            found.append(f"Column {name!r} is defined otherwise than when the model was trained.")
    return found


def name_differences(taken: Sequence[str], given: Sequence[str]) -> list[str]:
    """How columns differ from the names that a model carries itself: missing, extra, in another place.

    >>> name_differences(["a"], ["a", "b"])
    ["Column 'b' is extra: it is given, and the model does not take it."]
    """
    return differences([ModelColumn(name, "", "") for name in taken], [ModelColumn(name, "", "") for name in given])


def refuse_differences(sentences: Sequence[str], what: str) -> None:
    """Refuse columns that differ from those a model takes, saying each difference."""
    if sentences:
        hint = "Name the columns as the model has them, in its order, or train it anew."
        raise DataError("wrong-columns", f"{what} takes other columns.", got=" ".join(sentences), hint=hint)
