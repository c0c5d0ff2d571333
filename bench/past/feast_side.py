"""Feast's join by time, run in Feast's own environment: `python feast_side.py FOLDER EVENTS SPINE OUT`."""

import json
import sys
import time
from datetime import timedelta
from pathlib import Path

import pandas as pd
from feast import (  # type: ignore[import-not-found]
    Entity,
    FeatureStore,
    FeatureView,
    Field,
    FileSource,
)
from feast.types import Float64, String  # type: ignore[import-not-found]
from feast.value_type import ValueType  # type: ignore[import-not-found]

folder, events, spine, out = sys.argv[1:]
(Path(folder) / "feature_store.yaml").write_text(
    f"project: cards\nprovider: local\nregistry: {folder}/registry.db\n"
    f"offline_store:\n  type: duckdb\nonline_store:\n  type: sqlite\n  path: {folder}/online.db\n"
    "entity_key_serialization_version: 3\n"
)
card = Entity(name="card", join_keys=["card"], value_type=ValueType.STRING)
source = FileSource(path=events, timestamp_field="at")
newest = FeatureView(
    name="newest",
    entities=[card],
    ttl=timedelta(days=60),
    schema=[Field(name="amount", dtype=Float64), Field(name="merchant", dtype=String)],
    source=source,
)
store = FeatureStore(repo_path=folder)
store.apply([card, newest])
rows = pd.read_parquet(spine).rename(columns={"t": "event_timestamp"})
began = time.monotonic()
found = store.get_historical_features(entity_df=rows, features=["newest:amount", "newest:merchant"]).to_arrow()
seconds = time.monotonic() - began
sys.stdout.write(json.dumps({"seconds": seconds, "rows": found.num_rows}) + "\n")
