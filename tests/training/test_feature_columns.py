"""The features behind names: what is read for them, and what their columns are called."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.errors import DataError, ProjectError, UsageError
from headrace.plan.build import build
from headrace.training.feature_columns import FeatureColumns, refuse_clashes, resolve_features
from headrace.types.field_types import String

clicks = hr.stream("clicks", fields={"user": str, "shop": str, "n": int, "at": hr.Timestamp}, event_time="at")
users = hr.view("users", clicks, by="user", features={"clicks": hr.count(over="1h"), "total": hr.sum("n", over="1d")})
shops = hr.view("shops", clicks, by="shop", features={"clicks": hr.count(over="1h"), "first": hr.first("n", over="1d")})


@hr.on_demand(shops, request={"limit": int})
def over(clicks, limit) -> bool:
    return bool(clicks > limit)


@hr.on_demand(over, users)
def both(over, total) -> bool:
    return bool(over and total > 0)


plan = build(
    [
        hr.feature_set("habits", [users, over]),
        hr.feature_set("little", [users.only("total"), both]),
        hr.feature_set("busy", [shops.only("clicks")]),
    ]
)


def names(found: FeatureColumns) -> dict[str, list[str]]:
    return {view.name: [feature.name for feature in view.features] for view in found.views}


def test_a_view_has_all_its_features_under_their_own_names():
    found = resolve_features(plan, ["users"])
    assert (found.name, found.feature_set, names(found)) == ("users", None, {"users": ["clicks", "total"]})
    assert dict(found.picked) == {"clicks": "clicks", "total": "total"}


def test_of_views_behind_on_demand_features_only_what_functions_take_is_read():
    found = resolve_features(plan, ["habits"])
    assert names(found) == {"users": ["clicks", "total"], "shops": ["clicks"]}
    assert dict(found.columns) == {
        ("users", "clicks"): "users.clicks",
        ("users", "total"): "total",
        ("shops", "clicks"): "shops.clicks",
    }
    assert dict(found.picked) == {"clicks": "users.clicks", "total": "total", "over": "over"}


def test_an_on_demand_feature_behind_another_is_computed_and_not_shown():
    found = resolve_features(plan, ["little"])
    assert list(found.picked) == ["total", "both"]
    assert [made.name for made in found.on_demands] == ["over", "both"]
    assert names(found) == {"users": ["total"], "shops": ["clicks"]}


def test_several_names_give_the_columns_of_all_in_order_and_what_is_named_twice_once():
    found = resolve_features(plan, ["little", "users"])
    assert list(found.picked) == ["total", "both", "clicks"]
    assert found.name == "little+users"


def test_two_features_of_one_name_are_refused_with_both_views():
    with pytest.raises(DataError) as refused:
        resolve_features(plan, ["users", "busy"])
    assert refused.value.code == "duplicate-name"
    assert refused.value.got == "users.clicks and shops.clicks"


def test_what_is_not_there_is_refused_with_the_closest_name():
    with pytest.raises(ProjectError) as refused:
        resolve_features(plan, ["habit"])
    assert refused.value.hint == "Did you mean 'habits'?"


def test_nothing_named_means_the_only_one_there_is_and_is_refused_among_several():
    assert resolve_features(build([users]), []).name == "users"
    assert resolve_features(build([users, hr.feature_set("one", [shops])]), []).name == "one"
    with pytest.raises(UsageError, match="not said which features"):
        resolve_features(plan, [])


def test_keys_have_the_types_of_their_views_and_one_column_of_two_types_is_refused():
    assert dict(resolve_features(plan, ["habits"]).key_types) == {"user": String(), "shop": String()}
    visits = hr.stream("visits", fields={"shop": int, "at": hr.Timestamp}, event_time="at")
    other = hr.view("other", visits, by="shop", features={"x": hr.count(over="1h")})
    with pytest.raises(DataError, match="two types") as refused:
        _ = FeatureColumns("a", (shops, other)).key_types
    assert refused.value.got == "string in shops, integer in other"


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (["user", "Total"], "'Total', and users.total"),
        (["user", "shops.clicks"], "'shops.clicks', and shops.clicks"),
        (["user", "clicks"], "'clicks', and users.clicks"),
        (["user", "over"], "'over', and the on-demand feature over"),
        (["user", "SPLIT"], "'SPLIT', and the column 'split' that is made"),
    ],
)
def test_a_column_with_the_name_of_a_feature_is_refused_with_which(columns, told):
    with pytest.raises(DataError) as refused:
        refuse_clashes(resolve_features(plan, ["habits"]), columns, ("split",))
    assert (refused.value.code, refused.value.got) == ("duplicate-name", told)


@pytest.mark.parametrize("columns", [["a", "A"], ["a", "a"], ["a`b"]])
def test_columns_that_spark_cannot_tell_apart_are_refused(columns):
    with pytest.raises(DataError) as refused:
        refuse_clashes(resolve_features(plan, ["habits"]), columns, ())
    assert refused.value.code == "bad-spine"


def test_a_spine_of_its_own_names_is_fine():
    refuse_clashes(resolve_features(plan, ["habits"]), ["user", "shop", "t", "limit"], ("split", "weight"))
