"""How each stream stands: what the pipeline and the archive say of it, put together.

The pipeline says how far its tiles are, the archive what became of every record. Both speak in the status topic at
their own pace, and the page, `headrace status` and whoever else asks hear the two as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.meaning.verdict_names import VERDICTS


def streams(pipeline: Mapping[str, Any] | None, archive: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Counts, lag and pace of every stream, from the last words of the two.

    `settled` says that both have come to the end of what there was when they spoke, and to the same one. A stream that
    no tiles are made of is as far as the archive is.

    Examples
    --------
    >>> kept = {"archived": 3, "verdicts": {"admitted": 3}, "positions": {"0": 3}, "lag_events": 0}
    >>> tiles = {"included": {"0": 3}, "lag_events": 0, "lag_seconds": 0.1, "rate_per_s": 1.0}
    >>> streams({"streams": {"clicks": tiles}}, {"streams": {"clicks": kept}})["clicks"]["settled"]
    True
    """
    tiles, lake = (((said or {}).get("streams") or {}) for said in (pipeline, archive))
    return {name: _stream(tiles.get(name), lake.get(name)) for name in sorted({*tiles, *lake})}


def alarms(*told: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """What is wrong, from the last words of those who look for it."""
    return [alarm for said in told for alarm in (said or {}).get("alarms", [])]


def _stream(tiles: Mapping[str, Any] | None, kept: Mapping[str, Any] | None) -> dict[str, Any]:
    kept = kept or {}
    positions, lag = kept.get("positions"), kept.get("lag_events")
    pace = tiles or {"included": positions or {}, "lag_events": lag or 0, "lag_seconds": 0.0, "rate_per_s": 0.0}
    return {
        "read": kept.get("archived", 0),
        "verdicts": {verdict: kept.get("verdicts", {}).get(verdict, 0) for verdict in VERDICTS},
        "settled": lag == 0 and pace.get("lag_events") == 0 and positions == pace.get("included"),
        **pace,
    }
