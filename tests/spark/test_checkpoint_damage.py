"""A checkpoint that cannot be loaded: it is found out before Spark is asked, and another run goes on."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import pytest

from headrace.config.config import Names, names, parse
from headrace.errors import DataError, MachineError
from headrace.log import MemoryLog
from headrace.log.record import Message
from headrace.spark.late.late_lane import _read as read_late
from headrace.spark.late.late_lane import late_file
from headrace.spark.pipeline.checkpoint_damage import ASIDE, Fill, damage_of, renew
from headrace.spark.pipeline.runs import Runs, checkpoint_of
from headrace.spark.progress import batch_end
from headrace.testing import FakeClock
from headrace.tiles.changelog import FILLED
from headrace.topics import RUNS
from tests.spark.test_runs import TILES, begun

SOURCE = TILES.stream.name


def write(file: Path, text: str) -> None:
    """A file with the sums that Spark keeps beside it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    sums = struct.pack(">I", 512) + b"".join(
        struct.pack(">I", zlib.crc32(text.encode()[at : at + 512])) for at in range(0, len(text), 512)
    )
    file.with_name(f".{file.name}.crc").write_bytes(b"crc\0" + sums)


def checkpoint(folder: Path, done: int = 2, begun: int = 3) -> Path:
    """A checkpoint of a query that has ended some batches and begun one more, as Spark writes it."""
    write(folder / "metadata", json.dumps({"id": "496f80c3"}))
    for batch in range(begun + 1):
        write(folder / "offsets" / str(batch), f'v1\n{{"conf":{{"a":"{"x" * 600}"}}}}\n{{"0": {batch * 10}}}')
    for batch in range(done + 1):
        write(folder / "commits" / str(batch), 'v2\n{"nextBatchWatermarkMs":0}')
    return folder


@pytest.mark.parametrize(("done", "begun"), [(2, 3), (2, 2), (0, 0), (0, 1)])
def test_a_whole_checkpoint_has_no_damage(tmp_path, done, begun):
    assert damage_of(checkpoint(tmp_path, done, begun)) is None
    assert damage_of(tmp_path / "none") is None


FILES = ["offsets/3", "offsets/2", "commits/2", "metadata"]
CUTS = {"empty": b"", "cut off": b'v1\n{"conf"', "garbage": b"\x00\xff\x17garbage"}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())
@pytest.mark.parametrize("summed", [True, False])
def test_a_file_that_is_cut_off_is_damage_with_its_sums_and_without(tmp_path, file, cut, summed):
    place = checkpoint(tmp_path) / file
    place.write_bytes(cut)
    if not summed:
        place.with_name(f".{place.name}.crc").unlink()
    assert (damage_of(tmp_path) or "").startswith(file)


def test_a_file_that_is_missing_or_has_other_numbers_is_damage(tmp_path):
    place = checkpoint(tmp_path / "changed") / "offsets/3"
    place.write_text(place.read_text().replace("30", "31"))
    assert damage_of(tmp_path / "changed") == "offsets/3 is not what was written"
    (checkpoint(tmp_path / "missing") / "offsets/2").unlink()
    assert damage_of(tmp_path / "missing") == "offsets/2 cannot be read"


def test_offsets_that_are_cut_off_while_the_query_runs_are_an_error_with_a_code(tmp_path):
    (checkpoint(tmp_path) / "offsets/3").write_bytes(b"v1")
    with pytest.raises(DataError) as caught:
        batch_end(tmp_path, 3)
    assert caught.value.code == "checkpoint-damaged"


def test_how_far_a_late_lane_has_come_is_not_known_when_its_file_is_damaged(tmp_path):
    file = late_file(tmp_path)
    write(file, '{"0": 7}')
    assert read_late(file) == {0: 7}
    file.write_text('{"0"')
    assert read_late(file) == {}


class Shop:
    """A log with ten events, of which retention has removed some, and the runs of a tile set."""

    def __init__(self, folder: Path, removed: int = 0) -> None:
        self.named: Names = names(parse('[project]\nname = "shop"', folder, {}))
        self.log = MemoryLog(clock=FakeClock())
        self.log.create_topic(self.named.topic(RUNS), compacted=True)
        self.log.create_topic(SOURCE)
        self.log.append_batch(SOURCE, [Message(b"{}") for _ in range(10)])
        if removed:
            self.log.start_offsets = lambda topic: {0: removed if topic == SOURCE else 0}  # type: ignore[method-assign]
        self.runs = Runs(self.log, self.named.topic(RUNS))
        self.filled: list[str] = []
        self.fill: Fill = self._fill

    def damage(self, run: str) -> Path:
        """Cut off the offsets of a run."""
        place = checkpoint(self.named.path("checkpoints", checkpoint_of(TILES, run)))
        (place / "offsets/3").write_bytes(b"")
        return place

    def _fill(self, tile_set):
        made = begun("2", FILLED)
        self.runs.say(made)
        self.filled.append(tile_set.id)
        return made

    def renew(self):
        return renew(TILES, self.named, self.log, self.runs, self.fill)


def test_a_run_whose_checkpoint_is_whole_goes_on(tmp_path):
    shop = Shop(tmp_path)
    checkpoint(shop.named.path("checkpoints", checkpoint_of(TILES, "1")))
    assert shop.renew() is None


def test_a_damaged_run_reads_the_log_again_when_that_has_everything(tmp_path):
    shop = Shop(tmp_path)
    place = shop.damage("1")
    assert shop.renew().says == (
        f"The checkpoint of {TILES.id} could not be loaded (offsets/3 is not what was written): "
        "run 1 reads the log again, from where it began."
    )
    assert not place.exists()
    assert (shop.named.path("checkpoints", ASIDE) / place.name / "offsets/2").exists()
    assert (shop.runs.serving(TILES), shop.filled) == (None, [])
    assert shop.renew() is None


def test_a_damaged_run_whose_records_are_gone_is_filled_anew_from_the_lake(tmp_path):
    shop = Shop(tmp_path, removed=3)
    shop.damage("1")
    assert shop.renew().how == "run 2 was filled from the lake and serves instead"
    assert (shop.runs.serving(TILES).run, shop.filled) == ("2", [TILES.id])


def test_a_run_that_was_filled_already_serves_instead_of_a_damaged_one(tmp_path):
    shop = Shop(tmp_path, removed=3)
    shop.damage("1")
    shop.runs.say(begun("2", FILLED))
    assert shop.renew().how == "run 2, which was filled from the lake, serves instead"
    assert (shop.runs.serving(TILES).run, shop.filled) == ("2", [])


def test_a_damaged_run_that_nothing_can_replace_is_an_error_with_both_reasons(tmp_path):
    shop = Shop(tmp_path, removed=3)
    place = shop.damage("1")

    def fail(_):
        raise DataError("lake-empty", "The lake has nothing of it.", hint="The archive fills it.")

    shop.fill = fail
    with pytest.raises(MachineError) as caught:
        shop.renew()
    error = caught.value
    assert (error.code, error.exit_code, error.hint) == ("checkpoint-damaged", 3, "The archive fills it.")
    assert error.got == "offsets/3 is not what was written; The lake has nothing of it."
    assert place.exists()


def test_a_damaged_run_that_only_follows_reads_again_what_it_had_read(tmp_path):
    shop = Shop(tmp_path)
    checkpoint(shop.named.path("checkpoints", checkpoint_of(TILES, "1")))
    shop.runs.say(begun("2", FILLED))
    place = shop.damage("2")
    assert shop.renew() is None
    assert not place.exists()
    assert {run: held.stage for run, held in shop.runs.of(TILES).items()} == {"2": FILLED}
