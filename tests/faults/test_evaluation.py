"""Evaluation after a crash: figures and how far they go are kept together, and the next look says what it should."""

from __future__ import annotations

import pytest

from headrace import project
from headrace.config.config import names
from headrace.evaluation import pass_table
from headrace.evaluation.cells import Cells
from headrace.evaluation.evaluation_pass import take_a_look
from headrace.log import EmbeddedLog
from headrace.testing import FakeClock
from tests.evaluation.shop import Shop, by_id
from tests.evaluation.test_evaluation_pass import same
from tests.faults.image import CrashImages, at_each_point

pytestmark = pytest.mark.spark


def figures(config):
    return {cell: each.sums for cell, each in Cells(config, by_id).newest().items()}


@pytest.fixture(scope="module")
def images(spark, tmp_path_factory):
    """The second look, after which the table is tidied; what it should say is known with each image."""
    folder = tmp_path_factory.mktemp("evaluation")
    shop = Shop(folder / "world", spark)
    for number in range(4):
        shop.predict(f"p{number}", 0.2 + 0.2 * number, card="ab"[number % 2])
    shop.label(1, "p1", True)
    shop.archive()
    shop.look()
    shop.clock.advance("2h")
    shop.predict("p9", 0.9)
    shop.label(2, "p2", False)
    shop.label(3, "p1", False)
    shop.archive()
    made = CrashImages(folder / "world", folder / "images", "looks", known=shop.clock.now)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pass_table, "TIDIED", 2)
        take_a_look(spark, shop.config, shop.log, by_id, shop.clock, made)
    same(shop.cells(), shop.meant())
    return shop, made


@at_each_point("looks")
def test_the_next_looks_say_what_a_plain_reading_says(images, spark, name):
    shop, made = images
    (taken,) = made.of(name)
    config, clock = project.load(taken.folder).config, FakeClock(taken.known)
    with EmbeddedLog(names(config).path("log"), clock=clock) as log:
        if name == "looks.commit.before":
            assert Cells(config, by_id).looks == 1
            take_a_look(spark, config, log, by_id, clock)
        same(figures(config), shop.meant(until=taken.known))
        clock.advance("8h")
        take_a_look(spark, config, log, by_id, clock)
        same(figures(config), shop.meant(until=clock.now()))
        assert Cells(config, by_id).looks == 3
