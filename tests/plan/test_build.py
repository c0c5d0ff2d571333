"""Definitions become a plan: what is shared, what is separate, and what a fingerprint depends on."""

from __future__ import annotations

import dataclasses

import pytest

import headrace as hr
from headrace.clock import MINUTE, SECOND
from headrace.errors import DefinitionError
from headrace.plan.build import build, gather
from headrace.plan.explain import as_json, text

fields = {"id": str, "card": str, "user": str, "amount": float, "at": hr.Timestamp}
payments = hr.stream("payments", fields=fields, event_time="at", event_id="id")


def cards(features, source=payments, name="cards", by="card", **more):
    return hr.view(name, source, by=by, features=features, **more)


def only_tile_set(*views, mode="micro-batch"):
    (tiles,) = build(views, mode).tile_sets
    return tiles


def test_ten_windows_of_one_count_cost_one_column():
    many = cards({f"n_{n}m": hr.count(over=f"{n}m") for n in range(1, 11)})
    kinds = [partial.monoid.kind for partial in only_tile_set(many).partials]
    assert kinds.count("count") == 1


def test_a_mean_shares_its_columns_with_a_sum_and_a_count():
    shared = cards(
        {
            "mean": hr.mean("amount", over="1h"),
            "sum": hr.sum("amount", over="1d"),
            "count": hr.count("amount", over="1h"),
        }
    )
    alone = cards({"mean": hr.mean("amount", over="1h")})
    assert len(only_tile_set(shared).partials) == len(only_tile_set(alone).partials)


def test_views_of_one_stream_and_key_share_a_tile_set():
    first = cards({"n": hr.count(over="10m")}, name="first")
    second = cards({"m": hr.count(over="1h")}, name="second", source=payments.where("amount > 0"))
    assert only_tile_set(first, second).id == "payments.by_card"


def test_another_key_is_another_tile_set():
    plan = build([cards({"n": hr.count(over="10m")}), cards({"n": hr.count(over="10m")}, name="users", by="user")])
    assert [tiles.id for tiles in plan.tile_sets] == ["payments.by_card", "payments.by_user"]


def test_the_grain_divides_every_resolution_size_hop_and_gap():
    mixed = cards(
        {
            "a": hr.count(over=hr.trailing("1h", resolution="4m")),
            "b": hr.count(over=hr.hopping("30m", every="10m")),
            "c": hr.count(over=hr.session(gap="6m", max_length="1h")),
        }
    )
    assert only_tile_set(mixed).grain == 2 * MINUTE


def test_an_exact_window_keeps_events_in_tiles_of_a_round_size():
    exact = cards({"a": hr.sum("amount", over=hr.trailing("10m", resolution="exact"))})
    tiles = only_tile_set(exact)
    assert tiles.grain == 10 * SECOND
    assert "events" in [partial.monoid.kind for partial in tiles.partials]


def test_rows_that_concern_no_view_do_not_enter_the_tiles():
    first = cards({"n": hr.count(over="10m")}, name="first", source=payments.where("amount > 5"))
    second = cards({"n": hr.count(over="10m")}, name="second", source=payments.where("amount < 1"))
    where = only_tile_set(first, second).where.python()
    assert [where({"amount": amount}) for amount in (0.0, 3.0, 9.0)] == [True, False, True]
    third = cards({"n": hr.count(over="10m")}, name="third")
    assert only_tile_set(first, second, third).where is None


def test_names_owners_and_descriptions_do_not_change_a_fingerprint():
    plain = cards({"n": hr.count(over="10m")})
    dressed = cards({"n": hr.count(over="10m", description="how many")}, owner="fraud-team", tags=["fraud"])
    assert only_tile_set(plain).fingerprint == only_tile_set(dressed).fingerprint
    assert build([plain]).fingerprint == build([dressed]).fingerprint


@pytest.mark.parametrize(
    "changed",
    [
        cards({"n": hr.count(over="10m", where="amount > 1")}),
        cards({"n": hr.count(over="20m")}),
        cards({"n": hr.count("amount", over="10m")}),
        cards({"n": hr.count(over="10m")}, source=dataclasses.replace(payments, allowed_lateness=5 * MINUTE)),
        cards({"n": hr.count(over="10m")}, source=dataclasses.replace(payments, late="drop")),
    ],
)
def test_whatever_changes_a_value_changes_the_plan(changed):
    assert build([cards({"n": hr.count(over="10m")})]).fingerprint != build([changed]).fingerprint


def test_a_column_keeps_its_name_when_another_feature_comes_and_goes():
    few = {partial.name for partial in only_tile_set(cards({"n": hr.count(over="10m")})).partials}
    more = cards({"n": hr.count(over="10m"), "spent": hr.sum("amount", over="10m")})
    assert few < {partial.name for partial in only_tile_set(more).partials}


def test_the_mode_is_not_part_of_what_a_tile_holds():
    view = cards({"n": hr.count(over="10m")})
    assert only_tile_set(view).fingerprint == only_tile_set(view, mode="real-time").fingerprint


