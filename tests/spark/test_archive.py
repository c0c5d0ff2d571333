"""The archive: every record into the lake once, with the reference's verdict, from whichever log it comes."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime

import pytest

import headrace as hr
from headrace.clock import MINUTE, SystemClock
from headrace.lake.layout import bronze_shape, silver_shape
from headrace.lake.location import Lake
from headrace.lake.maintenance import compact
from headrace.lake.table import LakeTable
from headrace.log.embedded.log import EmbeddedLog
from headrace.log.kafka.log import KafkaLog
from headrace.meaning.verdict import DEAD, count_verdicts, judge
from tests.flow import flow, message
from tests.lake.bucket import bucket
from tests.lake_checker import check

pytestmark = pytest.mark.spark

payments = hr.stream(
    "payments",
    fields={"id": str, "card": str, "amount": float, "country": str, "at": hr.Timestamp},
    event_time="at",
    event_id="id",
    key="card",
    allowed_lateness="5m",
    max_clock_skew="1m",
)
PARTITIONS = 3


class Later(SystemClock):
    """A clock ahead of the log's, so that everything appended has arrived."""

    def now(self) -> int:
        return super().now() + MINUTE


@pytest.fixture
def log(tmp_path):
    with EmbeddedLog(tmp_path / "log") as made:
        made.create_topic("payments", partitions=PARTITIONS)
        yield made


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def any_log(request):
    """Each log there is, with an empty topic of payments: the log and the topic."""
    if request.param == "embedded":
        yield request.getfixturevalue("log"), "payments"
        return
    topic = f"archive-{uuid.uuid4().hex}"
    with KafkaLog(request.getfixturevalue("kafka").brokers) as made:
        made.create_topic(topic, partitions=PARTITIONS)
        yield made, topic


@pytest.fixture
def lake(tmp_path):
    return opened(tmp_path / "lake" / "payments")


def opened(folder):
    return Lake(
        LakeTable(str(folder / "bronze"), bronze_shape()),
        LakeTable(str(folder / "silver"), silver_shape(payments)),
        str(folder / "staging"),
    )


def archive(spark, log, lake, topic="payments"):
    from headrace.spark.archive.archive import StreamArchive

    return StreamArchive(payments, topic, log, lake, spark, Later())


def send(log, records, topic="payments"):
    """In small pieces, so that partitions take turns."""
    records = list(records)
    for at in range(0, len(records), 20):
        for partition in range(PARTITIONS):
            mine = [message(record) for record in records[at : at + 20] if record["partition"] == partition]
            log.append_batch(topic, mine, partition=partition)


def everything(log, topic):
    """Every record of the topic."""
    return [record for p in range(PARTITIONS) for record in log.read(topic, p, 0, limit=1_000_000)]


class DiedError(Exception):
    """What stands for a SIGKILL."""


def dies_before_silver(running, most):
    """A batch whose process dies after its commit to bronze."""

    def die(*_):
        raise DiedError

    silver = running.lake.silver
    commit, silver.commit = silver.commit, die
    with pytest.raises(DiedError):
        running.step(most)
    silver.commit = commit


def drain(running, most):
    return [made.counts.records for made in iter(lambda: running.step(most), None)]


def test_letters_of_a_batch_that_is_cut_off_before_its_commit_are_there_once(spark, lake, log):
    from headrace.spark.archive.archive import StreamArchive
    from headrace.spark.archive.refused_records import Refusals
    from headrace.spark.dead_letter import present, walk

    log.create_topic("payments.dead", compacted=True)
    log.create_topic("payments.late", compacted=True)
    send(log, flow(300, seed=8, partitions=PARTITIONS, now=datetime.now(UTC)))

    def begun():
        refusals = Refusals(payments, log, "payments.dead", "payments.late")
        return StreamArchive(payments, "payments", log, lake, spark, Later(), refusals=refusals)

    def die(*_):
        raise DiedError

    running = begun()
    commit, lake.bronze.commit = lake.bronze.commit, die
    with pytest.raises(DiedError):
        running.step()
    lake.bronze.commit = commit
    written = len(list(walk(log, "payments.dead")))
    letters = present(walk(log, "payments.dead"))
    assert written == len(letters) > 0

    running = begun()
    made = running.step()
    assert len(list(walk(log, "payments.dead"))) == written
    dead = [count for (_, verdict), count in made.counts.verdicts.items() if verdict in DEAD]
    assert sum(dead) == written

    # Letters of a later batch are not looked up, and come all the same.
    log.append("payments", b"{not json")
    assert running.step().counts.records == 1
    assert len(present(walk(log, "payments.dead"))) == written + 1


