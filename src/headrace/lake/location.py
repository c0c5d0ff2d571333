"""Where a project's lake is, and its tables opened."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from headrace.config.config import Config, names, resolved
from headrace.define.stream import Stream
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.lake.layout import BRONZE, SILVER, bronze_shape, silver_shape
from headrace.lake.table import LakeTable


@dataclass(frozen=True)
class Lake:
    """The two tables of a stream, and a place beside them for what is under way.

    `faults` hears of every step of those who write there; it is for tests.
    """

    bronze: LakeTable
    silver: LakeTable
    staging: str
    faults: FaultPoints = NO_FAULTS


def root(config: Config) -> str:
    """The folder or address under which every stream has its tables."""
    if not config.lake.path:
        return str(names(config).path("lake"))
    place = config.lake.path.rstrip("/")
    return f"{place}/{config.prefix}" if config.prefix else place


def uri(config: Config, stream: str, table: str) -> str:
    """Where one table of a stream is."""
    return f"{root(config)}/{stream}/{table}"


def storage_options(config: Config) -> dict[str, str]:
    """What reaches the lake's storage; never to be shown."""
    return resolved(config.lake.options, os.environ)


def find_tables(config: Config, stream: Stream, versions: Mapping[str, int] | None = None) -> dict[str, LakeTable]:
    """The tables of a stream that are there, by name; looking creates none.

    `versions` are those of tables that are to be as they were then; with it the others are left out.
    """
    options, shapes = storage_options(config), {BRONZE: bronze_shape(), SILVER: silver_shape(stream)}
    wanted: dict[str, int | None] = dict.fromkeys(shapes) if versions is None else dict(versions)
    found = {
        name: LakeTable.there(uri(config, stream.name, name), shapes[name], options, version)
        for name, version in wanted.items()
    }
    return {name: table for name, table in found.items() if table is not None}


def open_lake(config: Config, stream: Stream) -> Lake:
    """The tables of a stream, created when they are not there."""
    options = storage_options(config)
    return Lake(
        LakeTable(uri(config, stream.name, BRONZE), bronze_shape(), options),
        LakeTable(uri(config, stream.name, SILVER), silver_shape(stream), options),
        uri(config, stream.name, "staging"),
    )
