"""Labels as users declare them: what is taken, and what is refused with a reason."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.clock import DAY, HOUR
from headrace.errors import DefinitionError

clicks = hr.stream("clicks", fields={"id": str, "user": str, "at": hr.Timestamp}, event_id="id", event_time="at")
users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})
habits = hr.feature_set("habits", [users])
buys = hr.model("buys", habits, stream=clicks)
asked = hr.model("asked", habits)
orders = hr.stream(
    "orders",
    fields={"click": str, "user": str, "clicked_at": hr.Timestamp, "total": float, "paid": bool, "at": hr.Timestamp},
    event_time="at",
)


def label(**given):
    return hr.label("ordered", given.pop("stream", orders), **{"of": buys, "on": "click", "horizon": "7d"} | given)


def test_without_a_value_that_there_is_a_label_is_the_truth():
    made = label(default=False)
    assert (made.kind, made.value.text, made.horizon, made.window, made.default) == (
        "binary",
        "TRUE",
        7 * DAY,
        HOUR,
        False,
    )


def test_a_number_is_a_label_of_how_much():
    assert label(value="total", default=0).kind == "regression"
    assert label(value="total", default=0).default == 0.0


def test_a_label_may_name_the_key_and_the_time_instead_of_the_id():
    made = label(on={"user": "user"}, at="clicked_at")
    assert [name for name, _ in made.on] == ["user"]
    assert made.at.text == "clicked_at"


def test_segments_are_key_columns_request_values_or_features():
    assert label(segments=["user", "n"]).segments == ("user", "n")


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ({"of": asked}, "bad-argument", "scores no stream"),
        ({"of": habits}, "bad-argument", "is of a model"),
        ({"stream": users}, "bad-argument", "comes from a stream"),
        ({"on": 3}, "bad-argument", "the id of the scored event"),
        ({"on": "total"}, "wrong-type", "an event's id as float"),
        ({"on": {"user": "user"}}, "bad-argument", "the id of the scored event"),
        ({"on": {"nobody": "user"}, "at": "clicked_at"}, "bad-argument", "every column of the key"),
        ({"on": {"user": "user"}, "at": "total"}, "wrong-type", "the time of the scored event"),
        ({"value": "click"}, "wrong-type", "neither yes or no nor a number"),
        ({"value": 3}, "bad-argument", "must be text"),
        ({"value": "nothing > 0"}, "unknown-field", "nothing"),
        ({"default": 0.5}, "wrong-type", "no boolean"),
        ({"value": "total", "default": True}, "wrong-type", "no float"),
        ({"segments": ["country"]}, "unknown-field", "by which label"),
        ({"segments": "user"}, "bad-argument", "Segments"),
        ({"window": "7h"}, "bad-argument", "do not fit into days"),
        ({"horizon": "4000d"}, "bad-argument", "longer than ten years"),
        ({"horizon": "soon"}, "bad-duration", "horizon"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(given, code, says):
    with pytest.raises(DefinitionError) as refused:
        label(**given)
    assert refused.value.code == code
    assert says in f"{refused.value.message} {refused.value.got}"


def test_the_plan_says_where_the_truth_comes_from():
    from headrace.plan.build import build
    from headrace.plan.explain import text

    plan = build([label(default=False)])
    assert [stage.stream.name for stage in plan.admissions] == ["clicks", "orders", "predictions.buys"]
    assert "ordered: the truth about buys, from orders within 7d, False after that" in text(plan)
    assert plan.label("ordered").model == buys
