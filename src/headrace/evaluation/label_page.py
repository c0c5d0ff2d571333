"""The figures of labels as a page that needs nothing beside itself: over time, by segment, with calibration."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from headrace.evaluation.report import written
from headrace.plural import show_count

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --real: #2a9d5c; --said: #e9a23b; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
svg { background: var(--soft); border-radius: 4px; } svg text { font-size: 11px; fill: currentColor; }
figure { display: inline-block; margin: 1rem 1rem 1rem 0; } figcaption { font-size: 13px; }
"""
WIDE, HIGH, EDGE = 460, 180, 34
FIGURES = {
    "binary": ("count", "closed", "coverage", "positive_rate", "precision", "recall", "f1", "auc", "log_loss", "brier"),
    "regression": ("count", "closed", "coverage", "mae", "rmse", "bias"),
}
OVER_TIME = {"binary": ("auc", "log_loss", "positive_rate", "recall"), "regression": ("mae", "rmse", "bias")}


def page(project: str, told: Sequence[dict[str, Any]]) -> str:
    """A page of what `headrace evaluate --json` tells."""
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{escape(project)}: evaluation</title>
<style>{STYLE}</style>
<h1>{escape(project)}: how good predictions were</h1>
{"".join(map(_label, told))}
</html>
"""


def _label(told: dict[str, Any]) -> str:
    title = f"<h2>{escape(told['label'])} of {escape(told['model'])}</h2>"
    if told["known_until"] is None:
        return f"{title}<p>Nothing is known yet.</p>"
    names = FIGURES[told["kind"]]
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    rows = [(f"version {each['version']}", each) for each in told["versions"]]
    rows += [(f"version {each['version']}, {each['segment']} {each['value']}", each) for each in told["segments"]]
    table = "".join(_row(name, each, names) for name, each in rows)
    plots = "".join(_plots(each["version"], told) for each in told["versions"])
    windows = "".join(
        _row(
            f"{each['start']}, version {each['version']} (stated {show_count(len(each['restatements']), 'time')})",
            each,
            names,
        )
        for each in told["windows"]
    )
    return f"""{title}
<p>As known at {escape(told["known_until"])}; horizon {escape(told["horizon"])}, windows of {escape(told["window"])}.
Dashed lines are what was to be expected if {escape(told["assumes"])}.</p>
<table><tr><th></th>{head}</tr>{table}</table>
{plots}
<details><summary>Window by window, with how often each was stated</summary>
<table><tr><th>window</th>{head}</tr>{windows}</table></details>
"""


def _row(name: str, each: dict[str, Any], names: Sequence[str]) -> str:
    cells = "".join(f"<td>{written(each.get(figure))}</td>" for figure in names)
    return f"<tr><td>{escape(name)}</td>{cells}</tr>"


def _plots(version: int, told: dict[str, Any]) -> str:
    """The figures of a version over time, and its calibration."""
    windows = [each for each in told["windows"] if each["version"] == version]
    found = []
    for name in OVER_TIME[told["kind"]]:
        real = [each.get(name) for each in windows]
        said = [(each.get("estimate") or {}).get(name, {}).get("estimated") for each in windows]
        found.append(
            _figure(f"{name.replace('_', ' ')} of version {version}", [(real, "--real", ""), (said, "--said", "4")])
        )
    (whole,) = [each for each in told["versions"] if each["version"] == version]
    if whole.get("calibration"):
        found.append(_calibration(version, whole["calibration"]))
    return "".join(found)


def _figure(title: str, lines: Sequence[tuple[Sequence[float | None], str, str]]) -> str:
    values = [value for line, _, _ in lines for value in line if value is not None]
    if not values:
        return ""
    low, high = min(values), max(values)
    high = high if high > low else low + 1e-9
    drawn = "".join(_line(line, colour, dashes, low, high) for line, colour, dashes in lines)
    marks = f'<text x="2" y="14">{high:.4g}</text><text x="2" y="{HIGH - 6}">{low:.4g}</text>'
    return _drawing(title, drawn + marks)


def _line(values: Sequence[float | None], colour: str, dashes: str, low: float, high: float) -> str:
    """A line through the values that are there; it breaks where one is not."""
    step = (WIDE - EDGE - 8) / max(1, len(values) - 1)
    runs: list[list[str]] = [[]]
    for at, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            y = HIGH - 12 - (HIGH - 24) * (value - low) / (high - low)
            runs[-1].append(f"{EDGE + at * step:.1f},{y:.1f}")
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return "".join(
        f'<polyline points="{" ".join(run)}" fill="none" stroke="var({colour})" stroke-width="2"{dashed}/>'
        for run in runs
        if run
    )


def _calibration(version: int, bins: Sequence[dict[str, Any]]) -> str:
    """What was said beside how often it was so, with its interval."""
    side = HIGH - 24

    def spot(said: float, happened: float) -> tuple[float, float]:
        return EDGE + side * said, HIGH - 12 - side * happened

    (left, bottom), (right, top) = spot(0, 0), spot(1, 1)
    drawn = [f'<line x1="{left}" y1="{bottom}" x2="{right}" y2="{top}" stroke="var(--line)"/>']
    for each in bins:
        x, y = spot(each["said"], each["happened"])
        low, high = (spot(each["said"], bound)[1] for bound in each["interval"])
        drawn.append(f'<line x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" y2="{high:.1f}" stroke="var(--real)"/>')
        drawn.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="var(--real)"/>')
    return _drawing(f"calibration of version {version}: said (across) and happened (up)", "".join(drawn))


def _drawing(title: str, inside: str) -> str:
    shown = escape(title)
    return (
        f'<figure><svg width="{WIDE}" height="{HIGH}" role="img" aria-label="{shown}">{inside}</svg>'
        f"<figcaption>{shown}</figcaption></figure>"
    )
