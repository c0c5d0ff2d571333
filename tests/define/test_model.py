"""Models: what each takes from an event, and what is refused where it is written."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.errors import DefinitionError
from headrace.plan.build import build
from headrace.plan.explain import as_json

payments = hr.stream(
    "payments",
    fields={"id": str, "card": str, "shop": int, "amount": float, "note": str | None, "at": hr.Timestamp},
    event_id="id",
    event_time="at",
)
cards = hr.view(
    "cards", payments.with_columns(upper_card="upper(card)"), by="upper_card", features={"n": hr.count(over="1h")}
)


@hr.on_demand(cards, request={"amount": float})
def large(n, amount) -> bool:
    return bool(amount > n)


features = hr.feature_set("features", [cards, large])


def test_keys_come_from_the_view_and_request_values_from_the_field_of_that_name():
    made = hr.model("risk", features, stream=payments)
    assert {name: text.text for name, text in made.inputs} == {"upper_card": "upper(card)", "amount": "amount"}
    assert [(name, str(kind)) for name, kind in made.columns] == [("n", "integer"), ("large", "boolean")]


def test_inputs_may_be_said():
    made = hr.model("risk", features, stream=payments, inputs={"upper_card": "lower(card)"})
    assert dict(made.inputs)["upper_card"].python()({"card": "AB"}) == "ab"


def test_a_plan_admits_the_predictions_of_a_model_that_scores_a_stream_and_takes_no_events_for_them():
    plan = build([hr.model("risk", features, stream=payments)])
    assert [stage.stream.name for stage in plan.admissions] == ["payments", "predictions.risk"]
    assert [stream.name for stream in plan.declared] == ["payments"]
    (told,) = as_json(plan)["models"]
    assert (told["name"], told["stream"], told["inputs"]["amount"]) == ("risk", "payments", "amount")


def test_a_model_without_a_stream_has_no_predictions():
    assert [stage.stream.name for stage in build([hr.model("risk", features)]).admissions] == ["payments"]


def test_a_model_leaves_the_fingerprint_of_the_plan_as_it_is():
    assert build([hr.model("risk", features)]).fingerprint == build([features]).fingerprint


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: hr.model("Risk", features), "The name of a model cannot be used."),
        (lambda: hr.model("risk", cards), "Model 'risk' takes a feature set."),
        (lambda: hr.model("risk", features, stream="payments"), "Model 'risk' scores a stream."),
        (lambda: hr.model("risk", features, inputs={"amount": "1"}), "Model 'risk' has inputs and no stream"),
        (
            lambda: hr.model("risk", features, stream=payments, inputs={"amont": "1"}),
            "no such key column or request value",
        ),
        (lambda: hr.model("risk", features, stream=payments, inputs={"amount": "note"}), "needs 'amount' as float"),
        (lambda: hr.model("risk", nullable(), stream=payments), "which may be null in stream 'payments'"),
        (lambda: hr.model("risk", unknown(), stream=payments), "needs 'limit', which stream 'payments' has not"),
        (lambda: hr.model("risk", untyped(), stream=payments).columns, "does not say what it returns"),
    ],
)
def test_what_cannot_be_scored_is_refused_where_it_is_written(make, told):
    with pytest.raises(DefinitionError) as refused:
        make()
    assert told in str(refused.value)


def nullable():
    @hr.on_demand(cards, request={"note": str})
    def noted(n, note) -> bool:
        return bool(note) and n > 1

    return hr.feature_set("noted", [noted])


def unknown():
    @hr.on_demand(cards, request={"limit": float})
    def over(n, limit) -> bool:
        return bool(n > limit)

    return hr.feature_set("overs", [over])


def untyped():
    @hr.on_demand(cards, request={"amount": float})
    def odd(n, amount):
        return n

    return hr.feature_set("odds", [odd])
