"""A checkpoint that cannot be loaded: it is found out before Spark is asked, and another run goes on."""

from __future__ import annotations

import json
import shutil
import struct
import zipfile
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from headrace import project
from headrace.cli.init import create
from headrace.config.config import Names, names, parse
from headrace.errors import DataError, MachineError
from headrace.log import MemoryLog
from headrace.log.record import Message
from headrace.spark.late.late_lane import _read as read_late
from headrace.spark.late.late_lane import late_file
from headrace.spark.pipeline.checkpoint_damage import ASIDE, Fill, damage_of, renew
from headrace.spark.pipeline.pipeline import Pipeline
from headrace.spark.pipeline.runs import Runs, checkpoint_of
from headrace.spark.pipeline.state_damage import note_failure
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


STORE = "state/0/0"
TYPES = '{"type":"struct","fields":[]}'
SPARK_SCHEMA = f"\0\2v2\0\0\0\1\0{chr(len(TYPES))}{TYPES}\0\0\0\1\0{chr(len(TYPES))}{TYPES}"
"""As Java writes the schemas of keys and values: a count of texts, and each with its length."""


def stateful(folder: Path, snapshots: tuple[int, ...] = ()) -> Path:
    """A checkpoint with the state of one operator: a changelog for each batch, and a snapshot for some versions."""
    checkpoint(folder, done=2, begun=2)
    write(folder / "state/0/_metadata/metadata", "v1\n{}")
    write(folder / STORE / "_metadata/schema", SPARK_SCHEMA)
    for batch in range(3):
        ids = {"nextBatchWatermarkMs": 0, "stateUniqueIds": {"0": [[f"id{batch}"]]}}
        write(folder / "commits" / str(batch), f"v2\n{json.dumps(ids)}")
        write(folder / STORE / f"{batch + 1}_id{batch}.changelog", f"changes {batch}")
    for version in snapshots:
        write(folder / STORE / "SSTs" / f"{version}.sst", "rows")
        tables = {"sstFiles": [{"dfsSstFileName": f"{version}.sst", "sizeBytes": 4}]}
        with zipfile.ZipFile(folder / STORE / f"{version}_id{version - 1}.zip", "w") as snapshot:
            snapshot.writestr("MANIFEST", "files")
            snapshot.writestr("metadata", f"v1\n{json.dumps(tables)}")
    return folder


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.parametrize("snapshots", [(), (1,), (2,), (1, 3)])
def test_state_that_is_whole_is_no_damage(tmp_path, snapshots):
    assert damage_of(stateful(tmp_path, snapshots)) is None


@pytest.mark.parametrize("file", ["3_id2.changelog", "2_id1.changelog", "1_id0.changelog", "_metadata/schema"])
@pytest.mark.parametrize(("harm", "says"), [(cut_off, "is not what was written"), (Path.unlink, "is missing")])
def test_a_state_file_that_is_cut_off_or_missing_is_damage(tmp_path, file, harm, says):
    harm(stateful(tmp_path) / STORE / file)
    assert damage_of(tmp_path) == f"{STORE}/{file} {says}"


@pytest.mark.parametrize(
    "kept", [3, 5, 7, 9, 20, 8 + len(TYPES), 10 + len(TYPES), 12 + len(TYPES), len(SPARK_SCHEMA) - 1]
)
def test_a_schema_that_is_cut_off_with_its_sums_is_damage(tmp_path, kept):
    schema = stateful(tmp_path) / STORE / "_metadata/schema"
    schema.write_text(SPARK_SCHEMA[:kept])
    schema.with_name(".schema.crc").unlink()
    assert damage_of(tmp_path) == f"{STORE}/_metadata/schema is not what was written"


def test_state_that_is_gone_altogether_is_damage(tmp_path):
    shutil.rmtree(stateful(tmp_path) / "state")
    assert damage_of(tmp_path) == "state/0/_metadata/metadata is missing"


def test_changelogs_up_to_a_snapshot_that_is_whole_are_not_needed(tmp_path):
    store = stateful(tmp_path, snapshots=(2,)) / STORE
    for name in ("1_id0.changelog", "2_id1.changelog"):
        (store / name).unlink()
    assert damage_of(tmp_path) is None
    (store / "3_id2.changelog").unlink()
    assert damage_of(tmp_path) == f"{STORE}/3_id2.changelog is missing"


@pytest.mark.parametrize("file", ["2_id1.zip", "SSTs/2.sst"])
@pytest.mark.parametrize("harm", [cut_off, Path.unlink])
def test_a_damaged_snapshot_is_damage_unless_changelogs_replace_it(tmp_path, file, harm):
    store = stateful(tmp_path, snapshots=(2,)) / STORE
    harm(store / file)
    assert damage_of(tmp_path) is None
    (store / "2_id1.changelog").unlink()
    assert damage_of(tmp_path) == f"{STORE}/2_id1.changelog is missing"


REFUSAL = "Caused by: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred"


def test_state_that_spark_fails_to_load_twice_from_one_commit_is_damage(tmp_path):
    stateful(tmp_path)
    note_failure(tmp_path, RuntimeError(REFUSAL))
    assert damage_of(tmp_path) is None
    note_failure(tmp_path, RuntimeError(REFUSAL))
    assert damage_of(tmp_path) == "Spark failed to load its state"
    write(tmp_path / "commits/3", "v2\n{}")
    write(tmp_path / "offsets/3", 'v1\n{}\n{"0": 40}')
    assert damage_of(tmp_path) is None, "it has loaded since"


@pytest.mark.parametrize("said", ["", "no worker", f"{REFUSAL}: No space left on device"])
def test_other_failures_of_a_query_are_no_damage(tmp_path, said):
    stateful(tmp_path)
    for _ in range(3):
        note_failure(tmp_path, RuntimeError(said) if said else None)
    assert damage_of(tmp_path) is None


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


def test_the_pipeline_renews_damaged_runs_before_any_query_starts_and_has_an_alarm_for_each(tmp_path, monkeypatch):
    create(tmp_path / "shop")
    shop = project.load(tmp_path / "shop")
    (tile_set,) = shop.plan().tile_sets
    place = checkpoint(names(shop.config).path("checkpoints", checkpoint_of(tile_set, "1")))
    (place / "offsets/3").write_bytes(b"")
    started: list[bool] = []
    monkeypatch.setattr(Pipeline, "_tile", lambda *_: started.append(place.exists()))
    monkeypatch.setattr("headrace.spark.pipeline.pipeline.register", lambda _: None)
    pipeline = Pipeline(shop.plan(), shop.config, SimpleNamespace(), FakeClock())
    pipeline.log.close()
    (alarm,) = pipeline.renewals
    assert (alarm.kind, alarm.stream) == ("checkpoint_damaged", "payments")
    assert "reads the log again" in alarm.says
    assert started == [False]
