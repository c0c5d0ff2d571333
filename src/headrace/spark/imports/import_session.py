"""One import with all it needs: a Spark session of its own, the stream's tables, and a lake to try it on for a dry run.

It needs no log, so it works whether the project is up or down.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.clock import Clock, SystemClock
from headrace.codec.registry.ids import registry_of
from headrace.codec.writers import writers_of
from headrace.config.config import Config, names
from headrace.define.stream import Stream
from headrace.lake.counters import behind
from headrace.lake.imports import IMPORT, IMPORTS, end_of, rows_of, rule_of
from headrace.lake.layout import BRONZE, SILVER, bronze_shape, silver_shape
from headrace.lake.location import Lake, find_tables, open_lake
from headrace.lake.table import LakeTable
from headrace.processes.jars import CONNECTOR, present
from headrace.spark.archive.lake_writer import LakeWriter
from headrace.spark.imports.history_import import Imported, ImportRequest, Progress, begun, bring, has_all
from headrace.spark.session import quiet_session, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {"spark.sql.shuffle.partitions": "2", "spark.sql.execution.arrow.maxRecordsPerBatch": "20000"}


def run_import(
    config: Config,
    stream: Stream,
    wish: ImportRequest,
    scratch: Path,
    *,
    dry: bool = False,
    progress: Progress = lambda _: None,
    clock: Clock | None = None,
) -> Imported:
    """Import history into a stream of a project.

    Parameters
    ----------
    scratch
        A folder for what is under way.
    dry
        Import into a lake in the scratch folder: the counts are what they would be, and nothing stays.
    """
    there = find_tables(config, stream)
    found = begun(there[BRONZE], wish) if BRONZE in there else None
    if found is not None and has_all(found, wish) and not behind(there[BRONZE], there.get(SILVER)):
        return Imported(found.partition, found.rows)
    log = names(config).path("run", f"import-{stream.name}-spark.log")
    jars = present(CONNECTOR) if stream.format.endswith("avro") else []
    with (
        quiet_session(f"headrace {config.name} import", log, jars) as session,
        settings(session, SETTINGS),
    ):
        writer = (
            _dry_writer(config, stream, wish, scratch, session) if dry else _writer(config, stream, scratch, session)
        )
        return bring(writer, wish, scratch, most=config.archive.most, clock=clock or SystemClock(), progress=progress)


def _writer(config: Config, stream: Stream, scratch: Path, session: SparkSession) -> LakeWriter:
    topic = names(config).topic(stream.name)
    # The archive clears the staging folder when it starts: what an import puts down lies elsewhere.
    lake = replace(open_lake(config, stream), staging=str(scratch / "staging"))
    writers = writers_of(stream, registry_of(config, [stream]), topic)
    return LakeWriter(stream, topic, lake, session, writers=writers)


def _dry_writer(
    config: Config, stream: Stream, wish: ImportRequest, scratch: Path, session: SparkSession
) -> LakeWriter:
    """A writer to a lake that will be thrown away; it knows how far the real one is, and looks for copies there too."""
    there = find_tables(config, stream)
    bronze = LakeTable(str(scratch / BRONZE), bronze_shape())
    silver = LakeTable(str(scratch / SILVER), silver_shape(stream))
    if BRONZE in there:
        known = there[BRONZE].counter(f"{IMPORT}{wish.fingerprint}")
        numbered = (
            [] if known is None else [f"{IMPORT}{wish.fingerprint}", rows_of(known), rule_of(known), end_of(known)]
        )
        held = {name: there[BRONZE].counter(name) for name in (IMPORTS, *numbered)}
        bronze.commit([], {name: value for name, value in held.items() if value is not None})
    lake = Lake(bronze, silver, str(scratch / "staging"))
    return LakeWriter(stream, names(config).topic(stream.name), lake, session, also=there.get(SILVER))