def test_what_cannot_run_event_by_event_runs_as_micro_batch_and_says_why():
    view = cards({"n": hr.count(over="10m")})
    (tiles,) = build([view], mode="real-time", log="embedded").tile_sets
    assert tiles.mode == "micro-batch"
    assert tiles.mode_reason == "Spark reads event by event from Kafka only, and the log is embedded"
    assert only_tile_set(view, mode="real-time").mode_reason is None


def test_every_piece_of_state_has_a_retention():
    tiles = only_tile_set(cards({"n": hr.count(over="10m")}))
    slack = payments.allowed_lateness + payments.max_clock_skew + 10 * MINUTE
    assert tiles.state_retention == {"deduplication": slack, "tiles": tiles.grain + slack}
    assert tiles.retention == 10 * MINUTE + 10 * SECOND
    assert only_tile_set(cards({"n": hr.count(over=hr.lifetime())})).retention is None


def test_a_stream_without_event_ids_keeps_none_of_them():
    plain = hr.stream("payments", fields=fields, event_time="at")
    tiles = only_tile_set(cards({"n": hr.count(over="10m")}, source=plain))
    assert list(tiles.state_retention) == ["tiles"]
    assert "event ids for" not in text(build([cards({"n": hr.count(over="10m")}, source=plain)]))


def test_two_streams_of_one_name_are_refused():
    other = hr.stream("payments", fields=fields | {"more": int}, event_time="at", event_id="id")
    with pytest.raises(DefinitionError) as caught:
        gather([cards({"n": hr.count(over="10m")}), cards({"n": hr.count(over="10m")}, source=other, name="others")])
    assert caught.value.code == "duplicate-name"


def test_two_different_views_of_one_name_are_refused():
    with pytest.raises(DefinitionError) as caught:
        gather([cards({"n": hr.count(over="10m")}), cards({"n": hr.count(over="20m")})])
    assert caught.value.code == "duplicate-name"


def test_a_view_and_a_feature_set_of_one_name_are_refused():
    view = cards({"n": hr.count(over="10m")})
    with pytest.raises(DefinitionError) as caught:
        gather([view, hr.feature_set("cards", [view])])
    assert caught.value.code == "duplicate-name"


def example():
    view = cards(
        {
            "n_10m": hr.count(over="10m"),
            "spent_1h": hr.sum("amount", over="1h"),
            "users_1d": hr.count_distinct("user", over="1d"),
            "visit": hr.sum("amount", over=hr.session(gap="30m")),
            "median_7d": hr.quantile("amount", q=0.5, over="7d"),
            "large_share": hr.ratio(hr.count(over="1h", where="amount > 100"), hr.count(over="1h")),
        },
        source=payments.where("amount > 0"),
    )

    @hr.on_demand(view, request={"amount": float})
    def versus_median(amount, median_7d):
        return amount / median_7d if median_7d else None

    return build([hr.feature_set("fraud", [view, versus_median])])


def test_the_text_of_a_plan_is_pinned(golden):
    golden("plan", text(example()))


def test_the_json_of_a_plan_is_pinned(golden):
    import json

    golden("plan_json", json.dumps(as_json(example()), indent=2, ensure_ascii=False))


merchants = hr.dimension(
    "merchants", "m.parquet", by="card", fields={"card": str, "risk": float, "note": str | None}, valid_from="since"
)


def test_a_dimension_is_planned_once_wherever_it_is_named():
    view = cards({"n": hr.count(over="10m")})

    @hr.on_demand(merchants)
    def high(risk):
        return risk > 0.5

    plan = build([hr.feature_set("fraud", [view, merchants.only("note"), high]), merchants])
    assert [planned.dimension for planned in plan.dimensions] == [merchants]
    assert [tiles.id for tiles in plan.tile_sets] == ["payments.by_card"]
    assert as_json(plan)["on_demand"][0]["dimensions"] == ["merchants"]


def test_a_plan_without_dimensions_keeps_its_fingerprint():
    view = cards({"n": hr.count(over="10m")})
    assert build([view]).fingerprint == dataclasses.replace(build([view]), dimensions=()).fingerprint
    assert build([view]).fingerprint != build([view, merchants]).fingerprint


@pytest.mark.parametrize(
    "changed", [{"path": "n.parquet"}, {"valid_to": "until"}, {"valid_from": "since_when"}, {"by": ("note",)}]
)
def test_a_dimensions_fingerprint_is_of_its_definition(changed):
    (planned,) = build([merchants]).dimensions
    (other,) = build([dataclasses.replace(merchants, **changed)]).dimensions
    (same,) = build([dataclasses.replace(merchants, owner="somebody", description="else")]).dimensions
    assert planned.fingerprint != other.fingerprint
    assert planned.fingerprint == same.fingerprint


def test_a_dimension_is_explained():
    said = text(build([dataclasses.replace(merchants, valid_to="until")]))
    assert "  m.parquet by card, valid from since to until; at read time\n  feature merchants.risk: float\n" in said


@pytest.mark.parametrize("kind", ["view", "feature set"])
def test_a_dimension_shares_its_name_with_nothing_else_that_is_read(kind):
    view = cards({"n": hr.count(over="10m")}, name="merchants" if kind == "view" else "cards")
    other = view if kind == "view" else hr.feature_set("merchants", [view])
    with pytest.raises(DefinitionError, match="are both called 'merchants'"):
        build([other, merchants])
