"""A model of late arrivals, trained on what was known; and beside it one trained on what had happened by event time."""

import json
import sys

import lightgbm
import pandas as pd
from features import delays
from sklearn.metrics import roc_auc_score

import headrace as hr

SETTINGS = {
    "objective": "binary",
    "num_leaves": 31,
    "learning_rate": 0.06,
    "min_data_in_leaf": 100,
    "deterministic": True,
    "num_threads": 2,
    "seed": 0,
    "verbosity": -1,
}
# The first month has little before it. A flight is asked about at its scheduled departure, with itself counted.
SPINE = """
SELECT s.tailnum, s.carrier, s.origin, s.dest, s.distance, s.at,
       s._arrived_at AS t, s._arrived_at, s._partition, s._offset,
       l.arr_delay > 15 AS late
FROM flights_silver s JOIN flights_silver l ON l.id = replace(s.id, '-scheduled', '-landed')
WHERE s.kind = 'scheduled' AND s.at >= TIMESTAMP '{first}'
"""


def matrix(rows: pd.DataFrame) -> pd.DataFrame:
    """The columns of the feature set, in its order."""
    return rows[list(delays.columns)].astype(float)


def learnt(mode: str, first: str) -> tuple[lightgbm.Booster, float]:
    """A model trained in a mode, and its AUC on the newest fifth of the rows, which it has not seen."""
    spine = SPINE.format(first=first)
    made = hr.training_set(spine, "delays", mode=mode, include_event="flights", split="0.8,0.2", out=f"sets/{mode}")
    rows = made.toPandas()
    train, test = rows[rows.split == "train"], rows[rows.split == "test"]
    model = lightgbm.train(SETTINGS, lightgbm.Dataset(matrix(train), label=train.late.astype(float)), 120)
    return model, float(roc_auc_score(test.late.astype(bool), model.predict(matrix(test))))


if __name__ == "__main__":
    first, *modes = sys.argv[1:]
    told = {}
    # What was learnt from what had happened is the one to doubt; the other decides.
    for mode in modes:
        model, auc = learnt(mode, first)
        told[mode] = auc
        metrics = {"auc": auc}
        hr.add_model(
            "late", model, training_set=f"sets/{mode}", threshold=0.5, metrics=metrics, promote=mode == "as_known"
        )
    print(json.dumps(told))