def test_an_archive_in_batches_holds_what_the_rules_and_the_reference_say(spark, any_log, lake, tmp_path):
    from headrace.lake.counters import totals

    log, topic = any_log
    sent = list(flow(3_000, seed=5, partitions=PARTITIONS, now=datetime.now(UTC)))
    (tmp_path / "sent.jsonl").write_text("".join(json.dumps(each) + "\n" for each in sent))
    send(log, sent, topic)

    batches = drain(archive(spark, log, lake, topic), most=800)
    assert batches == [800, 800, 800, 600]

    found = check(str(tmp_path / "sent.jsonl"), str(tmp_path / "lake" / "payments"), 5 * MINUTE, MINUTE)
    assert not any(found["findings"].values()), found
    judged = judge(payments, everything(log, topic))
    expected = count_verdicts(judged)
    assert all(expected.values()), "the flow must have records of every verdict"
    counted = totals(lake.bronze)
    assert {verdict: counted[verdict] for verdict in expected} == expected
    assert counted["conflict"] == sum(each.conflict for each in judged) > 0
    assert counted["late_copy"] == sum(each.verdict == "late" and each.first is not None for each in judged) > 0

    kept = {(row["partition"], row["offset"]): row for row in lake.bronze.delta.to_pyarrow_table().to_pylist()}
    for each in judged:
        row = kept[each.record.partition, each.record.offset]
        assert row["verdict"] == each.verdict
        # What is not JSON is described by two parsers in their own words.
        assert row["reason"] == each.reason or each.verdict == "malformed"
        assert (row["key"], row["value"]) == (each.record.key, each.record.value)


def test_a_crash_between_the_two_commits_is_made_up_for_from_bronze(spark, any_log, lake, tmp_path):
    log, topic = any_log
    sent = list(flow(400, seed=6, partitions=PARTITIONS, now=datetime.now(UTC)))
    (tmp_path / "sent.jsonl").write_text("".join(json.dumps(each) + "\n" for each in sent))
    send(log, sent, topic)
    broken = archive(spark, log, lake, topic)
    broken.step(150)
    dies_before_silver(broken, 150)

    drain(archive(spark, log, opened(tmp_path / "lake" / "payments"), topic), most=1_000)
    found = check(str(tmp_path / "sent.jsonl"), str(tmp_path / "lake" / "payments"), 5 * MINUTE, MINUTE)
    assert not any(found["findings"].values()), found


def test_duckdb_pandas_polars_and_spark_read_the_same_rows(spark, log, lake):
    import duckdb
    import polars

    send(log, flow(300, seed=9, partitions=PARTITIONS, now=datetime.now(UTC)))
    running = archive(spark, log, lake)
    drain(running, most=100)
    compact(lake.silver)
    expected = sorted((row["_partition"], row["_offset"]) for row in lake.silver.delta.to_pyarrow_table().to_pylist())
    assert len(expected) > 200

    # The days are in the folders' names: Spark finds them when told where the table begins.
    whole = spark.read.option("basePath", lake.silver.uri).parquet(*lake.silver.delta.file_uris())
    dataset = lake.silver.delta.to_pyarrow_dataset()
    connection = duckdb.connect()
    connection.register("silver", dataset)
    found = {
        "duckdb": connection.sql("SELECT _partition, _offset FROM silver").fetchall(),
        "pandas": lake.silver.delta.to_pandas()[["_partition", "_offset"]].itertuples(index=False, name=None),
        "polars": polars.read_delta(lake.silver.uri).select("_partition", "_offset").iter_rows(),
        "spark": whole.select("_partition", "_offset").collect(),
    }
    for reader, rows in found.items():
        assert sorted(tuple(row) for row in rows) == expected, reader
    days = {row._day for row in whole.select("_day").distinct().collect()}
    assert days == set(lake.silver.delta.to_pandas()["_day"])


