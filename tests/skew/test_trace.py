"""`headrace trace`: an event is its id and its time."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from headrace import project
from headrace.cli.init import create
from headrace.clock import DAY, HOUR, show_time
from headrace.config.config import names
from headrace.lake.files import DayWriter
from headrace.lake.layout import bronze_shape, silver_shape
from headrace.lake.location import open_lake
from headrace.log.embedded.log import EmbeddedLog
from headrace.topics import create as create_topics
from headrace.topics import topics
from tests.cli.asking import asking
from tests.skew.world import payments, plan
from tests.streams import BASE

PLACES = {(0, "admitted"): BASE, (1, "duplicate"): BASE, (2, "admitted"): BASE + DAY}
"""By offset and verdict, when the event happened: two copies of one event, and another event of the same id."""


@pytest.fixture
def shop(tmp_path):
    create(tmp_path)
    (tmp_path / "features.py").write_text("from tests.skew.world import cards, payments\n")
    config = project.load(tmp_path).config
    create_topics(EmbeddedLog(names(config).path("log")), topics(plan, names(config), 1))
    lake = open_lake(config, payments)
    bronze, silver = DayWriter(lake.bronze.uri, bronze_shape()), DayWriter(lake.silver.uri, silver_shape(payments))
    for (offset, verdict), moment in PLACES.items():
        place = {"partition": 0, "offset": offset, "arrived_at": moment + HOUR, "event_time": moment, "event_id": "p1"}
        bronze.add(pa.RecordBatch.from_pylist([place | {"verdict": verdict}], schema=bronze_shape().schema))
        if verdict == "admitted":
            own = {"id": "p1", "card": "a", "at": moment, "_partition": 0, "_offset": offset, "_event_id": "p1"}
            own |= {"_arrived_at": moment + HOUR, "_late": False, "_closed": False, "_identity": 1, "_payload": 1}
            shape = silver_shape(payments).schema
            silver.add(pa.RecordBatch.from_pylist([own], schema=shape))
    lake.bronze.commit(bronze.close(), {})
    lake.silver.commit(silver.close(), {})
    return tmp_path


def test_two_events_of_one_id_and_different_times_are_no_copies_of_each_other(shop, capsys):
    trace = asking(capsys, "trace")
    code, out, _ = trace("p1", "--project", str(shop), "--json")
    (stream,) = json.loads(out)["streams"]
    first, second = stream["events"]
    assert code == 0
    assert [first["event_time"], second["event_time"]] == [show_time(BASE), show_time(BASE + DAY)]
    assert [[copy["offset"] for copy in each["copies"]] for each in (first, second)] == [[0, 1], [2]]
    assert [[tile["tile"] for tile in each["tiles"]] for each in (first, second)] == [
        [show_time(BASE)],
        [show_time(BASE + DAY)],
    ]
    _, out, _ = trace("p1", "--project", str(shop))
    assert "p1 in payments is the id of 2 events of different times" in out
    assert f"p1 in payments at {show_time(BASE)}: 2 copies" in out
    assert f"p1 in payments at {show_time(BASE + DAY)}: 1 copy" in out
