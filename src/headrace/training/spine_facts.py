"""One pass over a spine before anything heavy: what it is known by, how far it reaches, and what is wrong with it.

Everything is counted in one aggregate, natively. A spine with a null key, an unreadable time or a request value that
does not fit is refused with how many there are, and one of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.clock import show_time
from headrace.errors import DataError, shown
from headrace.plural import show_count
from headrace.training.request import TrainingRequest
from headrace.training.row_selection import quoted
from headrace.training.spine_columns import SpineColumn, guess, shapes, typed
from headrace.types.field_types import Timestamp

Kinds = Mapping[str, str]
"""The columns of a spine and their types, as Spark shows them."""


@dataclass(frozen=True)
class Facts:
    """What one pass over a spine says.

    Parameters
    ----------
    rows
        How many it has.
    fingerprint
        A digest of its columns and cells, whatever the order of its rows.
    first, last
        Its least and greatest time, in microseconds.
    guesses
        The types that columns of text are taken for, where they are told by their text alone.
    """

    rows: int
    fingerprint: str
    first: int
    last: int
    guesses: Mapping[str, str]


def questions(wanted: Sequence[SpineColumn], wish: TrainingRequest, kinds: Kinds, *, text: bool) -> dict[str, str]:
    """What is asked of a spine: expressions of one aggregate, by the names of their answers.

    Parameters
    ----------
    text
        Whether every column is text, as in CSV, so that types are found by looking.
    """
    found = {"rows": "count(*)"}
    for seed in (1, 2):
        found[f"hash {seed}"] = f"sum(CAST(xxhash64({seed}, {_cells(kinds)}) AS DECIMAL(20, 0)))"
    for need in wanted:
        column, value = quoted(need.name), typed(need, kinds[need.name])
        unusable = f"{column} IS NOT NULL AND {value} IS NULL"
        found[f"null {need.name}"] = f"count_if({column} IS NULL)"
        found[f"bad {need.name}"] = f"count_if({unusable})"
        found[f"one {need.name}"] = f"min(CASE WHEN {unusable} THEN CAST({column} AS STRING) END)"
        if need.name == wish.time:
            found["first"], found["last"] = f"min(unix_micros({value}))", f"max(unix_micros({value}))"
    if wish.downsample is not None:
        found["downsampled"] = f"count_if({wish.downsample.matches(kinds[wish.downsample.column])})"
    for name in _other_columns(wanted, kinds) if text else ():
        found |= {f"{kind} {name}": counted for kind, counted in shapes(name).items()}
    return found


def _other_columns(wanted: Sequence[SpineColumn], kinds: Kinds) -> list[str]:
    needed = {need.name for need in wanted}
    return [name for name in kinds if name not in needed]


def _cells(kinds: Kinds) -> str:
    """All cells of a row; a hash takes no notice of nulls, so that each is told apart first."""
    told = [(quoted(name), kind) for name, kind in kinds.items()]
    return ", ".join(f"{name} IS NULL, {f'to_json({name})' if 'map<' in kind else name}" for name, kind in told)


def facts(
    answers: Mapping[str, Any], wanted: Sequence[SpineColumn], wish: TrainingRequest, kinds: Kinds, *, text: bool
) -> Facts:
    """What a pass over a spine says, once nothing is wrong with it."""
    rows = answers["rows"]
    if not rows:
        hint = "Give a spine with a row for each moment that is asked for."
        raise DataError("bad-spine", "The spine has no rows.", hint=hint)
    for need in wanted:
        _refuse(need, rows, answers)
    if wish.downsample is not None and not answers["downsampled"]:
        message = "No row of the spine is of those to downsample."
        hint = "Look at the condition, or leave it out."
        raise DataError("bad-spine", message, got=shown(wish.downsample.written), hint=hint)
    digest = hashlib.blake2b(repr((list(kinds.items()), rows)).encode(), digest_size=12)
    digest.update(f"{answers['hash 1']} {answers['hash 2']}".encode())
    guesses = {}
    for name in _other_columns(wanted, kinds) if text else ():
        guesses[name] = guess({kind: answers[f"{kind} {name}"] for kind in shapes(name)})
    return Facts(rows, digest.hexdigest(), answers["first"], answers["last"], guesses)


def _refuse(need: SpineColumn, rows: int, answers: Mapping[str, Any]) -> None:
    missing, bad = answers[f"null {need.name}"], answers[f"bad {need.name}"]
    if missing and not need.optional:
        message = f"Column {need.name!r} of the spine, which is {need.role}, is null in some rows."
        hint = "Leave these rows out, or fill them."
        raise DataError("bad-spine", message, got=f"{missing:,} of {show_count(rows, 'row')}", hint=hint)
    if bad:
        message = f"Column {need.name!r} of the spine, which is {need.role}, cannot be read in some rows."
        hint = "Write RFC 3339 with an offset, as in 2026-01-01T12:00:00Z; without one nobody can say when it was."
        got = f"{bad:,} of {show_count(rows, 'row')}, such as {shown(answers[f'one {need.name}'])}"
        raise DataError("bad-spine", message, got=got, hint=hint if isinstance(need.type, Timestamp) else None)


def refuse_future(found: Facts, now: int) -> None:
    """Refuse times that are yet to come: nobody knows what will be known then."""
    if found.last > now:
        message = "The spine has times that are yet to come."
        hint = f"By this machine's clock it is {show_time(now)}."
        raise DataError("bad-spine", message, got=show_time(found.last), hint=hint)


def projection(wanted: Sequence[SpineColumn], found: Facts, kinds: Kinds) -> list[str]:
    """Every column of the spine, in its order and under its name, as the expressions that give it its type."""
    needed = {need.name: need for need in wanted}

    def one(name: str, kind: str) -> str:
        column = quoted(name)
        if name in needed:
            return typed(needed[name], kind)
        return f"CAST({column} AS {found.guesses[name]})" if name in found.guesses else column

    return [f"{one(name, kind)} AS {quoted(name)}" for name, kind in kinds.items()]