def test_a_lake_in_object_storage_holds_the_same_also_after_a_crash(spark, log):
    send(log, flow(200, seed=10, partitions=PARTITIONS, now=datetime.now(UTC)))
    with bucket() as options:
        lake = Lake(
            LakeTable("s3://lake/payments/bronze", bronze_shape(), options),
            LakeTable("s3://lake/payments/silver", silver_shape(payments), options),
            "s3://lake/payments/staging",
        )
        dies_before_silver(archive(spark, log, lake), 150)
        assert drain(archive(spark, log, lake), most=150) == [50]
        verdicts = sorted(lake.bronze.delta.to_pyarrow_table().column("verdict").to_pylist())
        silver = lake.silver.delta.count()
    judged = judge(payments, everything(log, "payments"))
    assert verdicts == sorted(each.verdict for each in judged)
    assert silver == sum(each.contributes for each in judged)


def test_of_two_archives_that_start_from_one_state_only_one_commits(spark, log, lake, tmp_path):
    send(log, flow(60, seed=7, partitions=PARTITIONS, now=datetime.now(UTC)))
    slow = archive(spark, log, lake)
    other = archive(spark, log, opened(tmp_path / "lake" / "payments"))
    other.step()
    with pytest.raises(hr.HeadraceError) as refused:
        slow.step()
    assert refused.value.code == "lake-conflict"
    assert lake.bronze.delta.count() == 60 or LakeTable(lake.bronze.uri, bronze_shape()).delta.count() == 60


def test_records_that_retention_removed_too_early_stop_the_archive_until_the_loss_is_accepted(spark, log, lake):
    from headrace.lake.counters import totals
    from headrace.log.topic import Retention

    running = archive(spark, log, lake)
    send(log, flow(30, seed=8, partitions=1, now=datetime.now(UTC)))
    running.step(10)
    log.create_topic("payments", partitions=PARTITIONS, retention=Retention(size=1))
    log.clean("payments")
    gone = log.start_offsets("payments")[0] - 10
    assert gone > 0
    with pytest.raises(hr.HeadraceError) as stopped:
        running.step()
    assert stopped.value.code == "offset-out-of-range"
    assert running.accept_loss() == gone
    running.step()
    assert totals(lake.bronze)["lost"] == gone
    assert lake.bronze.delta.count() + gone == 30


def test_a_stream_without_event_ids_has_no_copies(spark, log, tmp_path):
    from headrace.lake.counters import totals
    from headrace.spark.archive.archive import StreamArchive

    clicks = hr.stream("clicks", fields={"user": str, "at": hr.Timestamp}, event_time="at", allowed_lateness="3650d")
    log.create_topic("clicks")
    folder = tmp_path / "clicks"
    tables = Lake(
        LakeTable(str(folder / "bronze"), bronze_shape()),
        LakeTable(str(folder / "silver"), silver_shape(clicks)),
        str(folder / "staging"),
    )
    for _ in range(2):
        log.append("clicks", b'{"user":"ann","at":"2026-01-01T00:00:00Z"}')
    StreamArchive(clicks, "clicks", log, tables, spark, Later()).step()
    assert totals(tables.bronze)["admitted"] == 2
    assert [row["_event_id"] for row in tables.silver.delta.to_pyarrow_table().to_pylist()] == [
        "clicks/0/0",
        "clicks/0/1",
    ]
