"""One Delta table: created, committed to, asked how far it has come and which files to read.

A commit adds files and moves named counters (Delta's application transactions) in one step, so files and progress
cannot disagree, and of two writers that start from one state only one can commit.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from headrace.disk import translated
from headrace.errors import DataError, MachineError, shown
from headrace.lake.files import DataFile
from headrace.lake.layout import TableLayout

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

CHECKPOINT_EVERY = "50"


@contextmanager
def reading(uri: str) -> Iterator[None]:
    """Turns what deltalake and Arrow say of a table that cannot be used into an error that names it."""
    from deltalake.exceptions import CommitFailedError, DeltaError
    from pyarrow import ArrowInvalid

    try:
        with translated():
            yield
    except CommitFailedError as error:
        message = f"Another process changed {short_name(uri)} at the same time, and nothing was done."
        raise DataError("lake-conflict", message, got=shown(str(error), 200), hint="Try again.", where=uri) from error
    except (DeltaError, ArrowInvalid, OSError) as error:
        raise _failed(uri, error) from error


def _failed(uri: str, error: Exception) -> MachineError:
    """The error for a table that cannot be used; where it is stands apart, because no caller needs to know it."""
    said = str(error).partition("\n")[0].replace(uri, short_name(uri))
    hint = (
        "Look at lake.path and lake.options in headrace.toml, and whether the storage can be reached. "
        "A commit in _delta_log that is damaged has to be brought back from a copy."
    )
    message = f"The lake's table {short_name(uri)} cannot be used."
    return MachineError("lake-failed", message, got=shown(said, 200), hint=hint, where=uri)


def short_name(uri: str) -> str:
    """A table by its stream and kind, without where the lake is.

    >>> short_name("/srv/shop/lake/payments/silver")
    'payments/silver'
    """
    return "/".join(uri.rstrip("/").split("/")[-2:])


def _at_version(uri: str, version: int, options: dict[str, str]) -> DeltaTable:
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        return DeltaTable(uri, version=version, storage_options=options or None)
    except DeltaError as error:
        message = f"The lake's table {short_name(uri)} no longer has this version, or never had it."
        got = f"version {version}: {shown(str(error), 100)}"
        raise DataError("lake-version", message, got=got, where=uri) from error


class LakeTable:
    """A Delta table of the lake.

    Parameters
    ----------
    uri
        A folder, or an address in object storage.
    shape
        Its columns. A table that exists gets the columns it lacks; one whose column has another type is refused.
    options
        What deltalake needs to reach object storage.
    table
        The table, if it is open already; it gets no columns.
    """

    def __init__(
        self, uri: str, shape: TableLayout, options: Mapping[str, str] | None = None, *, table: DeltaTable | None = None
    ) -> None:
        self.uri, self.shape, self.options = uri, shape, dict(options or {})
        if table is not None:
            self._table = table
            return
        with reading(uri):
            self._table = self._opened()
            self._grow()

    @classmethod
    def there(
        cls, uri: str, shape: TableLayout, options: Mapping[str, str] | None = None, version: int | None = None
    ) -> Self | None:
        """The table as it is, or None when it is not there: looking creates nothing and adds no column.

        With a version it is the table as it was then, to be read alone.
        """
        from deltalake import DeltaTable

        known = dict(options or {})
        with reading(uri):
            if not DeltaTable.is_deltatable(uri, known or None):
                return None
            if version is not None:
                return cls(uri, shape, known, table=_at_version(uri, version, known))
            return cls(uri, shape, known, table=DeltaTable(uri, storage_options=known or None))

    def _opened(self) -> DeltaTable:
        from deltalake import DeltaTable

        if DeltaTable.is_deltatable(self.uri, self.options or None):
            return DeltaTable(self.uri, storage_options=self.options or None)
        import pyarrow as pa

        schema = self.shape.schema.append(pa.field(self.shape.day, pa.date32()))
        return DeltaTable.create(
            self.uri,
            schema,
            mode="ignore",
            partition_by=[self.shape.day],
            configuration={"delta.checkpointInterval": CHECKPOINT_EVERY},
            storage_options=self.options or None,
        )

    def _grow(self) -> None:
        """Add the columns that the table lacks; what it has stays, also when the shape no longer speaks of it."""
        from deltalake import Schema

        wanted = {field.name: field for field in Schema.from_arrow(self.shape.schema).fields}
        there = {field.name: field for field in self._table.schema().fields}
        for name, field in wanted.items():
            if name in there and there[name].type != field.type:
                message = f"Column {name!r} of {short_name(self.uri)} has another type than the stream says."
                hint = "Give the field a new name, or move the table away and archive the stream anew."
                got = shown(str(there[name].type))
                raise DataError("lake-conflict", message, got=got, hint=hint, where=self.uri)
        missing = [field for name, field in wanted.items() if name not in there]
        if missing:
            self._table.alter.add_columns(missing)
            self.refresh()

    @property
    def delta(self) -> DeltaTable:
        """The table itself, as of the last refresh."""
        return self._table

    def refresh(self) -> None:
        """See what others have committed."""
        with reading(self.uri):
            self._table.update_incremental()

    def counter(self, name: str) -> int | None:
        """A named counter, or None when no commit has moved it."""
        with reading(self.uri):
            return self._table.transaction_version(name)

    @translated()
    def commit(self, files: Iterable[DataFile], counters: Mapping[str, int]) -> None:
        """Add files and move counters, both or neither; refused when another writer moved one of them meanwhile."""
        from deltalake import CommitProperties, Transaction
        from deltalake.exceptions import CommitFailedError, DeltaError
        from deltalake.transaction import AddAction, RemoveAction

        now = int(time.time() * 1000)
        added: list[AddAction | RemoveAction] = [
            AddAction(file.path, file.size, {self.shape.day: file.day}, now, True, file.statistics) for file in files
        ]
        moved = [Transaction(name, value) for name, value in counters.items()]
        properties = CommitProperties(app_transactions=moved)
        try:
            self._table.create_write_transaction(
                added, "append", self._table.schema(), [self.shape.day], commit_properties=properties
            )
        except CommitFailedError as error:
            message = "Another archive has written the same records: this one gives way."
            hint = "Run one archive per project; end the other with `headrace down`."
            raise DataError("lake-conflict", message, got=shown(str(error)), hint=hint) from error
        except (DeltaError, OSError) as error:
            raise _failed(self.uri, error) from error
        self.refresh()

    def files(self, column: str | None = None, spans: Sequence[tuple[int, int]] = ()) -> list[str]:
        """Addresses of the files; with a column of moments, of those that may hold one within the spans [low, high]."""
        if column is None:
            with reading(self.uri):
                return self._table.file_uris()
        root = self._table.table_uri.rstrip("/")
        return [f"{root}/{path}" for path in self._files_within(column, spans).column("path").to_pylist()]

    def rows(self, column: str, spans: Sequence[tuple[int, int]]) -> int:
        """How many rows the files have that may hold a moment within the spans [low, high]."""
        return sum(self._files_within(column, spans).column("num_records").to_pylist())

    def least(self, column: str) -> int | None:
        """The least moment that the files are known to hold; None when there is none."""
        return min(self._file_bounds("min", column), default=None)

    def greatest(self, column: str) -> int | None:
        """The greatest moment that the files are known to hold; None when there is none."""
        return max(self._file_bounds("max", column), default=None)

    def _actions(self) -> Any:
        """What the log says of each file. The log may be read anew for it, so it may have been damaged since."""
        with reading(self.uri):
            return self._table.get_add_actions(flatten=True)

    def _file_bounds(self, end: str, column: str) -> list[int]:
        """What the log says of an end of each file's moments."""
        import pyarrow as pa

        actions = pa.table(self._actions())
        found = actions.column(f"{end}.{column}").cast(pa.int64()).to_pylist() if actions.num_rows else []
        return [moment for moment in found if moment is not None]

    def _files_within(self, column: str, spans: Sequence[tuple[int, int]]) -> pa.Table:
        """What the log says of the files that may hold a moment within the spans."""
        import numpy as np
        import pyarrow as pa

        actions = pa.table(self._actions())
        if not actions.num_rows:
            return actions
        low, high = (
            actions.column(f"{end}.{column}").cast(pa.int64()).to_numpy(zero_copy_only=False) for end in ("min", "max")
        )
        wanted = np.zeros(len(low), dtype=bool)
        for first, last in spans:
            # A file without statistics has NaN here, which compares false: it is read.
            wanted |= ~((high < first) | (low > last))
        return actions.filter(pa.array(wanted))
