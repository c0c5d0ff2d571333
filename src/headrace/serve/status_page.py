"""The page: how things stand, rendered with its first state in it, so that it is a plain page without JavaScript.

A cell names its place in `/status.json` (`data-path`) and how it is written (`data-format`); the script in
`page.html` fills the same cells again every second. There is no build step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from msgspec import UNSET

from headrace.http_paths import FEATURES, STATUS, fill_path
from headrace.serve.status_view import ProjectStatus

SILENT_MS = 10_000
"""A pipeline that has not spoken for so long is shown as silent; it speaks every second."""

NOTHING = "–"  # noqa: RUF001 - an en dash, as typeset for no value
VERDICTS = ("admitted", "duplicate", "late", "future", "invalid", "malformed")


@cache
def _template() -> str:
    return files("headrace.serve").joinpath("page.html").read_text("utf-8")


def render(status: ProjectStatus) -> str:
    """The page of a status."""
    shown = (
        _head,
        _definitions,
        _alarms,
        _figures,
        _streams,
        _lake,
        _tiles,
        _views,
        _skew,
        _labels,
        _dimensions,
        _models,
        _latency,
        _filler,
    )
    parts = [part(status) for part in shown]
    filled = {
        "project": escape(status.project),
        "shape": escape(_shape(status)),
        "body": "\n".join(part for part in parts if part),
    }
    page = _template()
    for name, text in filled.items():
        page = page.replace("{{" + name + "}}", text)
    return page


def _shape(status: ProjectStatus) -> str:
    """Which rows there are: when it changes, the script loads the page again."""
    parts = (status.streams, status.lake, status.tile_sets, status.views, status.dimensions, status.models)
    listed: list[list[object]] = [list(part) for part in parts]
    listed.append(list(status.skew.features or {}))
    listed.append([[name, *each.versions] for name, each in status.labels.items()])
    return json.dumps(listed, separators=(",", ":"), ensure_ascii=False)


def _head(status: ProjectStatus) -> str:
    state, colour = _state(status)
    return (
        f"<header><h1>{escape(status.project)}</h1>"
        f'<span id="state" class="badge {colour}">{escape(state)}</span>'
        f'<span class="faint right">plan {escape(status.plan)} · '
        f'<a href="{STATUS}">status.json</a></span></header>'
    )


def _state(status: ProjectStatus) -> tuple[str, str]:
    if not status.ready:
        return f"waiting for {', '.join(status.waiting_for)}".replace("_", " "), "warn"
    silent = status.pipeline is not None and status.pipeline.age_ms > SILENT_MS
    return ("pipeline silent", "warn") if silent else ("ready", "good")


def _definitions(status: ProjectStatus) -> str:
    """That what runs is older than what is written, and what differs; the script writes it anew."""
    return f'<p id="definitions" role="status">{escape(status.definitions.says or "")}</p>'


def _alarms(status: ProjectStatus) -> str:
    """What is wrong, in sentences; the script writes the list anew, and without one there is nothing to see."""
    said = "".join(f"<li>{escape(alarm.says)}</li>" for alarm in status.alarms)
    return f'<ul id="alarms" role="alert">{said}</ul>'


def _figures(status: ProjectStatus) -> str:
    shown = [
        ("arrival to servable, p50", "latency/arrival_to_servable/p50_ms", "ms"),
        ("arrival to servable, p99", "latency/arrival_to_servable/p99_ms", "ms"),
        ("keys in the store", "store/keys", "count"),
        ("answers given", "requests/features", "count"),
        ("time to read, p50", "requests/p50_read_us", "us"),
    ]
    made = [
        f"<div class=figure><b {_bound(status, path, kind)}</b><span>{name}</span></div>" for name, path, kind in shown
    ]
    return f"<div class=figures>{''.join(made)}</div>"


def _streams(status: ProjectStatus) -> str:
    dots = {name: f'<span class=dot style="background:var(--{name})"></span>{name}' for name in VERDICTS}
    made = []
    for name in status.streams:
        at = f"streams/{name}"
        cells = [
            _cell(status, f"{at}/{field}", "count") for field in ("read", *(f"verdicts/{each}" for each in VERDICTS))
        ]
        table = _table(["stream", "read", *VERDICTS], [_row(name, cells)], dots)
        made.append(table + _bar(status, at) + _pace(status, at))
    return _section("Streams", made)


def _pace(status: ProjectStatus, at: str) -> str:
    """How fast a stream is read and how far behind it is."""
    rate, events, seconds = (
        f"<b {_bound(status, f'{at}/{field}', kind)}</b>"
        for field, kind in (("rate_per_s", "rate"), ("lag_events", "count"), ("lag_seconds", "seconds"))
    )
    line = f'<polyline data-spark="{escape(at)}/rate_per_s"/>'
    spark = f'<svg class=spark viewBox="0 0 120 22" preserveAspectRatio=none aria-hidden=true>{line}</svg>'
    return f"<p class=pace>{rate} {spark} <span class=right>{seconds} behind, events: {events}</span></p>"


def _bar(status: ProjectStatus, at: str) -> str:
    parts = [
        f'<i data-grow="{escape(at)}/verdicts/{verdict}" '
        f'style="background:var(--{verdict});flex-grow:{_at(status, f"{at}/verdicts/{verdict}") or 0}"></i>'
        for verdict in VERDICTS
    ]
    return f"<div class=bar aria-hidden=true>{''.join(parts)}</div>"


def _lake(status: ProjectStatus) -> str:
    """What the archive has put into the lake: exact counts, and how much is still to come."""
    heads = ["lake", "records", "not yet", "duplicates", "contradicting", "lost", "last batch took"]
    rows = []
    for name in status.lake:
        at = f"lake/{name}"
        cells = [_cell(status, f"{at}/{field}", "count") for field in ("archived", "lag_events", "verdicts/duplicate")]
        cells += [_cell(status, f"{at}/{field}", "count", alarm=True) for field in ("conflict", "lost")]
        rows.append(_row(name, [*cells, _cell(status, f"{at}/batch_seconds", "seconds")]))
    return _section("Lake", [_table(heads, rows)]) if rows else ""


def _skew(status: ProjectStatus) -> str:
    """What the audit has found: how often each feature was not what was known, and why."""
    causes = list(status.skew.causes or {})
    heads = ["skew", "compared", "differ", *causes]
    rows = []
    for name in status.skew.features or {}:
        at = f"skew/features/{name}"
        cells = [_cell(status, f"{at}/{field}", "count") for field in ("compared", "mismatched")]
        cells += [_cell(status, f"{at}/causes/{each}", "count", alarm=each == "defect") for each in causes]
        rows.append(_row(name, cells))
    return _section("Skew", [_table(heads, rows)]) if rows else ""


def _labels(status: ProjectStatus) -> str:
    """How good predictions were, as far as labels have come."""
    states = ("labelled", "corrected", "defaulted", "open")
    figures = ("precision", "recall", "auc", "log_loss", "mae")
    heads = ["label", "predictions", *states, *(name.replace("_", " ") for name in figures)]
    rows = []
    for name, label in status.labels.items():
        for version in label.versions:
            at = f"labels/{name}/versions/{version}"
            cells = [_cell(status, f"{at}/count", "count")]
            cells += [_cell(status, f"{at}/states/{state}", "count") for state in states]
            cells += [_cell(status, f"{at}/{figure}", "figure") for figure in figures]
            rows.append(_row(f"{name}, version {version}", cells))
    return _section("Evaluation", [_table(heads, rows)]) if rows else ""


def _tiles(status: ProjectStatus) -> str:
    heads = ["tiles", "batch", "took", "rows of state", "state", "dropped by the watermark"]
    kinds = (("batch", "count"), ("batch_ms", "ms"), ("state_rows", "count"), ("state_bytes", "bytes"))
    rows = []
    for name in status.tile_sets:
        at = f"tile_sets/{name}"
        cells = [_cell(status, f"{at}/{field}", kind) for field, kind in kinds]
        rows.append(_row(name, [*cells, _cell(status, f"{at}/dropped_by_watermark", "count", alarm=True)]))
    return _section("Tiles", [_table(heads, rows)] if rows else [])


def _views(status: ProjectStatus) -> str:
    heads = ["view", "by", "features", "mode", "freshness", "p50", "p99", "allowed"]
    rows, forms = [], []
    for name, view in status.views.items():
        at = f"views/{name}"
        fresh = ("freshness_ms", "freshness_p50_ms", "freshness_p99_ms", "max_staleness_ms")
        by = ", ".join(view.key) or "everything"
        cells = [
            f"<td>{escape(by)}</td>",
            _cell(status, f"{at}/features", "count"),
            _cell(status, f"{at}/mode", "text"),
            *(
                _cell(status, f"{at}/{field}", "ms", alarm=f"{at}/stale" if n == 0 else False)
                for n, field in enumerate(fresh)
            ),
        ]
        rows.append(_row(name, cells))
        forms.append(_key_form(name, view.key))
    return _section("Views", [_table(heads, rows) + "".join(forms)] if rows else [])


def _key_form(name: str, key: Iterable[str]) -> str:
    """Reads a key."""
    inputs = "".join(
        f'<input name="{escape(column)}" placeholder="{escape(column)}" aria-label="{escape(column)}">'
        for column in key
    )
    path = escape(fill_path(FEATURES, name))
    return f'<form action="{path}">{inputs}<button>Read {escape(name)}</button></form><pre></pre>'


def _dimensions(status: ProjectStatus) -> str:
    heads = ["dimension", "by", "features", "rows", "keys", "size", "looked at", "cannot be read"]
    kinds = (("features", "count"), ("rows", "count"), ("keys", "count"), ("bytes", "bytes"), ("age_ms", "ms"))
    rows = []
    for name, dimension in status.dimensions.items():
        at = f"dimensions/{name}"
        cells = [f"<td>{escape(', '.join(dimension.key))}</td>"]
        cells += [_cell(status, f"{at}/{field}", kind) for field, kind in kinds]
        rows.append(_row(name, [*cells, _cell(status, f"{at}/failing", "text", alarm=True)]))
    forms = "".join(_key_form(name, dimension.key) for name, dimension in status.dimensions.items())
    return _section("Dimensions", [_table(heads, rows) + forms]) if rows else ""


def _models(status: ProjectStatus) -> str:
    """Who answers for each model, how often and how quickly, and what went wrong."""
    heads = ["model", "features", "champion", "challenger", "share", "shadows"]
    heads += ["scored", "failures", "p50", "p99", "fell back from", "cannot serve"]
    kinds = [(name, "text") for name in ("features", "champion", "challenger")]
    kinds += [("share", "share"), ("shadows", "list"), ("scored", "count")]
    rows = []
    for name in status.models:
        at = f"models/{name}"
        cells = [_cell(status, f"{at}/{field}", kind) for field, kind in kinds]
        cells.append(_cell(status, f"{at}/failures", "count", alarm=True))
        cells += [_cell(status, f"{at}/{field}", "fine_ms") for field in ("p50_ms", "p99_ms")]
        cells += [_cell(status, f"{at}/{field}", "text", alarm=True) for field in ("fallback_from", "failing")]
        rows.append(_row(name, cells))
    return _section("Models", [_table(heads, rows)]) if rows else ""


def _filler(status: ProjectStatus) -> str:
    heads = ["materialiser", "behind", "tile rows", "progress", "malformed", "gaps", "tiles", "merged", "size"]
    at = "materialiser"
    cells = [
        _cell(status, f"{at}/lag_records", "count"),
        *(_cell(status, f"{at}/{kind}", "count") for kind in ("tiles", "progress")),
        *(_cell(status, f"{at}/{kind}", "count", alarm=True) for kind in ("malformed", "gaps")),
        _cell(status, "store/tiles", "count"),
        _cell(status, "store/levels", "count"),
        _cell(status, "store/bytes", "bytes"),
    ]
    return _section("Store", [_table(heads, [_row("changelog", cells)])])


def _latency(status: ProjectStatus) -> str:
    """How long events take, step by step."""
    shares = ("p50", "p95", "p99")
    rows = [
        _row(step.replace("_", " "), [_cell(status, f"latency/{step}/{share}_ms", "ms") for share in shares])
        for step in status.latency
    ]
    return _section("How long events take", [_table(["in the last minutes", *shares], rows)])


def _section(title: str, sheets: Iterable[str]) -> str:
    made = "".join(f"<div class=sheet>{sheet}</div>" for sheet in sheets)
    return f"<h2>{title}</h2>{made or '<p class=faint>The pipeline has not said anything yet.</p>'}"


def _table(heads: Iterable[str], rows: Iterable[str], marked: Mapping[str, str] | None = None) -> str:
    head = "".join(f"<th>{(marked or {}).get(name, name)}</th>" for name in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _row(name: str, cells: Iterable[str]) -> str:
    return f"<tr><td>{escape(name)}</td>{''.join(cells)}</tr>"


def _cell(status: ProjectStatus, path: str, kind: str, *, alarm: str | bool = False) -> str:
    """A cell that the script keeps up to date; `alarm` names what turns it red, or says the cell itself does."""
    if not alarm:
        return f"<td {_bound(status, path, kind)}</td>"
    watched = path if alarm is True else str(alarm)
    colour = " class=bad" if _at(status, watched) else ""
    return f'<td data-alarm="{escape(watched)}"{colour} {_bound(status, path, kind)}</td>'


def _bound(status: ProjectStatus, path: str, kind: str) -> str:
    return f'data-path="{escape(path)}" data-format={kind}>{escape(written(_at(status, path), kind))}'


def _at(status: ProjectStatus, path: str) -> Any:
    place: Any = status
    for name in path.split("/"):
        place = place.get(name) if isinstance(place, Mapping) else getattr(place, name, None)
    return None if place is UNSET else place


def written(value: Any, kind: str) -> str:
    """A value as the page writes it, the same as the script does.

    >>> written(12345, "count"), written(1500, "ms"), written(2_000_000, "bytes"), written(0.25, "rate")
    ('12,345', '1.5 s', '2.0 MB', '0.2/s')
    """
    return NOTHING if value is None else _FORMATS[kind](value)


def _milliseconds(value: float) -> str:
    if value < 1_000:
        return f"{value:,.0f} ms"
    return f"{value / 1_000:.1f} s" if value < 120_000 else f"{value / 60_000:,.0f} min"


def _bytes(value: float) -> str:
    units = ["B", "kB", "MB", "GB", "TB"]
    while value >= 1_000 and len(units) > 1:
        value, units = value / 1_000, units[1:]
    return f"{value:,.0f} B" if units[0] == "B" else f"{value:.1f} {units[0]}"


_FORMATS: dict[str, Callable[[Any], str]] = {
    "count": lambda value: f"{value:,.0f}",
    "text": str,
    "share": lambda value: f"{100 * value:.1f} %",
    "list": lambda value: ", ".join(map(str, value)) or NOTHING,
    "figure": lambda value: f"{value:.4f}",
    "fine_ms": lambda value: f"{value:.2f} ms",
    "rate": lambda value: f"{value:,.1f}/s" if value < 10 else f"{value:,.0f}/s",
    "ms": _milliseconds,
    "us": lambda value: f"{value:,.0f} µs" if value < 1_000 else f"{value / 1_000:.1f} ms",
    "seconds": lambda value: _milliseconds(1_000 * value),
    "bytes": _bytes,
}
