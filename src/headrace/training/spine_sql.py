"""A spine in SQL over the lake: which tables a query reads, and the query over views of them.

Tables are called as in `headrace lake sql` (`lake.query.names`), but the query is Spark's and so is its dialect: a
spine may be as large as the history. Only the names of tables are replaced in a user's text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.errors import DataError, did_you_mean, shown

_QUERY = re.compile(r"\s*(?:select|with)\b", re.IGNORECASE)


def is_query(text: str) -> bool:
    """Whether a text is SQL, and no path.

    >>> is_query("SELECT 1"), is_query("selected.csv")
    (True, False)
    """
    return _QUERY.match(text) is not None


@dataclass(frozen=True)
class TableReference:
    """Where a query names a table: its name, the first character and the one after the last, and whether it has an
    alias."""

    name: str
    start: int
    end: int
    aliased: bool


def places(sql: str) -> list[TableReference]:
    """Where a query names tables, those of its own WITH left out; what is no query is refused.

    >>> [place.name for place in places("WITH a AS (SELECT * FROM silver) SELECT * FROM a JOIN bronze AS b USING (x)")]
    ['silver', 'bronze']
    """
    from sqlglot import exp, parse
    from sqlglot.errors import SqlglotError

    try:
        parsed: Any = parse(sql, read="spark")
    except SqlglotError as error:
        said = " ".join(str(error).split())
        hint = "Write one SELECT in the SQL of Spark."
        raise DataError("bad-query", "The spine's query cannot be parsed.", got=shown(said, 200), hint=hint) from None
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Query):
        hint = "Write one SELECT, perhaps with WITH before it."
        raise DataError("bad-query", "The spine's query is not one query.", got=shown(sql), hint=hint)
    own = {each.alias.lower() for each in parsed[0].find_all(exp.CTE)}
    found = []
    for table in parsed[0].find_all(exp.Table):
        if table.args.get("db") or not isinstance(table.this, exp.Identifier):
            message = "The spine's query reads something else than tables of the lake."
            hint = "Read tables of streams alone, such as a stream by its name."
            raise DataError("bad-query", message, got=shown(table.sql(dialect="spark")), hint=hint)
        if table.name.lower() not in own:
            where = table.this.meta
            found.append(TableReference(table.name, where["start"], where["end"] + 1, bool(table.alias)))
    return sorted(found, key=lambda place: place.start)


def rewritten(sql: str, known: Mapping[str, Any], called: Callable[[str], str]) -> str:
    """The query with every table under another name, and its own name as an alias.

    Parameters
    ----------
    known
        The tables there are, by name.
    called
        Gives the other name.

    Examples
    --------
    >>> rewritten("SELECT silver.id FROM silver", {"silver": 1}, "view_of_{}".format)
    'SELECT silver.id FROM `view_of_silver` AS `silver`'
    """
    names = {name.lower(): name for name in known}
    text = sql.strip().rstrip(";").rstrip()
    for place in reversed(places(text)):
        name = names.get(place.name.lower())
        if name is None:
            hint = did_you_mean(place.name, known) or "The archive fills the lake; `headrace import` brings history."
            raise DataError("bad-query", "The lake has no such table.", got=shown(place.name), hint=hint)
        alias = "" if place.aliased else f" AS `{place.name}`"
        text = f"{text[: place.start]}`{called(name)}`{alias}{text[place.end :]}"
    return text
