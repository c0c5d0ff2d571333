"""Where a project's lake is, and its tables opened."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.config import Config, names
from headrace.define.stream import Stream
from headrace.lake.layout import BRONZE, SILVER, bronze_shape, silver_shape
from headrace.lake.table import LakeTable


@dataclass(frozen=True)
class Lake:
    """The two tables of a stream, and a place beside them for what is under way."""

    bronze: LakeTable
    silver: LakeTable
    staging: str


def root(config: Config) -> str:
    """The folder or address under which every stream has its tables."""
    if not config.lake:
        return str(names(config).path("lake"))
    place = config.lake if "://" in config.lake else str(config.root / config.lake)
    return f"{place.rstrip('/')}/{config.prefix}" if config.prefix else place.rstrip("/")


def uri(config: Config, stream: str, table: str) -> str:
    """Where one table of a stream is."""
    return f"{root(config)}/{stream}/{table}"


def open_lake(config: Config, stream: Stream) -> Lake:
    """The tables of a stream, created when they are not there."""
    options = dict(config.lake_options)
    return Lake(
        LakeTable(uri(config, stream.name, BRONZE), bronze_shape(), options),
        LakeTable(uri(config, stream.name, SILVER), silver_shape(stream), options),
        uri(config, stream.name, "staging"),
    )
