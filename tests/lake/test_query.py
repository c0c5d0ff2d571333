"""SQL over the lake: answers as DataFusion gives them, nothing but queries, and mistakes in DataFusion's own words."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.clock import DAY, HOUR
from headrace.lake.counters import BATCH, OFFSET, TURN, behind, position
from headrace.lake.overview import content, days_before, on_disk
from headrace.lake.query import ask, names
from headrace.lake.retention import needed
from headrace.lake.table import LakeTable
from headrace.plan.build import build
from tests.lake.conftest import SHAPE, add


def event(number, time=HOUR):
    return (f"e{number}", time, number, time, 0, number, number)


@pytest.fixture
def filled(silver):
    add(silver, [event(number) for number in range(5)])
    add(silver, [event(9, 3 * DAY)])
    return silver


def rows(table, sql, limit=None):
    found, more = ask({"silver": table}, sql, limit)
    return found.to_pylist(), more


def refusal(table, sql):
    with pytest.raises(hr.HeadraceError) as refused:
        ask({"silver": table}, sql)
    return refused.value


def test_a_query_is_answered_in_its_order(filled):
    assert rows(filled, "SELECT id FROM silver WHERE _offset > 2 ORDER BY id DESC;") == (
        [{"id": "e9"}, {"id": "e4"}, {"id": "e3"}],
        False,
    )


def test_a_limit_cuts_the_answer_and_says_that_there_is_more(filled):
    assert rows(filled, "SELECT id FROM silver ORDER BY id", 2) == ([{"id": "e0"}, {"id": "e1"}], True)
    assert rows(filled, "SELECT id FROM silver WHERE _offset < 2 ORDER BY id", 2)[1] is False


def test_a_query_may_join_a_table_with_itself_and_end_in_a_comment(filled):
    asked = "SELECT count(*) AS n FROM silver a JOIN silver b ON a.id = b.id -- all of them"
    assert rows(filled, asked) == ([{"n": 6}], False)


def test_tables_can_be_described_and_plans_explained(filled):
    assert {"id", "at", "_offset"} <= {row["column_name"] for row in rows(filled, "DESCRIBE silver")[0]}
    assert rows(filled, "EXPLAIN SELECT id FROM silver")[0][0]["plan_type"] == "logical_plan"


@pytest.mark.parametrize(
    "sql",
    [
        "COPY silver TO '{}/out.csv'",
        "EXPLAIN ANALYZE COPY silver TO '{}/out.csv'",
        "CREATE TABLE mine AS SELECT * FROM silver",
        "DROP TABLE silver",
        "SELECT 1) ; DROP TABLE silver; SELECT (1",
        "INSERT INTO silver SELECT * FROM silver",
    ],
)
def test_what_is_no_query_is_refused_before_it_runs(filled, tmp_path, sql):
    assert refusal(filled, sql.format(tmp_path)).code == "bad-query"
    assert not (tmp_path / "out.csv").exists()
    assert rows(filled, "SELECT count(*) AS n FROM silver")[0] == [{"n": 6}]


def test_a_table_that_is_not_there_is_answered_with_the_closest(filled):
    error = refusal(filled, "SELECT * FROM sliver")
    assert error.hint == "Did you mean 'silver'?"
    assert "sliver" in error.got


def test_mistakes_are_told_as_datafusion_tells_them(filled):
    assert "Expected: an SQL statement, found: SELEC" in refusal(filled, "SELEC id FROM silver").got
    assert "Divide by zero" in refusal(filled, "SELECT 1 / (_offset - _offset) FROM silver").got


def test_tables_are_called_by_stream_and_with_one_stream_by_themselves(silver):
    assert sorted(names({"clicks": {"silver": silver}})) == ["clicks_silver", "silver"]
    assert sorted(names({"clicks": {"silver": silver}, "views": {}})) == ["clicks_silver"]


# what is there


def test_looking_at_a_table_that_is_not_there_creates_nothing(tmp_path):
    assert LakeTable.there(str(tmp_path / "lake" / "silver"), SHAPE) is None
    assert not (tmp_path / "lake").exists()


def test_looking_adds_no_column_to_a_table_whose_stream_has_grown(silver):
    from headrace.lake.layout import silver_shape

    grown = hr.stream("clicks", fields={"id": str, "at": hr.Timestamp, "n": int | None}, event_time="at", event_id="id")
    found = LakeTable.there(silver.uri, silver_shape(grown))
    assert "n" not in [field.name for field in found.delta.schema().fields]


def test_what_a_table_holds_is_told_from_its_log(filled):
    held = content(filled)
    assert (held.rows, held.files, held.days) == (6, 2, ("1970-01-01", "1970-01-04"))
    assert held.bytes == sum(on_disk(filled).values())
    old = days_before(filled, "1970-01-04")
    assert (old.days, old.rows, old.files) == (1, 5, 1)


def test_an_empty_table_holds_nothing(silver):
    assert (content(silver).rows, content(silver).days) == (0, None)


def test_positions_are_found_without_knowing_how_many_partitions_there_are(silver):
    assert position(silver) is None
    silver.commit([], {f"{OFFSET}0": 5, f"{OFFSET}1": 7, f"{OFFSET}2": 0})
    assert position(silver) == {0: 5, 1: 7, 2: 0}


@pytest.mark.parametrize("counter", [BATCH, TURN])
def test_silver_is_behind_when_bronze_had_one_turn_more(silver, tmp_path, counter):
    bronze = LakeTable(str(tmp_path / "bronze"), SHAPE)
    assert not behind(bronze, None)
    bronze.commit([], {counter: 1})
    assert behind(bronze, None)
    assert behind(bronze, silver)
    silver.commit([], {counter: 1})
    assert not behind(bronze, silver)


# what must stay

clicks = hr.stream(
    "clicks",
    fields={"id": str, "user": str, "at": hr.Timestamp},
    event_time="at",
    event_id="id",
    allowed_lateness="1h",
    max_clock_skew="5m",
)


def kept(*windows):
    over = {f"n{at}": hr.count(over=window) for at, window in enumerate(windows)}
    found = needed(build([hr.view("users", clicks, by="user", features=over)]), clicks)
    return found.feature, found.keep


def test_the_longest_window_with_lateness_and_skew_must_stay():
    assert kept("1h", hr.tumbling("30d", previous=True), "7d") == ("users.n1", 60 * DAY + HOUR + HOUR // 12)


def test_a_lifetime_must_stay_for_ever():
    assert kept("7d", hr.lifetime()) == ("users.n1", None)


def test_a_stream_without_views_needs_only_what_copies_are_looked_for_in():
    assert needed(build([clicks]), clicks).keep == HOUR + HOUR // 12
