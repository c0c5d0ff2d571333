"""A checkpoint that is handed from one source to another: after a crash in between either can go on from it.

Spark keeps a sum beside each file and refuses one that does not fit. So no sum may be there for a file that is new.
"""

from __future__ import annotations

import pytest

from headrace.spark.progress import batch_end, last_batch_end, translate
from tests.faults.image import CrashImages, at_each_point, copy

ENDS = {0: {0: 3, 1: 4}, 1: {0: 7, 1: 5}, 2: {0: 9, 1: 9}}
DONE = 1
"""The last batch that was committed; a later one was begun."""


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint")
    world = folder / "world"
    for kind in ("offsets", "commits"):
        (world / kind).mkdir(parents=True)
    for batch, (first, second) in ((batch, each.values()) for batch, each in ENDS.items()):
        (world / "offsets" / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"0":{first},"1":{second}}}')
        (world / "offsets" / f".{batch}.crc").write_text("sum")
        if batch <= DONE:
            (world / "commits" / str(batch)).write_text("v1\n{}")
    made = CrashImages(world, folder / "images", "checkpoint")
    translate(world, "payments", made)
    return made


@at_each_point("checkpoint")
@pytest.mark.parametrize("topic", [None, "payments"])
def test_it_says_the_same_offsets_to_whichever_source_goes_on(images, tmp_path, name, topic):
    for taken in images.of(name):
        mine = tmp_path / f"{taken.turn}"
        copy(taken.folder, mine)
        translate(mine, topic)
        assert last_batch_end(mine) == ENDS[DONE], taken
        for batch in (DONE, 2):
            assert batch_end(mine, batch) == ENDS[batch], taken
            said = (mine / "offsets" / str(batch)).read_text("utf-8").splitlines()[2]
            assert said.startswith('{"0"' if topic is None else '{"payments"'), taken
            assert not (mine / "offsets" / f".{batch}.crc").exists(), taken
