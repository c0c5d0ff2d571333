"""The picture of an incident."""

from __future__ import annotations

from xml.etree import ElementTree

from headrace.drift import DriftAlarm, plot
from headrace.drift.incident import opened
from tests.drift.test_watcher import CHANGE, HOURS, only, watched
from tests.drift.worlds import amounts

SVG = "{http://www.w3.org/2000/svg}"


def test_an_incident_is_drawn_with_its_band_its_beginning_and_words():
    incident = only(watched(amounts(HOURS, moved=CHANGE)))
    root = ElementTree.fromstring(plot(incident))
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text == f"fraud version 3: {incident.moved.series}"
    assert root.find(f"{SVG}desc").text.startswith(incident.moved.says)
    assert len(root.find(f"{SVG}polyline").get("points").split()) == len(incident.moved.evidence)
    assert len(root.find(f"{SVG}polygon").get("points").split()) == 2 * len(incident.moved.evidence)
    assert len(root.findall(f"{SVG}line")) == 2


def test_another_series_of_it_can_be_drawn():
    incident = only(watched(amounts(HOURS, moved=CHANGE)))
    other = incident.explaining[0].series
    assert other in plot(incident, other)


def test_names_are_escaped_and_nothing_to_draw_is_still_a_picture():
    bare = opened("<b>", 1, DriftAlarm("mean of a&b", 0, 1, effect=1.0, before=0.0, now=1.0, times_least=5.0))
    assert "NaN" not in plot(bare)
    ElementTree.fromstring(plot(bare))
