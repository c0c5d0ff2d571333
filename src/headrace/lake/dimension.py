"""A dimension's table where it lies: Parquet files or a Delta table, in a folder or in object storage.

`compute_digest` tells one state of it from another, which takes one listing; `read` reads all of it and holds it to its
definition (`lake.dimension_table`). Files that change while they are read are refused: half of one state and half of
another are no table. Arrow does all of the reading, because it lets other threads run meanwhile.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.config.config import Config, resolved
from headrace.define.dimension import Dimension
from headrace.errors import DataError, did_you_mean, shown

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import fs

    from headrace.lake.dimension_table import DimensionTable

LOG = "_delta_log"
_COMMIT = re.compile(r"[0-9]{20}\.json")


@dataclass(frozen=True)
class DimensionLocation:
    """Where the table of a dimension is, and what reaches it; options are never shown."""

    dimension: Dimension
    address: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


def place_of(config: Config, dimension: Dimension) -> DimensionLocation:
    """Where a project has the table of a dimension: a path is taken from the project's folder.

    >>> import headrace as hr
    >>> from pathlib import Path
    >>> from headrace.config.config import parse
    >>> fields = {"merchant": str, "risk": float}
    >>> merchants = hr.dimension("merchants", "m.parquet", by="merchant", fields=fields, valid_from="since")
    >>> place_of(parse('[project]\\nname = "shop"', Path("shop"), {}), merchants).address
    'shop/m.parquet'
    """
    if "://" in dimension.path:
        return DimensionLocation(dimension, dimension.path.rstrip("/"), resolved(config.lake.options, os.environ))
    return DimensionLocation(dimension, str(config.root / dimension.path))


def compute_digest(place: DimensionLocation) -> str:
    """What changes when a table does: a digest of a Delta table's newest commit, or of all files of Parquet."""
    with _reading(place):
        log = _delta_log(place)
        commits = [each for each in log if _COMMIT.fullmatch(each.base_name)]
        return _digest(commits[-1:] or log or _files(place))


def read(place: DimensionLocation, version: str | None = None) -> DimensionTable:
    """All of a table, if it is what the dimension says.

    Parameters
    ----------
    version
        The version that is wanted, as an earlier `read` has told it; as it is now when left out. Of a Delta table an
        earlier one can be read, of files only the one that there is.
    """
    from headrace.lake.dimension_table import load_rows

    with _reading(place):
        found, told = _read_delta(place, version) if _delta_log(place) else _read_files(place)
    if version not in (None, told):
        message = f"The table of dimension {place.dimension.name!r} is no longer what it was."
        hint = "Keep the dimension as a Delta table: its earlier versions can be read."
        raise DataError("bad-dimension", message, got=shown(told), hint=hint, where=place.dimension.path)
    return load_rows(place.dimension, found, told)


@contextmanager
def _reading(place: DimensionLocation) -> Iterator[None]:
    """Turns what Arrow and deltalake say of a table that cannot be read into an error that names it."""
    import pyarrow as pa
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (pa.ArrowException, DeltaError, OSError, ValueError) as error:
        message = f"The table of dimension {place.dimension.name!r} cannot be read."
        hint = "A path is taken from the project's folder; lake.options reach object storage."
        got = shown(str(error), 200)
        raise DataError("bad-dimension", message, got=got, hint=hint, where=place.dimension.path) from error


def _delta_log(place: DimensionLocation) -> list[fs.FileInfo]:
    """The log of a Delta table in order; nothing when it is no Delta table."""
    from pyarrow import fs

    files, path = _opened(place)
    if files.get_file_info(path).type == fs.FileType.File:
        return []
    found = files.get_file_info(fs.FileSelector(f"{path}/{LOG}", allow_not_found=True))
    return sorted(found, key=lambda each: each.base_name)


def _opened(place: DimensionLocation) -> tuple[fs.FileSystem, str]:
    from headrace.lake.files import filesystem

    return filesystem(place.address, place.options)


def _read_delta(place: DimensionLocation, version: str | None) -> tuple[list[pa.Table], str]:
    from deltalake import DeltaTable
    from pyarrow import fs
    from pyarrow.dataset import ParquetReadOptions

    number = (version or "").rpartition("@")[2]
    wanted = int(number) if number.isdecimal() else None
    table = DeltaTable(place.address, version=wanted, storage_options=dict(place.options) or None)
    files, path = _opened(place)
    # Of the old form of timestamps, which Spark writes, those after 2262 would come out as others.
    options = ParquetReadOptions(coerce_int96_timestamp_unit="us")
    dataset = table.to_pyarrow_dataset(filesystem=fs.SubTreeFileSystem(path, files), parquet_read_options=options)
    columns = _columns(place.dimension, dataset.schema.names)
    return [dataset.to_table(columns=columns)], f"{table.metadata().id}@{table.version()}"


def _files(place: DimensionLocation) -> list[fs.FileInfo]:
    """The files of a table in a stable order; those that begin with a dot or an underscore are not data."""
    from pyarrow import fs

    files, path = _opened(place)
    there = files.get_file_info(path)
    if there.type == fs.FileType.File:
        return [there]
    found = files.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    inner = ((each, each.path[len(path) :].strip("/").split("/")) for each in found if each.type == fs.FileType.File)
    kept = [each for each, parts in inner if not any(part.startswith((".", "_")) for part in parts)]
    if not kept:
        dimension = place.dimension
        message = f"There is no table of dimension {dimension.name!r}."
        hint = (
            "Write a Parquet file, a folder of them or a Delta table there; a path is taken from the project's folder."
        )
        raise DataError("bad-dimension", message, got=shown(place.address), hint=hint, where=dimension.path)
    return sorted(kept, key=lambda each: each.path)


def _digest(files: Sequence[fs.FileInfo]) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for each in files:
        digest.update(f"{each.path}\0{each.size}\0{each.mtime_ns}\0".encode())
    return digest.hexdigest()


def _read_files(place: DimensionLocation) -> tuple[list[pa.Table], str]:
    files = _files(place)
    told = _digest(files)
    found = [_read_file(place, each.path) for each in files]
    if _digest(_files(place)) != told:
        message = f"The table of dimension {place.dimension.name!r} changed while it was read."
        hint = "Write files beside it and move them there, or keep the dimension as a Delta table."
        raise DataError("bad-dimension", message, got=shown(place.address), hint=hint, where=place.dimension.path)
    return found, told


def _read_file(place: DimensionLocation, path: str) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    files, _ = _opened(place)
    with files.open_input_file(path) as opened:
        file = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
        table = file.read(columns=_columns(place.dimension, file.schema_arrow.names))
        described: Any = file.schema
        kinds = [described.column(number) for number in range(len(described))]
    # The old form of timestamps, which Spark writes, has no place for a time zone: it is always UTC.
    for name in {each.path for each in kinds if each.physical_type == "INT96"} & set(table.column_names):
        at = table.column_names.index(name)
        table = table.set_column(at, name, table.column(name).cast(pa.timestamp("us", tz="UTC")))
    return table


def _columns(dimension: Dimension, there: Sequence[str]) -> list[str]:
    """The columns to read, if all of them are there."""
    names = [field.name for field in dimension.schema]
    for name in names:
        if name not in there:
            message = f"The table of dimension {dimension.name!r} has no column {name!r}."
            hint = did_you_mean(name, there)
            raise DataError("bad-dimension", message, got=shown(list(there), 200), hint=hint, where=dimension.path)
    return names
