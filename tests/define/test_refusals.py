"""Bad input is refused when it is written: code, sentence, what came, what to do, and the user's own line.

The texts are pinned in tests/golden/refusals.txt; a changed word is a changed promise.
"""

from __future__ import annotations

import re

import pytest

import headrace as hr
from headrace.errors import CODES, HeadraceError

fields = {"id": str, "card": str, "amount": float, "note": str | None, "tags": list[str], "at": hr.Timestamp}


def stream(**changed):
    return hr.stream(**({"name": "payments", "fields": fields, "event_time": "at", "event_id": "id"} | changed))


payments = stream()


def view(features, source=payments, by="card", **more):
    return hr.view("cards", source, by=by, features=features, **more)


cards = view({"n": hr.count(over="10m"), "spent": hr.sum("amount", over="1h")})


merchant = {"merchant": str, "country": str | None, "category": str, "risk": float | None}


def dimension(**changed):
    given = {"name": "merchants", "path": "m.parquet", "by": "merchant", "fields": merchant, "valid_from": "since"}
    return lambda: hr.dimension(**(given | changed))


def on_demand(function, *sources, **more):
    return lambda: hr.on_demand(*(sources or (cards,)), **more)(function)


def call(name, *given, **more):
    """A call of a public name that a type checker would refuse."""
    return lambda: getattr(hr, name)(*given, **more)


def takes_unknown(spend):
    return spend


def takes_anything(**values):
    return values


def takes_n(n):
    return n


async def waits(n):
    return n


