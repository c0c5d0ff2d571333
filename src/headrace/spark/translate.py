"""Records whose schema a running query does not know natively, through Python into a schema that it does.

The one place where a query that reads Avro runs Python, and hardly a record goes through it: those under numbers that
appeared after the query was planned, and those whose number nobody knows. `spark.decode` reads what comes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headrace.codec.wire import Laid, RecordLayout, SchemaIds
from headrace.codec.writers import translator

if TYPE_CHECKING:
    import pyarrow as pa

TYPE = "struct<body: binary, kind: string, reason: string>"


def translated(records: DataFrame, stream: RecordLayout, ids: SchemaIds, source: str, name: str) -> DataFrame:
    """Add the column `name`: of the records that the expression `source` gives, the translation or the fault.

    Where `source` is null the column's parts are, too. A registry that cannot be reached fails the query.
    """
    laid = Laid(stream.name, stream.schema, stream.format, stream.avro_schema)
    return records.withColumns({name: _function(laid, ids)(F.expr(source))})


def _function(laid: Laid, ids: SchemaIds) -> Any:
    from pyspark.sql.pandas.functions import arrow_udf

    def translate(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        one = None
        for batch in batches:
            if batch.null_count < len(batch) and one is None:
                one = translator(laid, ids)
            yield _structs([one(data) if one and data is not None else (None, None) for data in batch.to_pylist()])

    # Spark reads the kind of function from its hints, which it needs as types and not as text.
    import pyarrow

    translate.__annotations__ = {"batches": Iterator[pyarrow.Array], "return": Iterator[pyarrow.Array]}
    made: Any = arrow_udf
    return made(translate, returnType=TYPE)


def _structs(outcomes: list[tuple[bytes | None, Any]]) -> pa.Array:
    import pyarrow

    bodies = pyarrow.array([body for body, _ in outcomes], pyarrow.binary())
    kinds = pyarrow.array([fault.kind if fault else None for _, fault in outcomes], pyarrow.string())
    reasons = pyarrow.array([fault.reason if fault else None for _, fault in outcomes], pyarrow.string())
    return pyarrow.StructArray.from_arrays([bodies, kinds, reasons], ["body", "kind", "reason"])
