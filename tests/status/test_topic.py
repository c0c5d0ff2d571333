"""The status topic: what is published there, how often, and what is read back."""

from __future__ import annotations

import json

import pytest

from headrace.clock import SECOND
from headrace.errors import DiskFullError
from headrace.log import EmbeddedLog, MemoryLog
from headrace.status.records import (
    AuditStatus,
    DefinitionStatus,
    LaneStatus,
    LateStatus,
    PipelineStatus,
    ProcessStatus,
    ServeStatus,
    SkewStatus,
    TileSetStatus,
)
from headrace.status.topic import StatusPublisher, last_records, read_status
from headrace.testing import FakeClock


@pytest.fixture
def log() -> MemoryLog:
    made = MemoryLog()
    made.create_topic("status", compacted=True)
    return made


def publish(log, *records, process=None):
    for record in records:
        StatusPublisher(log, "status", FakeClock(7), process=process).publish(record)


def written(log):
    """The newest record, as JSON."""
    (record,) = log.read("status", 0, log.end_offsets("status")[0] - 1, limit=1)
    return record.key.decode(), json.loads(record.value)


def test_the_last_record_of_each_component_is_found_however_long_ago_it_was_published(log):
    publish(log, ServeStatus())
    for number in range(300):
        publish(log, PipelineStatus(following={"tiles": f"{number}"}))
    records = read_status(log, "status", PipelineStatus, ServeStatus, LateStatus)
    assert records.get(PipelineStatus).following == {"tiles": "299"}
    assert (records.get(ServeStatus).at, records.get(LateStatus)) == (7, None)
    assert sorted(records.arrivals) == ["pipeline", "serve"]


def test_the_last_record_is_found_after_the_topic_was_cleaned(tmp_path):
    with EmbeddedLog(tmp_path) as log:
        log.create_topic("status", compacted=True)
        for number in range(10):
            publish(log, PipelineStatus(following={"tiles": f"{number}"}))
        log.clean("status")
        assert read_status(log, "status", PipelineStatus).get(PipelineStatus).following == {"tiles": "9"}


def test_a_log_without_the_topic_has_no_records(tmp_path):
    assert last_records(EmbeddedLog(tmp_path), "status", ["pipeline"]) == {}
    assert read_status(EmbeddedLog(tmp_path), "status", PipelineStatus).arrived_at(PipelineStatus) == 0


def test_the_json_has_the_names_of_the_fields_and_partitions_as_text(log):
    publish(log, LateStatus(lanes={"tiles": {"1": LaneStatus(run="1", positions={0: 5, -1: 2})}}))
    lane = {"run": "1", "passes": 0, "events": 0, "tiles": 0, "delay_seconds": None, "as_of": None, "error": None}
    lane["positions"] = {"0": 5, "-1": 2}
    expected = {"component": "late", "at": 7, "alarms": [], "lanes": {"tiles": {"1": lane}}}
    assert written(log) == ("late", expected)


def test_what_nobody_knows_yet_is_left_out_of_the_json(log):
    publish(log, PipelineStatus(tile_sets={"tiles": TileSetStatus(batch=None)}))
    assert {"batch_ms", "state_rows", "watermark"}.isdisjoint(written(log)[1]["tile_sets"]["tiles"])
    publish(log, AuditStatus())
    assert written(log)[1]["skew"] == {}
    assert read_status(log, "status", AuditStatus).get(AuditStatus).skew == SkewStatus()


def test_a_process_has_a_key_of_its_own_and_definitions_have_no_stamp(log):
    publish(log, ProcessStatus(), process="archive")
    assert written(log) == ("process.archive", {"component": "archive", "at": 7, "alarms": [], "components": {}})
    publish(log, ProcessStatus(), process="spark")
    assert read_status(log, "status", ProcessStatus).get(ProcessStatus).component == "spark"
    publish(log, DefinitionStatus(says="older"))
    assert written(log) == ("definitions", {"says": "older"})


@pytest.mark.parametrize("value", [b"{broken", b"[1]", b'{"at":"noon"}', b"\xff", b'{"streams":{"clicks":7}}'])
def test_a_record_that_cannot_be_read_is_as_if_it_were_not_there(log, value, caplog):
    log.append("status", value, key=b"pipeline")
    assert read_status(log, "status", PipelineStatus).get(PipelineStatus) is None
    assert "status cannot be read" in caplog.text


def test_what_is_unknown_or_missing_in_a_record_does_no_harm(log):
    log.append("status", b'{"tile_sets":{"tiles":{"warming":true,"colour":1}},"more":[]}', key=b"pipeline")
    status = read_status(log, "status", PipelineStatus).get(PipelineStatus)
    assert (status.tile_sets["tiles"].warming, status.streams) == (True, {})


def test_a_record_is_due_at_once_then_after_its_pause_and_when_the_clock_was_put_back(log):
    clock = FakeClock(10 * SECOND)
    publisher = StatusPublisher(log, "status", clock, every=SECOND)
    assert publisher.is_due()
    publisher.publish(PipelineStatus())
    assert not publisher.is_due()
    clock.advance("1s")
    assert publisher.is_due()
    later = FakeClock(9 * SECOND)
    assert StatusPublisher(log, "status", later, begun=10 * SECOND).is_due()
    assert not StatusPublisher(log, "status", later, begun=9 * SECOND).is_due()


def test_of_failures_in_a_row_the_first_is_logged_and_others_are_raised(log, caplog):
    publisher = StatusPublisher(log, "status", FakeClock(1))
    for _ in range(2):
        with publisher.tolerate(DiskFullError):
            raise DiskFullError("disk-full", "The disk is full.")
    assert len(caplog.records) == 1
    with pytest.raises(ZeroDivisionError), publisher.tolerate(DiskFullError):
        raise ZeroDivisionError
