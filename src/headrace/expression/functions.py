"""The functions an expression may call, by the name users write.

The names are Spark's, plus `finite`. What each one means is beside its operation; here is only who is called with how
many arguments, and what to say when a name is not among them.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial

from headrace.errors import ExpressionError, shown
from headrace.expression import arithmetic, comparison, logic, nested, numeric, strings, timestamps
from headrace.expression.node import Node, mistyped
from headrace.types.field_types import Boolean, Integer, String

MANY = 1_000
Build = Callable[..., Node]

FUNCTIONS: dict[str, tuple[Build, int, int]] = {
    "abs": (numeric.absolute, 1, 1),
    "array_contains": (nested.array_contains, 2, 2),
    "ceil": (numeric.ceil, 1, 1),
    "coalesce": (logic.coalesce, 1, MANY),
    "concat": (strings.concat, 1, MANY),
    "contains": (partial(strings.of_strings, "contains", Boolean()), 2, 2),
    "day": (partial(timestamps.of_moment, "day"), 1, 1),
    "dayofweek": (partial(timestamps.of_moment, "dayofweek"), 1, 1),
    "endswith": (partial(strings.of_strings, "endswith", Boolean()), 2, 2),
    "finite": (numeric.finite, 1, 1),
    "floor": (numeric.floor, 1, 1),
    "greatest": (lambda *nodes: comparison.extreme("greatest", nodes), 2, MANY),
    "hour": (partial(timestamps.of_moment, "hour"), 1, 1),
    "if": (lambda when, then, otherwise: logic.case([(when, then)], otherwise), 3, 3),
    "least": (lambda *nodes: comparison.extreme("least", nodes), 2, MANY),
    "length": (partial(strings.of_strings, "length", Integer()), 1, 1),
    "lower": (partial(strings.of_strings, "lower", String()), 1, 1),
    "minute": (partial(timestamps.of_moment, "minute"), 1, 1),
    "mod": (partial(arithmetic.arithmetic, "%"), 2, 2),
    "month": (partial(timestamps.of_moment, "month"), 1, 1),
    "nullif": (logic.null_if, 2, 2),
    "replace": (partial(strings.of_strings, "replace", String()), 2, 3),
    "round": (numeric.rounded, 1, 2),
    "second": (partial(timestamps.of_moment, "second"), 1, 1),
    "size": (nested.size, 1, 1),
    "sqrt": (numeric.square_root, 1, 1),
    "startswith": (partial(strings.of_strings, "startswith", Boolean()), 2, 2),
    "substring": (strings.substring, 2, 3),
    "trim": (partial(strings.of_strings, "trim", String()), 1, 1),
    "unix_micros": (partial(timestamps.of_moment, "unix_micros"), 1, 1),
    "unix_seconds": (partial(timestamps.of_moment, "unix_seconds"), 1, 1),
    "upper": (partial(strings.of_strings, "upper", String()), 1, 1),
    "year": (partial(timestamps.of_moment, "year"), 1, 1),
}

# Other spellings that Spark has for the same functions.
ALIASES = {
    "array_size": "size",
    "cardinality": "size",
    "ceiling": "ceil",
    "char_length": "length",
    "character_length": "length",
    "dayofmonth": "day",
    "ifnull": "coalesce",
    "len": "length",
    "nvl": "coalesce",
    "substr": "substring",
}

# Functions people will try, and why they are not here.
_AGGREGATES = """
any any_value approx_count_distinct avg bool_and bool_or collect_list collect_set count count_if every first first_value
kurtosis last last_value max max_by mean median min min_by mode percentile percentile_approx skewness some std stddev
stddev_pop stddev_samp sum try_avg try_sum var_pop var_samp variance
"""
_CLOCKS = "current_date current_time current_timestamp curdate localtimestamp now unix_timestamp"
_INEXACT = "acos asin atan atan2 cbrt cos exp ln log log10 log2 pow power sin tan"
_CHANCE = "monotonically_increasing_id rand randn random shuffle uuid"
CLOCKS = frozenset(_CLOCKS.split())


def find_function(name: str) -> str:
    """The name of a function as the table has it, or a refusal that names the closest function there is."""
    word = ALIASES.get(name.lower(), name.lower())
    if word not in FUNCTIONS:
        message = f"There is no function `{name[:60]}` in expressions."
        raise ExpressionError("unsupported-expression", message, got=shown(name), hint=instead_of(name))
    return word


def call(name: str, args: tuple[Node, ...]) -> Node:
    """A function call as users write it."""
    word = find_function(name)
    build, least, most = FUNCTIONS[word]
    if not least <= len(args) <= most:
        wanted = str(least) if least == most else f"{least} or more" if most == MANY else f"{least} to {most}"
        noun = "argument" if wanted == "1" else "arguments"
        raise mistyped(f"`{word}` takes {wanted} {noun}.", f"{len(args)}")
    return build(*args)


def instead_of(name: str) -> str:
    """What to use in place of a function that is not there.

    >>> instead_of("uper")
    'Did you mean `upper`?'
    """
    word = name.lower()
    if word in _AGGREGATES.split():
        return "Aggregates are features of a view, such as hr.sum(...); an expression sees one event."
    if word in CLOCKS:
        return "An expression may not read the clock; use the event time, or an on-demand feature's `t`."
    if word in _INEXACT.split():
        return "Java and Python disagree in its last digit; compute it in an on-demand feature."
    if word in _CHANCE.split():
        return "An expression gives the same value for the same event every time."
    close = difflib.get_close_matches(word[:100], [*FUNCTIONS, *ALIASES], n=1, cutoff=0.6)
    return f"Did you mean `{close[0]}`?" if close else f"Known: {', '.join(sorted(FUNCTIONS))}."
