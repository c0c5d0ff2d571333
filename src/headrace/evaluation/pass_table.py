"""A Delta table to which every look appends what it found, together with how far it saw: both or neither.

Looks are numbered. One that was overtaken by another, or killed, leaves nothing; the next goes on where the last commit
ended. What the rows mean is said by `evaluation.cells` and `evaluation.spreads`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from headrace.config.config import Config
from headrace.errors import DataError, shown
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.lake.location import root, storage_options

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

FOLDER = "evaluations"
SEEN = "~seen"
"""The `part` of the row that says how far a look saw."""
SAID = f"part = '{SEEN}'"
LOOK = "headrace.look"
TIDIED, KEPT = 100, 24
"""After how many looks the table is tidied, and for how many hours files stay that somebody may be reading."""
IDENTITY = '"window", version, part, value'
COLUMNS = {
    "window": "int64",
    "version": "int64",
    "part": "string",
    "value": "string",
    "look": "int64",
    "told": "string",
}


class PassTable:
    """The looks that were taken at one thing.

    Parameters
    ----------
    name
        The table's own.
    faults
        Hears of every commit; for tests.
    """

    def __init__(self, config: Config, name: str, faults: FaultPoints = NO_FAULTS) -> None:
        self._faults = faults
        self.uri, self._options = f"{root(config)}/{FOLDER}/{name}", storage_options(config)

    def _table(self) -> DeltaTable | None:
        from deltalake import DeltaTable

        if not DeltaTable.is_deltatable(self.uri, self._options or None):
            return None
        return DeltaTable(self.uri, storage_options=self._options or None)

    @property
    def taken(self) -> int:
        """How many there were."""
        table = self._table()
        return 0 if table is None else table.transaction_version(LOOK) or 0

    def seen(self) -> str | None:
        """What the last one said of how far it saw; None before the first."""
        said = self.rows(SAID)
        return said[-1]["told"] if said else None

    def rows(self, where: str) -> list[dict[str, Any]]:
        """Rows in the order of the looks that wrote them."""
        return self._run_query(f"SELECT * FROM looks WHERE {where} ORDER BY look")

    def newest(self, where: str) -> list[dict[str, Any]]:
        """Of all rows of one window, version, part and value the one that was written last.

        What was said before stays on disk: there is more of it after every look.
        """
        last = f"SELECT {IDENTITY}, max(look) AS look FROM looks WHERE {where} GROUP BY {IDENTITY}"
        return self._run_query(f"SELECT looks.* FROM looks JOIN ({last}) AS newest USING ({IDENTITY}, look)")

    def _run_query(self, query: str) -> list[dict[str, Any]]:
        import pyarrow as pa
        from deltalake import QueryBuilder

        table = self._table()
        if table is None:
            return []
        found: list[dict[str, Any]] = pa.table(QueryBuilder().register("looks", table).execute(query)).to_pylist()
        return found

    def append(self, rows: Iterable[Mapping[str, Any]], seen: str, number: int) -> None:
        """What a look found, and how far it saw.

        Raises
        ------
        DataError
            When another look with that number was taken meanwhile.
        """
        from deltalake import CommitProperties, Transaction, write_deltalake
        from deltalake.exceptions import CommitFailedError

        told = [*rows, {"window": 0, "version": 0, "part": SEEN, "value": "", "told": seen}]
        if self.taken != number - 1:
            raise _overtaken(self.uri)
        properties = CommitProperties(app_transactions=[Transaction(LOOK, number)])
        self._faults.reach("looks.commit.before")
        try:
            write_deltalake(
                self.uri,
                _arrow([{**row, "look": number} for row in told]),
                mode="append",
                commit_properties=properties,
                storage_options=self._options or None,
            )
        except CommitFailedError as error:
            raise _overtaken(self.uri) from error
        self._faults.reach("looks.commit.after")
        if number % TIDIED == 0:
            self._tidy()

    def _tidy(self) -> None:
        """Make one file of many: a look adds one, and reading all of them would take longer every day."""
        table = self._table()
        if table is not None:
            table.optimize.compact()
            self._faults.reach("looks.compact.after")
            table.vacuum(KEPT, dry_run=False, enforce_retention_duration=False)
            self._faults.reach("looks.vacuum.after")
            table.create_checkpoint()
            self._faults.reach("looks.checkpoint.after")


def _overtaken(uri: str) -> DataError:
    message = "Another process evaluates the same thing: this one gives way."
    return DataError("lake-conflict", message, got=shown(uri), hint="Run one evaluation of a project at a time.")


def _arrow(rows: list[dict[str, Any]]) -> pa.Table:
    import pyarrow as pa

    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()})
