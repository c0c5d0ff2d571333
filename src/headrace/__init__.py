"""Headrace: one definition of a feature, computed by Spark and served fresh.

Importing this loads no engine: no Spark, no pandas, no numpy.
"""

from typing import TYPE_CHECKING, Any

from headrace.define.dimension import Dimension, dimension
from headrace.define.feature_set import FeatureSet, feature_set
from headrace.define.label import Label, label
from headrace.define.measure import (
    count,
    count_distinct,
    decayed_sum,
    first,
    last,
    last_n,
    max,
    mean,
    min,
    quantile,
    ratio,
    stddev,
    sum,
    time_since_first,
    time_since_last,
    top_k,
    variance,
)
from headrace.define.model import Model, model
from headrace.define.on_demand import OnDemand, on_demand
from headrace.define.over import calendar, hopping, lifetime, session, trailing, tumbling
from headrace.define.stream import Stream, stream
from headrace.define.view import View, view
from headrace.errors import HeadraceError
from headrace.types.field_types import Decimal, Timestamp, optional
from headrace.version import VERSION

if TYPE_CHECKING:
    from headrace.batch import backfill, lake_tiles
    from headrace.client import AsyncClient, Client
    from headrace.ingest.producer import Producer
    from headrace.notebook import preview
    from headrace.project_models import add_model, score_table
    from headrace.training import training_set

__version__ = VERSION

__all__ = [
    "AsyncClient",
    "Client",
    "Decimal",
    "Dimension",
    "FeatureSet",
    "HeadraceError",
    "Label",
    "Model",
    "OnDemand",
    "Producer",
    "Stream",
    "Timestamp",
    "View",
    "add_model",
    "backfill",
    "calendar",
    "count",
    "count_distinct",
    "decayed_sum",
    "dimension",
    "feature_set",
    "first",
    "hopping",
    "label",
    "lake_tiles",
    "last",
    "last_n",
    "lifetime",
    "max",
    "mean",
    "min",
    "model",
    "on_demand",
    "optional",
    "preview",
    "quantile",
    "ratio",
    "score_table",
    "session",
    "stddev",
    "stream",
    "sum",
    "time_since_first",
    "time_since_last",
    "top_k",
    "trailing",
    "training_set",
    "tumbling",
    "variance",
    "view",
]


_LAZY = {
    "AsyncClient": "client",
    "Client": "client",
    "add_model": "project_models",
    "backfill": "batch",
    "lake_tiles": "batch",
    "preview": "notebook",
    "Producer": "ingest.producer",
    "score_table": "project_models",
    "training_set": "training",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(f"headrace.{_LAZY[name]}"), name)
    from headrace.public_calls import refuse_name

    raise refuse_name(name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
