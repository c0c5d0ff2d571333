"""The files of a checkpoint that Headrace itself writes: offsets, counts, and the progress of the late lane."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.log import EmbeddedLog, Message
from headrace.spark.durable_counts import Tally
from headrace.spark.late.late_lane import LateLane, LateLaneRun, late_file
from headrace.spark.pipeline.checkpoint_damage import damage_of
from headrace.spark.progress import batch_end, forget_cut_off_first, last_batch, last_batch_end, translate
from headrace.spark.source import OPTIONS, SCHEMA, LogSource, SourceOptions, StreamReader
from headrace.testing import FakeClock
from tests.frozen.shop import BASE, TOPIC, by_card

METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1735689600000,"conf":{}}'
OURS = '{"0":17,"1":4}'
SPARKS = '{"eu.payments":{"0":17,"1":4}}'


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint as Spark leaves it: two committed batches, and one that was begun."""
    for folder in ("offsets", "commits", "state"):
        (tmp_path / folder).mkdir()
    for batch in (0, 1, 2):
        (tmp_path / "offsets" / str(batch)).write_text("\n".join(["v1", METADATA, OURS]))
        (tmp_path / "offsets" / f".{batch}.crc").write_bytes(b"crc\0")
    for batch in (0, 1):
        (tmp_path / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    (tmp_path / "metadata").write_text('{"id":"0"}')
    return tmp_path


def list_files(folder):
    """Every file below a folder with its content."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def test_the_offsets_of_a_batch_are_read_in_both_forms(checkpoint):
    assert (last_batch(checkpoint), batch_end(checkpoint, 2)) == (1, {0: 17, 1: 4})
    assert last_batch_end(checkpoint) == {0: 17, 1: 4}
    (checkpoint / "offsets" / "1").write_text("\n".join(["v1", METADATA, SPARKS]))
    assert last_batch_end(checkpoint) == {0: 17, 1: 4}
    assert damage_of(checkpoint / "nothing") is None


def test_a_change_of_mode_rewrites_the_last_offsets_and_nothing_else(checkpoint):
    before = list_files(checkpoint)
    translate(checkpoint, "eu.payments")
    after = list_files(checkpoint)
    assert after["offsets/1"] == after["offsets/2"] == f"v1\n{METADATA}\n{SPARKS}".encode()
    assert sorted(before.keys() - after.keys()) == ["offsets/.1.crc", "offsets/.2.crc"]
    assert sorted(name for name in after if after[name] != before[name]) == ["offsets/1", "offsets/2"]
    translate(checkpoint, None)
    assert list_files(checkpoint)["offsets/2"] == f"v1\n{METADATA}\n{OURS}".encode()


def test_a_first_batch_that_was_cut_off_leaves_no_state(checkpoint):
    forget_cut_off_first(checkpoint)
    assert (checkpoint / "state").is_dir()
    for file in (checkpoint / "offsets").iterdir():
        file.unlink()
    forget_cut_off_first(checkpoint)
    assert not (checkpoint / "state").exists()


def test_dropped_rows_and_the_late_lane_are_noted_in_the_form_that_they_had(tmp_path):
    tally = Tally(tmp_path / "headrace" / "dropped.json")
    tally.add(0, {"late": 2})
    tally.add(1, {"late": 3})
    lane = LateLane(by_card, LateLaneRun("1", None, 1), TOPIC, late_file(tmp_path))
    lane.note({0: 5, -1: 9})
    assert list_files(tmp_path) == {
        "headrace/dropped.json": b'{"batch": 1, "totals": {"late": 5}, "before": {"late": 2}}',
        "headrace/late.json": b'{"0": 5, "-1": 9}',
    }


def test_the_source_for_spark_has_the_name_the_options_and_the_columns_that_it_had(golden):
    golden("frozen/log_source", "\n".join([LogSource.name(), *OPTIONS, SCHEMA]))


def test_the_source_for_spark_plans_the_offsets_that_it_planned(tmp_path):
    with EmbeddedLog(tmp_path, clock=FakeClock(BASE)) as log:
        log.create_topic("payments", partitions=2)
        log.append_batch("payments", [Message(b"{}")] * 5, partition=0)
        log.append_batch("payments", [Message(b"{}")] * 3, partition=1)
    options = {"path": str(tmp_path), "topic": "payments", "recordsPerSlice": "2"}
    reader = StreamReader(SourceOptions(options))
    end = reader.reportLatestOffset()
    assert (reader.initialOffset(), end) == ({"0": 0, "1": 0}, {"0": 5, "1": 3})
    tasks: Any = reader.partitions({"0": 1, "1": 0}, end)
    slices = [(each.partition, each.start, each.end) for each in tasks]
    assert slices == [(0, 1, 3), (0, 3, 5), (1, 0, 2), (1, 2, 3)]
    reader.stop()
