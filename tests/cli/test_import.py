"""`headrace import` as a user runs it: refusals, counts, dry runs, a kill in the middle; and history through `send`."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from headrace import project
from headrace.cli.init import create
from headrace.cli.main import main
from headrace.config import config as configuration
from headrace.config.config import names
from headrace.ingest.import_scratch import scratch
from headrace.meaning.verdict import count_verdicts, judge
from headrace.topics import open_log
from tests.moments import refuse_numbers_in
from tests.test_imports import HEAVY, loaded

PATIENCE = 120.0
HEADER = "id,card_no,amount,country,at,received\n"


@pytest.fixture
def shop(tmp_path, monkeypatch):
    create(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def rows(count, first=0):
    made = []
    for n in range(first, first + count):
        at = f"2020-01-01T00:{n // 60:02}:{n % 60:02}"
        made.append(f"p{n},c{n % 7},{n}.5,DE,{at}Z,{at}.5Z\n")
    return "".join(made)


def lake(shop, table="bronze"):
    return names(configuration.load(shop)).path("lake", "payments", table)


def stored(shop, table="bronze"):
    from deltalake import DeltaTable

    return DeltaTable(str(lake(shop, table))).to_pyarrow_table().to_pylist()


OPTIONS = ["--stream", "payments", "--map", "card_no=card"]


def start(shop, *arguments):
    command = [sys.executable, "-P", "-m", "headrace.cli.main", "import", *arguments]
    return subprocess.Popen(
        command, cwd=shop, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def ask(shop, *arguments):
    """Its exit code, what it printed as JSON, and what it said."""
    process = start(shop, *arguments, "--json")
    out, err = process.communicate(timeout=PATIENCE)
    assert out, err
    refuse_numbers_in(out)
    return process.returncode, json.loads(out), err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--arrived-at", "received", "--arrival-delay", "5s"], "needs to know when rows arrived"),
        ([], "needs to know when rows arrived"),
        (["--arrival-delay", "soon"], "The arrival delay cannot be read."),
        (["--arrived-at", "recieved"], "There is no such column."),
        (["--arrival-delay", "5s", "--map", "card"], "--map takes a column and a field."),
        (["--arrival-delay", "5s", "--map", "card_no=id"], "--map names one column twice."),
    ],
)
def test_what_cannot_be_imported_is_refused_before_anything_starts(shop, capsys, arguments, told):
    (shop / "old.csv").write_text(HEADER + rows(3))
    assert main(["import", "old.csv", *OPTIONS, *arguments]) == 2
    assert told in capsys.readouterr().err
    assert not lake(shop).exists()


def test_a_required_field_without_a_column_is_refused_with_what_to_say(shop, capsys):
    (shop / "old.csv").write_text(HEADER + rows(3))
    assert main(["import", "old.csv", "--stream", "payments", "--arrival-delay", "5s"]) == 2
    said = capsys.readouterr().err
    assert "There is no column for the required field 'card'." in said
    assert "--map COLUMN=card" in said


def test_a_second_import_of_a_stream_is_refused_while_the_first_runs(shop, capsys):
    (shop / "old.csv").write_text(HEADER + rows(3))
    with scratch(names(configuration.load()), "payments"):
        assert main(["import", "old.csv", *OPTIONS, "--arrival-delay", "5s"]) == 3
    assert "Another process imports history into this stream." in capsys.readouterr().err


def test_what_a_killed_import_left_lying_is_removed_by_the_next(shop):
    named = names(configuration.load())
    left = named.path("importing", "payments", "staging")
    left.mkdir(parents=True)
    with scratch(named, "payments") as folder:
        assert list(folder.iterdir()) == []
    assert not folder.exists()


def test_the_help_loads_no_engine():
    modules = loaded("from headrace.cli.main import main; main(['import', '--help'])")
    assert "headrace.cli.import_" in modules
    assert modules & (HEAVY - {"click"}) == set()


@pytest.mark.spark
@pytest.mark.xdist_group("live")
def test_a_dry_run_counts_and_changes_nothing_and_the_run_after_it_counts_the_same(shop):
    bad = "p1,c1,lots,DE,2020-01-01T00:00:01Z,2020-01-01T00:00:01Z\np1,c1,1\n"
    (shop / "old.csv").write_text(HEADER + rows(5) + rows(2) + bad)
    arguments = ["old.csv", *OPTIONS, "--arrived-at", "received"]
    code, tried, _ = ask(shop, *arguments, "--dry-run", "--strict")
    assert code == 1, "--strict minds dead rows in a dry run too"
    assert tried["dry_run"] is True
    assert not lake(shop).exists()
    code, done, said = ask(shop, *arguments)
    assert code == 0
    assert "Imported 9 rows into payments as partition -1" in said
    expected = {"malformed": 0, "invalid": 2, "future": 0, "late": 0, "duplicate": 2, "admitted": 5}
    assert done["verdicts"] == tried["verdicts"] == expected
    assert (done["rows"], done["imported_before"]) == (9, 0)
    copied = ["admitted", "duplicate"]
    assert [row["verdict"] for row in sorted(stored(shop), key=lambda row: row["offset"])] == [
        *copied,
        "invalid",  # it arrived before the next one, and stands last but one in the file
        *copied,
        *["admitted"] * 3,
        "invalid",
    ]
    assert {row["card"] for row in stored(shop, "silver")} == {f"c{n}" for n in range(5)}


@pytest.mark.spark
@pytest.mark.xdist_group("live")
def test_an_import_that_is_killed_goes_on_where_it_was_and_loses_and_doubles_nothing(shop):
    with (shop / "headrace.toml").open("a") as settings:
        settings.write("\n[archive]\nmost = 500\n")
    (shop / "old.csv").write_text(HEADER + rows(2_000))
    arguments = ["old.csv", *OPTIONS, "--arrival-delay", "1s"]
    process = start(shop, *arguments)
    log, deadline = lake(shop) / "_delta_log", time.monotonic() + PATIENCE
    while len(list(log.glob("*.json"))) < 3:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()

    code, done, said = ask(shop, *arguments)
    assert code == 0
    assert 500 <= done["imported_before"] < 2_000
    assert done["imported_before"] + done["rows"] == 2_000
    assert "Imported before, and left as they are: " in said
    found = stored(shop)
    assert sorted((row["partition"], row["offset"]) for row in found) == [(-1, at) for at in range(2_000)]
    assert {row["arrival"] for row in found} == {"assumed"}
    assert sorted(int(row["id"][1:]) for row in stored(shop, "silver")) == list(range(2_000))


def is_running(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.spark
@pytest.mark.prove
@pytest.mark.xdist_group("live")
def test_an_import_that_is_interrupted_in_spark_leaves_no_process_and_no_traceback(shop, seed):
    with (shop / "headrace.toml").open("a") as settings:
        settings.write("\n[archive]\nmost = 500\n")
    (shop / "old.csv").write_text(HEADER + rows(2_000))
    arguments = ["old.csv", *OPTIONS, "--arrival-delay", "1s"]
    assert ask(shop, *arguments)[0] == 0
    commits = list((lake(shop) / "_delta_log").glob("*.json"))
    process = start(shop, *arguments, "--again")
    # Spark reads rows from its start on, and commits them batch by batch.
    wanted, deadline = len(commits) + random.Random(seed).randrange(3), time.monotonic() + PATIENCE
    spark = names(configuration.load()).path("run", "import-payments-spark.log")
    before = spark.stat().st_mtime_ns
    while spark.stat().st_mtime_ns == before or len(list((lake(shop) / "_delta_log").glob("*.json"))) < wanted:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, said
    assert "Interrupted." in said.splitlines()[-1]
    assert "Traceback" not in said
    assert "py4j" not in said
    while is_running(process.pid):
        assert time.monotonic() < deadline, "a process of the import is left"
        time.sleep(0.01)
    assert ask(shop, *arguments, "--again")[0] == 0
    assert sorted(int(row["id"][1:]) for row in stored(shop, "silver")) == list(range(2_000))


def test_a_file_sent_to_a_stream_whose_field_says_when_events_arrived_is_not_late(shop):
    features = (shop / "features.py").read_text()
    features = features.replace('"at": hr.Timestamp}', '"at": hr.Timestamp, "received": hr.Timestamp}')
    features = features.replace('event_time="at",', 'event_time="at",\n    arrival="field:received",')
    (shop / "features.py").write_text(features)
    (shop / "old.csv").write_text(
        HEADER.replace("card_no", "card") + rows(10) + rows(1, first=20).replace(":20.5Z", ":59Z")
    )
    (shop / "late.csv").write_text(HEADER.replace("card_no", "card") + rows(1).replace("00:00.5Z", "09:00Z"))
    for file in ("old.csv", "late.csv"):
        assert main(["send", "payments", file]) == 0
    loaded_ = project.load(shop)
    (stream,) = loaded_.streams
    with open_log(loaded_.config) as log:
        partitions = log.end_offsets("payments")
        records = [record for p in partitions for record in log.read("payments", p, 0, limit=100)]
    counts = count_verdicts(judge(stream.base, records))
    assert (counts["admitted"], counts["late"]) == (11, 1)
