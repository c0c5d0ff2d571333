"""Names of tables in a user's SQL: found, replaced, and nothing else touched."""

from __future__ import annotations

import pytest

from headrace.errors import DataError
from headrace.training.spine_sql import is_query, places, rewritten

KNOWN = dict.fromkeys(["silver", "payments_silver", "payments_bronze"])


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM silver;", "SELECT * FROM `v_silver` AS `silver`"),
        ("select silver.id from SILVER", "select silver.id from `v_silver` AS `SILVER`"),
        ("SELECT s.id FROM silver AS s", "SELECT s.id FROM `v_silver` AS s"),
        ("SELECT s.id FROM silver s", "SELECT s.id FROM `v_silver` s"),
        ("SELECT 'silver' AS silver FROM `silver`", "SELECT 'silver' AS silver FROM `v_silver` AS `silver`"),
        (
            "WITH a AS (SELECT * FROM payments_silver -- silver\n) SELECT * FROM a JOIN payments_bronze b ON b.x = a.x",
            "WITH a AS (SELECT * FROM `v_payments_silver` AS `payments_silver` -- silver\n) "
            "SELECT * FROM a JOIN `v_payments_bronze` b ON b.x = a.x",
        ),
        (
            "SELECT * FROM silver WHERE id IN (SELECT id FROM silver)",
            "SELECT * FROM `v_silver` AS `silver` WHERE id IN (SELECT id FROM `v_silver` AS `silver`)",
        ),
    ],
)
def test_only_the_names_of_tables_are_replaced(sql, expected):
    assert rewritten(sql, KNOWN, lambda name: f"v_{name}") == expected


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT * FROM slver", "Did you mean 'silver'?"),
        ("SELECT * FROM other.silver", None),
        ("SELECT * FROM silver; DROP TABLE silver", "Write one SELECT, perhaps with WITH before it."),
        ("WITH a AS (SELECT 1) INSERT INTO silver SELECT * FROM a", "Write one SELECT, perhaps with WITH before it."),
        ("SELECT FROM WHERE", None),
    ],
)
def test_what_reads_no_table_of_the_lake_or_is_no_query_is_refused(sql, told):
    with pytest.raises(DataError) as refused:
        rewritten(sql, KNOWN, str)
    assert refused.value.code == "bad-query"
    assert told is None or refused.value.hint == told


def test_a_query_is_told_from_a_path():
    assert is_query(" with a as (select 1) select * from a")
    assert not is_query("selection/labels.csv")
    assert places("SELECT 1") == []
