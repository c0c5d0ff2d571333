"""Samples of what was served, after a crash: those of an append are there whole or not at all, and none twice.

What waits in the buffer is lost with its process.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headrace as hr
from headrace.config.config import Names
from headrace.log import EmbeddedLog
from headrace.plan.build import build
from headrace.read.reader import ViewValues
from headrace.serve.served_samples import Samples
from headrace.testing import FakeClock
from tests.faults.image import CrashImages, at_each_point
from tests.streams import BASE

clicks = hr.stream("clicks", fields={"user": str, "shop": str, "at": hr.Timestamp}, event_time="at")
VIEWS = {by: hr.view(f"by_{by}", clicks, by=by, features={"clicks_1h": hr.count(over="1h")}) for by in ("user", "shop")}
PLAN, NAMES = build(VIEWS.values()), Names("", "shop", Path("data"))
APPENDS = [["user", "user"], ["shop"], ["user"], ["shop", "shop"]]
"""The views of some reads; the reads of an append are of one view."""


def opened(folder):
    log = EmbeddedLog(folder, clock=FakeClock(BASE))
    for view in VIEWS.values():
        log.create_topic(NAMES.topic(f"served.{view.name}"))
    return log


def offer(samples, appends):
    """Hand over the reads of some appends, and append them."""
    for reads in appends:
        for by in reads:
            answer = ViewValues(
                VIEWS[by].name, {by: "a"}, {"clicks_1h": 1}, BASE, None, None, False, True, "micro-batch"
            )
            samples.offer(VIEWS[by], answer, None)
    samples.step()


def served(log):
    """The view of every sample, by topic."""
    found = {}
    for by, view in VIEWS.items():
        records = log.read(NAMES.topic(f"served.{view.name}"), 0, 0)
        assert {json.loads(record.value)["view"] for record in records} <= {view.name}
        found[by] = len(records)
    return found


def counted(appends):
    return {by: sum(reads.count(by) for reads in appends) for by in VIEWS}


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder, acknowledged = tmp_path_factory.mktemp("samples"), list[int]()

    def acknowledge(kept):
        acknowledged.append(kept)

    made = CrashImages(folder / "world", folder / "images", "samples", known=lambda: len(acknowledged))
    with opened(folder / "world") as log:
        samples = Samples(PLAN, log, NAMES, 1.0, tell=acknowledge, faults=made)
        offer(samples, APPENDS[:2])
        offer(samples, APPENDS[2:])
        assert served(log) == counted(APPENDS)
    assert acknowledged == [len(reads) for reads in APPENDS]
    return made


@at_each_point("samples")
def test_samples_of_an_append_are_there_whole_or_not_at_all(images, name):
    assert len(images.of(name)) == len(APPENDS)
    for taken in images.of(name):
        there = taken.known + name.endswith(".after")
        with opened(taken.folder) as log:
            assert served(log) == counted(APPENDS[:there]), taken
            offer(Samples(PLAN, log, NAMES, 1.0), APPENDS[there:])
            assert served(log) == counted(APPENDS), taken