REFUSED = {
    "a stream's name with capitals": lambda: stream(name="Payments"),
    "a stream's name that is no text": lambda: stream(name=5),
    "a stream without fields": lambda: stream(fields={}),
    "fields that are no dict": lambda: stream(fields=["id"]),
    "a field name of ten megabytes": lambda: stream(fields=fields | {"x" * 10_000_000: str}),
    "a field name with a space": lambda: stream(fields=fields | {"a b": str}),
    "two field names that differ in case": lambda: stream(fields=fields | {"ID": str}),
    "a type nobody knows": lambda: stream(fields=fields | {"raw": bytes}),
    "a decimal without digits": lambda: stream(fields=fields | {"price": hr.Decimal}),
    "a decimal of forty digits": lambda: stream(fields=fields | {"price": hr.Decimal(40, 2)}),
    "a timestamp unit nobody knows": lambda: stream(fields=fields | {"sent": hr.Timestamp("ns")}),
    "an event time that is not there": lambda: stream(event_time="att"),
    "an event time that is text": lambda: stream(event_time="card"),
    "an event id that may be absent": lambda: stream(event_id="note"),
    "an arrival nobody knows": lambda: stream(arrival="broker"),
    "an arrival field that is text": lambda: stream(arrival="field:card"),
    "a late policy nobody knows": lambda: stream(late="updates"),
    "a negative lateness": lambda: stream(allowed_lateness="-1m"),
    "a lateness that is a number": lambda: stream(allowed_lateness=60),
    "a check that is no condition": lambda: stream(checks={"amount": "amount + 1"}),
    "a check over an unknown field": lambda: stream(checks={"positive": "amuont > 0"}),
    "a condition that is no text": lambda: payments.where(True),
    "a condition that is a number": lambda: payments.where("amount * 2"),
    "a condition that cannot be parsed": lambda: payments.where("amount >"),
    "a condition with a function nobody proved": lambda: payments.where("rand() > 0.5"),
    "a computed column that is taken": lambda: payments.with_columns(card="id"),
    "computed columns in a circle": lambda: payments.with_columns(a="b + 1", b="a + 1"),
    "a computed column over an unknown field": lambda: payments.with_columns(double="amont * 2"),
    "a view over no stream": lambda: hr.view("cards", "payments", by="card", features={"n": hr.count(over="1h")}),
    "a view over two streams": call("view", "cards", [payments, payments], by="card", features={}),
    "a stream with a misspelt argument": lambda: stream(allowed_latness="2m"),
    "a stream with its fields unnamed": call("stream", "payments", fields),
    "a view with a misspelt argument": lambda: view({}, tag=["fraud"]),
    "a window with an unknown argument": call("trailing", "1h", offset="5m"),
    "a feature without a window": call("count"),
    "a feature with its field twice": call("sum", "amount", field="amount", over="1h"),
    "a filter with a misspelt argument": lambda: getattr(payments, "where")(conditon="amount > 0"),  # noqa: B009
    "a decimal with a misspelt argument": call("Decimal", precison=10),
    "an on-demand feature with a misspelt argument": call("on_demand", cards, requests={}),
    "a feature set with a misspelt argument": call("feature_set", "fraud", [cards], onwer="us"),
    "a dimension with a misspelt argument": dimension(valid_form="since"),
    "a label with a misspelt argument": call("label", "stolen", payments, of=None, on="id", horizn="7d"),
    "a model with a misspelt argument": call("model", "fraud", None, steam=payments),
    "a client with a misspelt argument": call("Client", adress="http://127.0.0.1:8787"),
    "a public name that is misspelt": call("cuont"),
    "a condition that is a number, over lines": lambda: payments.where("amount\n  * 2"),
    "a view without features": lambda: view({}),
    "a view with a feature that is no measure": lambda: view({"n": "count"}),
    "a feature's name with a dash": lambda: view({"n-10m": hr.count(over="10m")}),
    "a key that is not there": lambda: view({"n": hr.count(over="10m")}, by="crad"),
    "a key that may be null": lambda: view({"n": hr.count(over="10m")}, by="note"),
    "a key that is a float": lambda: view({"n": hr.count(over="10m")}, by="amount"),
    "a key named twice": lambda: view({"n": hr.count(over="10m")}, by=("card", "card")),
    "a key that is a number": lambda: view({"n": hr.count(over="10m")}, by=5),
    "tags that are one text": lambda: view({"n": hr.count(over="10m")}, tags="fraud"),
    "a staleness of zero": lambda: view({"n": hr.count(over="10m")}, max_staleness="0s"),
    "a sum of text": lambda: view({"spent": hr.sum("card", over="1h")}),
    "a sum of an unknown field": lambda: view({"spent": hr.sum("amout", over="1h")}),
    "a sum of a list": lambda: view({"spent": hr.sum("tags", over="1h")}),
    "a feature's condition that is a number": lambda: view({"n": hr.count(over="1h", where="amount")}),
    "a quantile beyond one": lambda: view({"q": hr.quantile("amount", q=1.5, over="1h")}),
    "a last-n of zero": lambda: view({"l": hr.last_n("card", n=0, over="1h")}),
    "a top-k of millions": lambda: view({"t": hr.top_k("card", k=1_000_000, over="1h")}),
    "a half-life shorter than its tiles": lambda: view({"d": hr.decayed_sum("amount", half_life="1s", over="1h")}),
    "a ratio of text": lambda: view({"r": hr.ratio(hr.last("card", over="1h"), hr.count(over="1h"))}),
    "a ratio of numbers": lambda: hr.ratio(1, 2),
    "a sum over a number": lambda: hr.sum(5, over="1h"),
    "a resolution that does not divide": lambda: hr.trailing("10m", resolution="7m"),
    "a session finer than its gap": lambda: hr.session(gap="10m", resolution="20m"),
    "a duration of nothing": lambda: hr.count(over="0s"),
    "a duration of a thousand years": lambda: hr.count(over="365000d"),
    "a duration in words": lambda: hr.count(over="ten minutes"),
    "an on-demand function of an unknown value": on_demand(takes_unknown),
    "an on-demand function of anything": on_demand(takes_anything),
    "an on-demand function that waits": on_demand(waits),
    "an on-demand function of two meanings": on_demand(takes_n, request={"n": int}),
    "an on-demand feature over a stream": on_demand(takes_n, payments),
    "a feature set of nothing": lambda: hr.feature_set("fraud", []),
    "a feature set of a stream": lambda: hr.feature_set("fraud", [payments]),
    "a feature set with one name twice": lambda: hr.feature_set("fraud", [cards, cards.only("n")]),
    "a feature that is not in the view": lambda: cards.only("spend"),
    "a dimension's name with a dash": dimension(name="our-merchants"),
    "a dimension without a path": dimension(path=""),
    "a dimension's path that nothing reaches": dimension(path="ftp://here/merchants"),
    "a dimension's path that is a number": dimension(path=5),
    "a dimension without fields": dimension(fields={}),
    "a dimension without a key": dimension(by=()),
    "a dimension's key that is not there": dimension(by="merchnat"),
    "a dimension's key that may be null": dimension(by="country"),
    "a dimension's key that is a float": dimension(by="risk"),
    "a dimension's key named twice": dimension(by=("merchant", "merchant")),
    "a dimension of keys alone": dimension(fields={"merchant": str}),
    "a dimension's moment without a name": dimension(valid_from=None),
    "a dimension's moment that is text": dimension(valid_from="category"),
    "a dimension's moment that may be absent": dimension(fields=merchant | {"since": hr.Timestamp() | None}),
    "a dimension's moments in one column": dimension(valid_to="since"),
    "a dimension's feature with capitals": dimension(fields=merchant | {"Risk_score": float}),
    "a dimension's feature that is a struct": dimension(fields=merchant | {"place": {"city": str}}),
    "a dimension's feature of milliseconds": dimension(fields=merchant | {"opened": hr.Timestamp("ms")}),
    "a feature set kept by a column in two types": lambda: hr.feature_set(
        "fraud", [cards, dimension(by="card", fields={"card": int, "risk": float})()]
    ),
    "a feature that is not in the dimension": lambda: dimension()().only("rsik"),
}


def refusal(make):
    with pytest.raises(HeadraceError) as caught:
        make()
    return caught.value


@pytest.mark.parametrize("what", REFUSED)
def test_a_refusal_says_what_where_and_what_to_do(what):
    error = refusal(REFUSED[what])
    assert error.code in CODES
    assert error.message.endswith(".")
    assert error.got
    assert "Stream(name" not in error.got
    assert error.where.startswith("tests/define/test_refusals.py:")
    assert len(str(error)) < 1_000


def test_the_texts_of_all_refusals_are_pinned(golden):
    texts = [f"{what}\n{re.sub(r':[0-9]+', ':LINE', str(refusal(make)))}" for what, make in REFUSED.items()]
    golden("refusals", "\n\n".join(texts))


def test_an_error_points_at_the_line_of_the_feature_and_not_of_the_view():
    measure = hr.sum("amout", over="1h")
    line = int(measure.location.rpartition(":")[2])
    error = refusal(lambda: view({"spent": measure}))
    assert error.where == f"tests/define/test_refusals.py:{line}, feature 'spent'"
