"""What runs in Feast's own environment: features defined and loaded from a Parquet file, and reads with its SDK timed.

    feast_side.py load REPOSITORY TABLE
    feast_side.py time REPOSITORY CARDS TOOK

Nothing of Headrace is there.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta

import numpy as np
import pyarrow.parquet

WARM = 500
"""Reads that are not counted."""
CHUNK = 10_000
VIEW, KEY, AT = "cards", "card", "event_timestamp"


def load(repository: str, table: str) -> None:
    """Define one view with a field for each column, and put all rows into the online store."""
    from feast import (  # type: ignore[import-not-found]
        Entity,
        FeatureService,
        FeatureStore,
        FeatureView,
        Field,
        FileSource,
        ValueType,
    )
    from feast.types import Float64, Int64, String  # type: ignore[import-not-found]

    file = pyarrow.parquet.ParquetFile(table)
    kinds = {field.name: Int64 if str(field.type) == "int64" else Float64 for field in file.schema_arrow}
    fields = [Field(name=name, dtype=kind) for name, kind in kinds.items() if name not in (KEY, AT)]
    card = Entity(name=KEY, join_keys=[KEY], value_type=ValueType.STRING)
    view = FeatureView(
        name=VIEW,
        entities=[card],
        ttl=timedelta(days=30),
        schema=[Field(name=KEY, dtype=String), *fields],
        source=FileSource(path=table, timestamp_field=AT),
    )
    store = FeatureStore(repo_path=repository)
    store.apply([card, view, FeatureService(name=VIEW, features=[view])])
    for batch in file.iter_batches(CHUNK):
        store.write_to_online_store(VIEW, batch.to_pandas())


def timed(repository: str, cards: str, took: str) -> None:
    """Read all features of each card, as a dictionary."""
    from feast import FeatureStore

    store = FeatureStore(repo_path=repository)
    service = store.get_feature_service(VIEW)
    with open(cards, encoding="utf-8") as file:
        asked = json.load(file)
    ms = np.zeros(len(asked))
    for number, card in enumerate(asked):
        began = time.perf_counter()
        found = store.get_online_features(features=service, entity_rows=[{KEY: card}]).to_dict()
        ms[number] = (time.perf_counter() - began) * 1_000
        if len(found) < 2:
            raise RuntimeError(f"no features of {card}: {found}")
    np.save(took, ms[WARM:])


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["load", repository, table]:
            load(repository, table)
        case ["time", repository, cards, took]:
            timed(repository, cards, took)
        case other:
            sys.exit(f"unknown: {other}")
