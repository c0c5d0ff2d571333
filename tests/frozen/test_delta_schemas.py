"""The Delta tables that Headrace makes: columns and types, partitions, properties and which columns have statistics."""

from __future__ import annotations

import json

import msgspec
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headrace.drift.statistics import Statistics
from headrace.evaluation.cells import Cells
from headrace.evaluation.pass_table import PassTable
from headrace.evaluation.spreads import Spread
from headrace.lake.copies import COPIES, KEYS
from headrace.lake.layout import bronze_shape, silver_shape
from headrace.lake.location import open_lake
from headrace.meaning.sums import ScoreBin, Sums
from headrace.spark.evaluation.outcome_sums import CellKey
from headrace.spark.evaluation.outcomes import PassPosition
from tests.frozen.shop import BASE, disputed, disputes, payments, read_config, risk


@pytest.fixture
def config(tmp_path):
    return read_config(tmp_path)


def describe(table: DeltaTable) -> str:
    """What the log of a table says of it, but for its id, its files and the time."""
    metadata, protocol = table.metadata(), table.protocol()
    lines = [
        f"partitions {metadata.partition_columns}",
        f"properties {metadata.configuration}",
        f"protocol {protocol.min_reader_version}, {protocol.min_writer_version}",
    ]
    fields = json.loads(table.schema().to_json())["fields"]
    return "\n".join([*lines, *(json.dumps(field) for field in fields)])


@pytest.mark.parametrize("stream", [payments, disputes, risk.predictions], ids=lambda stream: stream.name)
def test_the_tables_of_a_stream_have_the_columns_that_they_had(golden, config, stream):
    lake = open_lake(config, stream)
    tables = {"bronze": lake.bronze, "silver": lake.silver}
    texts = [f"{name}\n{describe(table.delta)}" for name, table in tables.items()]
    golden(f"frozen/delta_{stream.name}", "\n\n".join(texts))


def test_the_files_of_a_table_have_the_columns_that_they_had(golden):
    shapes = {"bronze": bronze_shape(), "silver": silver_shape(payments), "predictions": silver_shape(risk.predictions)}
    lines = []
    for name, shape in shapes.items():
        lines += [f"{name}: day {shape.day} of {shape.day_of}, statistics of {', '.join(shape.statistics)}"]
        lines += [f"  {line}" for line in describe_arrow(shape.schema)]
    for name, schema in {"keys of copies": KEYS, "copies": COPIES}.items():
        lines += [name, *(f"  {line}" for line in describe_arrow(schema))]
    golden("frozen/arrow_schemas", "\n".join(lines))


def describe_arrow(schema: pa.Schema) -> list[str]:
    return [f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in schema]


def test_the_table_of_a_label_has_the_columns_and_the_rows_that_it_had(golden, config):
    sums = Sums(
        states={"labelled": 2, "open": 1},
        contradicted=1,
        unusable=1,
        scores={3: ScoreBin(open=1, no=1, yes=1, open_sum=0.5, no_sum=0.25, yes_sum=0.75)},
        decided={"yes/yes": 1},
        decided_sum={"yes/yes": 0.75},
        losses=(1.0, 2.0, 3.0, 4.0),
        errors={-2: 1},
        moments=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
        delays={7: 1},
    )
    seen = PassPosition(known_until=BASE, predictions={0: 5}, labels={0: 3}, prediction_version=4, label_version=2)
    Cells(config, disputed).restate({CellKey(BASE, 1, "country", "DE"): sums}, seen, 1)
    golden("frozen/delta_label", describe_looks(config, "label.disputed"))


def test_the_table_of_a_models_predictions_has_the_columns_and_the_rows_that_it_had(golden, config):
    held = Statistics(count=3, nulls=1, mean=0.5, m2=0.25, counts=(0, 2, 0), texts={"DE": 1}, other=1, against="ab12")
    row = {"window": BASE, "version": 1, "part": "amount", "value": "", "told": msgspec.json.encode(held).decode()}
    PassTable(config, "model.risk").append([row], msgspec.json.encode(Spread({0: 5, -1: 2}, 3)).decode(), 1)
    golden("frozen/delta_model", describe_looks(config, "model.risk"))


def describe_looks(config, name: str) -> str:
    """A table of looks with its rows."""
    table = DeltaTable(f"{config.data}/eu/lake/evaluations/{name}")
    rows = table.to_pyarrow_table().sort_by("part").to_pylist()
    counter = f"headrace.look {table.transaction_version('headrace.look')}"
    return "\n".join([describe(table), counter, *(json.dumps(row) for row in rows)])
