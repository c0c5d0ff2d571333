"""Modes: which is planned, how many slots it takes, and a checkpoint that both sources can read."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import headrace as hr
from headrace.config.config import parse
from headrace.config.settings import LogSettings
from headrace.errors import ConfigError
from headrace.log import MemoryLog
from headrace.plan.build import build
from headrace.spark.pipeline.slots import MOST, OTHERS, slots
from headrace.spark.progress import batch_end, last_batch_end, translate

clicks = hr.stream("clicks", fields={"id": str, "user": str, "at": hr.Timestamp}, event_time="at", event_id="id")
users = hr.view("users", clicks, by="user", features={"n": hr.count(over="1h")})
everyone = hr.view("everyone", clicks, by=(), features={"n": hr.count(over="1h")})
CONFIG = parse('[project]\nname = "shop"\n', Path("shop"), {})


@pytest.mark.parametrize(
    ("mode", "log", "planned"),
    [
        ("real-time", "kafka", "real-time"),
        ("real-time", "embedded", "micro-batch"),
        ("micro-batch", "kafka", "micro-batch"),
    ],
)
def test_a_tile_set_runs_in_real_time_where_the_log_is_kafka(mode, log, planned):
    (tiles,) = build([users], mode, log).tile_sets
    assert tiles.mode == planned
    assert (tiles.mode_reason is None) == (mode == planned)


def test_what_cannot_run_in_real_time_runs_beside_it():
    registered = hr.stream("orders", fields={"id": str, "at": hr.Timestamp}, event_time="at", format="confluent-avro")
    orders = hr.view("orders", registered, by="id", features={"n": hr.count(over="1h")})
    modes = {tiles.id: tiles.mode for tiles in build([users, orders], "real-time").tile_sets}
    assert modes == {"clicks.by_user": "real-time", "orders.by_id": "micro-batch"}


def test_slots_are_enough_for_every_real_time_run_and_the_one_that_follows_it():
    config = dataclasses.replace(CONFIG, log=LogSettings(partitions=3))
    assert slots(build([users]), config) == OTHERS
    assert slots(build([users], "real-time"), config) == OTHERS + 2 * (3 + 1)
    assert slots(build([users, everyone], "real-time"), config) == OTHERS + 4 * (3 + 1)
    config = dataclasses.replace(CONFIG, log=LogSettings(partitions=1))
    assert slots(build([users], "real-time"), config) == OTHERS + 2


def test_a_topic_that_is_there_has_its_own_number_of_partitions():
    log = MemoryLog()
    log.create_topic("clicks", partitions=5)
    assert slots(build([users], "real-time"), CONFIG, log) == OTHERS + 2 * (5 + 1)


def test_more_slots_than_a_machine_can_have_are_refused_before_anything_starts():
    with pytest.raises(ConfigError) as refused:
        slots(build([users], "real-time"), dataclasses.replace(CONFIG, log=LogSettings(partitions=MOST)))
    assert refused.value.code == "too-many-slots"
    assert "log.partitions" in str(refused.value.hint)


OURS, SPARKS = '{"0":5,"1":7}', '{"clicks":{"0":5,"1":7}}'


def checkpoint(folder: Path, offsets: dict[int, str], committed: int) -> Path:
    for name in ("offsets", "commits"):
        (folder / name).mkdir()
    for number, text in offsets.items():
        (folder / "offsets" / str(number)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{text}')
        (folder / "offsets" / f".{number}.crc").write_bytes(b"sum")
    for number in range(committed + 1):
        (folder / "commits" / str(number)).write_text("v2\n{}")
    return folder


@pytest.mark.parametrize("written", [OURS, SPARKS])
def test_offsets_are_read_as_either_source_writes_them(tmp_path, written):
    assert last_batch_end(checkpoint(tmp_path, {0: written}, 0)) == {0: 5, 1: 7}


def test_a_checkpoint_is_translated_and_back_with_a_batch_that_was_only_begun(tmp_path):
    folder = checkpoint(tmp_path, {0: '{"0":1,"1":1}', 1: OURS, 2: '{"0":9,"1":9}'}, 1)
    translate(folder, "clicks")
    texts = [(folder / "offsets" / str(n)).read_text().splitlines() for n in range(3)]
    assert [lines[2] for lines in texts] == ['{"0":1,"1":1}', SPARKS, '{"clicks":{"0":9,"1":9}}']
    assert [lines[:2] for lines in texts] == [["v1", '{"batchWatermarkMs":0}']] * 3
    assert sorted(file.name for file in (folder / "offsets").glob(".*")) == [".0.crc"]
    assert batch_end(folder, 2) == {0: 9, 1: 9}
    translate(folder, None)
    assert (folder / "offsets" / "1").read_text().splitlines()[2] == OURS


def test_a_query_that_has_not_begun_has_nothing_to_translate(tmp_path):
    translate(tmp_path / "none", "clicks")
    assert not (tmp_path / "none").exists()
