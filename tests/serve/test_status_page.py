"""The page: a plain page without JavaScript, with its state in it, and nothing in it that was not escaped."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from headrace.clock import show_time
from headrace.serve import status_page as page_module
from headrace.serve.status_page import render
from headrace.status.records import FeatureSkew, LabelStatus, SkewStatus
from tests.serve.conftest import KEPT
from tests.streams import BASE


class Cells(HTMLParser):
    """Text by the place in the status that it shows."""

    def __init__(self, text):
        super().__init__()
        self.found, self.tags, self._path = {}, [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._path = dict(attrs).get("data-path")

    def handle_data(self, data):
        if self._path:
            self.found[self._path] = data
            self._path = None


def test_the_first_state_is_in_the_page_itself(world):
    world.pipeline({"id": "a", "user": "ann", "at": BASE})
    world.clock.advance("2s")
    world.serving.monitor.tick()
    answer = world.get("/")
    cells = Cells(answer.text).found
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert cells["streams/clicks/read"] == "10"
    assert sum(int(cells[f"streams/clicks/verdicts/{verdict}"]) for verdict in KEPT["verdicts"]) == 10
    assert cells["streams/clicks/rate_per_s"] == "12/s"
    assert cells["views/users/freshness_ms"] == "2.0 s"
    assert cells["lake/clicks/archived"] == "10"
    assert cells["tile_sets/clicks.by_user/state_bytes"] == "1.5 kB"
    assert '<span id="state" class="badge good">ready</span>' in answer.text


def test_every_cell_shows_something_the_status_has(world):
    world.pipeline({"id": "a", "user": "ann", "at": BASE})
    status = world.get("/status.json").json()
    for path in Cells(world.get("/").text).found:
        place = status
        for name in path.split("/"):
            assert name in place, path
            place = place[name]


def test_the_script_knows_every_format_that_a_cell_asks_for(world):
    world.pipeline()
    page = world.get("/").text
    asked = set(re.findall(r"data-format=(\w+)", page))
    script = page.split("<script>")[1]
    assert asked
    assert [kind for kind in asked if not re.search(rf"\b{kind}\b[:,]", script)] == []


def test_before_anything_is_known_the_page_says_what_is_waited_for(world):
    page = world.get("/").text
    assert "waiting for log, caught up, pipeline" in page
    assert "The pipeline has not said anything yet." in page


def test_a_pipeline_that_fell_silent_is_not_shown_as_ready(world):
    world.pipeline()
    world.clock.advance("11s")
    world.serving.monitor.tick()
    assert '<span id="state" class="badge warn">pipeline silent</span>' in world.get("/").text


def test_rows_dropped_by_the_watermark_are_an_alarm(world):
    world.pipeline()
    status = world.serving.monitor.status()
    cell = 'data-alarm="tile_sets/clicks.by_user/dropped_by_watermark"'
    assert f"{cell} class=bad" not in render(status)
    status.tile_sets["clicks.by_user"].dropped_by_watermark = 1
    assert f"{cell} class=bad" in render(status)


def test_alarms_are_told_in_sentences_on_the_page_and_in_its_twin(world):
    world.pipeline()
    assert '<ul id="alarms" role="alert"></ul>' in world.get("/").text
    alarm = {
        "stream": "clicks",
        "partition": 1,
        "kind": "late",
        "rate": 0.09,
        "usual": 0.0,
        "since": show_time(BASE),
        "says": "Partition 1 of <clicks>: 9 % are late.",
    }
    world.tell({"streams": {"clicks": {}}, "tile_sets": {}, "alarms": [alarm]})
    world.serving.monitor.tick()
    assert "<li>Partition 1 of &lt;clicks&gt;: 9 % are late.</li>" in world.get("/").text
    assert world.get("/status.json").json()["alarms"] == [alarm]


def test_the_page_says_that_what_runs_is_older_than_what_is_written(world):
    world.pipeline()
    assert '<p id="definitions" role="status"></p>' in world.get("/").text
    edited = {"older": ["spark"], "changes": [], "error": None, "says": "What runs (spark) is older: view <a> changed."}
    world.serving.monitor._log.append(world.serving.monitor._topic, json.dumps(edited).encode(), key=b"definitions")
    world.clock.advance("2s")
    world.serving.monitor.tick()
    assert ">What runs (spark) is older: view &lt;a&gt; changed.</p>" in world.get("/").text
    assert world.get("/status.json").json()["definitions"] == edited


def test_a_view_can_be_read_from_the_page_without_javascript(world):
    world.pipeline()
    page = world.get("/").text
    assert '<form action="/v1/features/users"><input name="user"' in page
    assert world.get("/v1/features/users?user=ann").status_code == 200


def test_names_are_escaped(world):
    world.tell({"streams": {"<b>&\"'": KEPT}, "tile_sets": {}})
    world.serving.monitor.tick()
    page = world.get("/").text
    assert "<b>&\"'" not in page
    assert "&lt;b&gt;&amp;" in page


def test_the_page_loads_nothing_from_elsewhere(world):
    answer = world.get("/")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert re.findall(r'(?:src|href)="(?!data:|/)', answer.text) == []


def test_the_script_looks_at_the_same_rows_as_the_page_and_in_the_same_order(world):
    script = (Path(page_module.__file__).parent / "page.html").read_text(encoding="utf-8")
    shape_of = script[script.index("const shapeOf") : script.index("const main")]
    parts = re.findall(r"\bs\.(\w+)", shape_of)
    rows: dict[str, Any] = {name: {f"{name}-row": None} for name in parts}
    rows |= {"skew": SkewStatus(features={"f": FeatureSkew()}), "labels": {"l": LabelStatus(versions={"1": {}})}}
    status = replace(world.serving.monitor.status(), **rows)
    told = json.loads(page_module._shape(status))
    assert told == [*([f"{name}-row"] for name in parts[:-2]), ["f"], [["l", "1"]]]
