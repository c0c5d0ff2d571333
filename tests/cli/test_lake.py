"""`headrace lake` on tables as the archive leaves them."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from pathlib import Path

import pytest

from headrace import project
from headrace.cli.init import create
from headrace.clock import DAY, HOUR, MINUTE, SECOND, SystemClock
from headrace.config import config as configuration
from tests.cli.asking import asking
from tests.lake.bronze import fill, record, write

START = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z


@pytest.fixture
def shop(tmp_path, monkeypatch):
    create(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return configuration.load()


@pytest.fixture
def stream(shop):
    return project.load().streams[0]


@pytest.fixture
def ask(capsys):
    return asking(capsys, "lake")


@pytest.fixture
def filled(shop, stream):
    """Two days, two partitions, three batches; one record of every kind."""
    days = [
        [record(p, at, START + day * DAY + at * SECOND, SECOND) for p in (0, 1)] for day, at in ((0, 0), (0, 1), (1, 2))
    ]
    days[2] += [
        record(0, 3, START + DAY, HOUR, verdict="late", reason="arrived 3600 s after it happened"),
        record(0, 4, START + DAY, SECOND, verdict="duplicate", first_partition=0, first_offset=0),
        record(1, 3, START + DAY, 0, verdict="malformed", event_time=None, event_id=None, value=b"\xff\x1b[2J"),
    ]
    return fill(shop, stream, days)


def tables(out):
    return {(each["stream"], each["table"]): each for each in json.loads(out)["tables"]}


# ls


@pytest.mark.usefixtures("filled")
def test_the_tables_are_listed_with_what_they_hold(ask, golden):
    code, out, err = ask("ls")
    assert (code, err) == (0, "")
    # Files are as large as this version of the Parquet writer makes them.
    golden("cli/lake_ls", _without_sizes(out))


def _without_sizes(out):
    import re

    return re.sub(r"\d+(\.\d)? k?B +", "SIZE  ", out)


@pytest.mark.usefixtures("filled")
def test_the_list_as_json_has_positions_and_verdicts(ask):
    told = json.loads(ask("ls", "payments", "--json")[1])["streams"]["payments"]
    assert (told["archived"], told["positions"], told["silver_behind"]) == (9, {"0": 5, "1": 4}, False)
    assert {name: count for name, count in told["verdicts"].items() if count} == {
        "malformed": 1,
        "late": 1,
        "duplicate": 1,
        "admitted": 6,
    }
    bronze = told["tables"]["bronze"]
    assert (bronze["rows"], bronze["first_day"], bronze["last_day"]) == (9, "2026-01-01", "2026-01-02")


def test_a_stream_without_tables_is_empty_and_looking_makes_none(shop, ask):
    assert ask("ls") == (0, "payments: empty: nothing has been archived yet\n", "")
    assert json.loads(ask("ls", "--json")[1])["streams"]["payments"]["empty"] is True
    assert ask("compact")[2] == "payments is empty: nothing has been archived yet.\n"
    assert ask("vacuum", "--yes")[0] == 0
    assert not (shop.data / "lake").exists()


@pytest.mark.usefixtures("shop")
def test_an_unknown_stream_is_answered_with_the_closest(ask):
    code, _, err = ask("ls", "paymnets")
    assert (code, "hint: Did you mean 'payments'?" in err) == (2, True)


def test_silver_that_is_behind_is_said(shop, stream, ask):
    fill(shop, stream, [[record(0, 0, START, 0)]], silver=False)
    assert ask("ls")[1].endswith("silver lacks a batch that bronze has\n")


# sql


@pytest.mark.usefixtures("filled")
def test_an_answer_is_a_table_for_people(ask, golden):
    code, out, err = ask("sql", 'SELECT partition, "offset", verdict, event_time, value FROM bronze ORDER BY 1, 2')
    assert (code, err) == (0, "")
    golden("cli/lake_sql", out)


@pytest.mark.usefixtures("filled")
def test_an_answer_is_an_object_a_line_or_csv_for_programs(ask):
    query = "SELECT card, _arrived_at, amount FROM payments_silver ORDER BY _arrived_at, _partition LIMIT 1"
    expected = {"card": "card-0", "_arrived_at": "2026-01-01T00:00:00Z", "amount": 1.5}
    assert [json.loads(line) for line in ask("sql", query, "--json")[1].splitlines()] == [expected]
    assert list(csv.DictReader(io.StringIO(ask("sql", query, "--csv")[1]))) == [expected | {"amount": "1.5"}]
    assert ask("sql", query, "--csv", "--json")[0] == 2


@pytest.mark.usefixtures("filled")
def test_a_long_answer_is_cut_and_says_so(ask):
    code, out, err = ask("sql", "SELECT 1 AS one FROM bronze", "--limit", "4", "--csv")
    assert (code, out.count("\n"), err) == (0, 5, "There are more rows than 4; see --limit.\n")
    assert ask("sql", "SELECT 1 AS one FROM bronze", "--limit", "0", "--csv")[1:] == ("one\n" + "1\n" * 9, "")


@pytest.mark.usefixtures("filled")
def test_a_query_that_cannot_be_answered_says_why(ask):
    code, out, err = ask("sql", "SELECT * FROM sliver")
    assert (code, out) == (2, "")
    assert "hint: Did you mean 'silver'?" in err


@pytest.mark.usefixtures("shop")
def test_an_empty_lake_cannot_be_asked(ask):
    code, _, err = ask("sql", "SELECT 1")
    assert (code, "The lake is empty." in err) == (2, True)


# compact and vacuum


def test_compaction_merges_files_and_tells_how_many(shop, stream, ask):
    fill(shop, stream, [[record(0, at, START + at, 0)] for at in range(5)])
    told = tables(ask("compact", "--json")[1])
    assert told["payments", "bronze"]["files"] == told["payments", "silver"]["files"] == {"before": 5, "after": 1}
    assert ask("sql", "SELECT count(*) AS n FROM silver", "--csv")[1] == "n\n5\n"
    assert "5 -> 1" not in ask("compact")[1]


def test_vacuum_removes_what_no_recent_version_needs(shop, stream, ask):
    lake = fill(shop, stream, [[record(0, 0, START, 0)]])
    orphan = Path(lake.bronze.uri) / "day=2026-01-01" / "orphan.parquet"
    orphan.write_bytes(b"left over")
    old = time.time() - 3 * 24 * 3600
    os.utime(orphan, (old, old))
    dry = tables(ask("vacuum", "--keep", "2d", "--dry-run", "--json")[1])["payments", "bronze"]
    assert orphan.exists()
    told = tables(ask("vacuum", "--keep", "2d", "--yes", "--json")[1])["payments", "bronze"]
    assert not orphan.exists()
    assert dry == told
    assert told["files"] == {"before": 2, "after": 1}
    assert told["bytes"]["before"] - told["bytes"]["after"] == len(b"left over")


@pytest.mark.usefixtures("filled")
def test_vacuum_asks_first_and_cannot_where_nobody_answers(ask, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("no\n"))
    assert ask("vacuum")[0] == 2
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    code, _, err = ask("vacuum")
    assert (code, err.endswith("Nothing was removed.\n")) == (1, True)


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("options", [("--keep", "1h"), ("--keep", "soon"), ("--forget-before", "-3d")])
def test_vacuum_refuses_ages_that_cannot_be_meant(ask, options):
    assert ask("vacuum", "--yes", *options)[0] == 2


def test_days_that_no_view_can_ask_for_are_forgotten(shop, stream, ask):
    now = SystemClock().now()
    ages = (0, 5 * DAY, 20 * DAY, 40 * DAY)
    fill(shop, stream, [[record(0, at, now - age, MINUTE)] for at, age in enumerate(ages)])
    code, _, err = ask("vacuum", "--forget-before", "15d", "--dry-run")
    assert (code, "payments bronze: 2 days before" in err) == (0, True)
    assert ask("sql", "SELECT count(*) AS n FROM silver", "--csv")[1] == "n\n4\n"
    told = tables(ask("vacuum", "--forget-before", "15d", "--yes", "--json")[1])
    assert [told["payments", name]["forgotten_rows"] for name in ("bronze", "silver")] == [2, 2]
    assert ask("sql", 'SELECT "offset" FROM bronze ORDER BY 1', "--csv")[1] == "offset\n0\n1\n"
    # Forgetting is a commit: earlier versions have the rows until their files are removed by a later vacuum.
    assert told["payments", "bronze"]["files"] == {"before": 4, "after": 4}
    # What the archive counted and where it goes on is not history.
    assert json.loads(ask("ls", "--json")[1])["streams"]["payments"]["positions"] == {"0": 4}


def test_days_that_a_view_can_ask_for_are_not_forgotten(shop, stream, ask, golden):
    fill(shop, stream, [[record(0, 0, SystemClock().now() - 6 * DAY, 0)]])
    code, out, err = ask("vacuum", "--forget-before", "7d", "--yes")
    assert (code, out) == (2, "")
    golden("cli/lake_needed", err)
    assert ask("sql", "SELECT count(*) AS n FROM bronze", "--csv")[1] == "n\n1\n"


def test_bronze_that_silver_is_still_made_from_is_not_forgotten(shop, stream, ask):
    fill(shop, stream, [[record(0, 0, START, 0)]], silver=False)
    code, _, err = ask("vacuum", "--forget-before", "90d", "--yes")
    assert (code, "Silver of 'payments' lacks a batch that bronze has" in err) == (2, True)


def test_an_archive_that_runs_goes_on_after_compaction_vacuum_and_forgetting(shop, stream, ask):
    running = fill(shop, stream, [[record(0, at, START + at, 0)] for at in range(3)])
    assert ask("compact")[0] == 0
    assert ask("vacuum", "--forget-before", "90d", "--yes")[0] == 0
    write(running.bronze, [record(0, 3, SystemClock().now(), 0)], {"headrace.batch": 4, "headrace.turn": 4})
    assert ask("sql", 'SELECT "offset" FROM bronze', "--csv")[1] == "offset\n3\n"
