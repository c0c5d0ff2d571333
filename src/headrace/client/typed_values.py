"""Values in the types of their features, from what JSON has: datetimes, decimals with all their digits."""

from __future__ import annotations

import decimal
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.define.dimension import Keyed
    from headrace.define.feature_set import FeatureSet
    from headrace.types.field_types import Type


def types_of(of: Keyed | FeatureSet) -> dict[str, Type]:
    """The types of features by name; what an on-demand function gives has none."""
    from headrace.define.feature_set import FeatureSet
    from headrace.define.on_demand import OnDemand
    from headrace.define.view import Selection

    if not isinstance(of, FeatureSet):
        return {feature.name: feature.type for feature in of.features}
    found: dict[str, Type] = {}
    for member in of.members:
        if isinstance(member, Selection):
            found |= {name: member.view.feature(name).type for name in member.names}
        elif not isinstance(member, OnDemand):
            found |= types_of(member)
    return found


def typed(kind: Type | None, value: Any) -> Any:
    """A value as JSON has it, its floats as decimals, in the type of its feature; of an unknown one, as if by name.

    >>> typed(None, [decimal.Decimal("1.5"), None])
    [1.5, None]
    """
    from headrace.types.field_types import Decimal, List, Struct, Timestamp

    match kind, value:
        case _, None:
            return None
        case Timestamp(), _:
            return datetime.fromisoformat(value)
        case Decimal(), _:
            return decimal.Decimal(value)
        case List(element), _:
            return [typed(element, each) for each in value]
        case Struct(fields), _:
            types = {field.name: field.type for field in fields}
            return {name: typed(types.get(name), each) for name, each in value.items()}
        case _, decimal.Decimal():
            return float(value)
        case _, list():
            return [typed(None, each) for each in value]
        case _, dict():
            return {name: typed(None, each) for name, each in value.items()}
    return value
