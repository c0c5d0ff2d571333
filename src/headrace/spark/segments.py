"""The segments that a prediction is in, as SQL over its record: all of them, and one for each name that tells apart."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.define.model import Model


def segments(model: Model, names: Sequence[str]) -> str:
    """An array of `segment` and `value`, the first of them empty: that one is everything.

    Parameters
    ----------
    names
        Key columns, request values or features of the model.
    """
    keys = {name for part in model.features.keyed for name in part.by}
    columns = {name for name, _ in model.columns}
    found = ["struct('' AS segment, '' AS value)"]
    for name in names:
        source = "key" if name in keys else "features" if name in columns else "request"
        value = f"coalesce(get_json_object({source}, \"$['{name}']\"), 'null')"
        found.append(f"struct('{name}' AS segment, {value} AS value)")
    return f"array({', '.join(found)})"
