"""What an audit has found as a page that needs nothing beside itself."""

from __future__ import annotations

from html import escape
from typing import Any

from headrace.plural import show_count
from headrace.skew.cause import CAUSES

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.bar { display: flex; justify-content: flex-end; height: .8rem; width: 12rem; overflow: hidden; }
.bar { background: #2a9d5c; border-radius: 2px; }
.bar i { display: block; height: 100%; }
.freshness { background: #e9c46a; } .late-lane { background: #f4a261; }
.version { background: #457b9d; }
.ahead { background: #b388eb; }
.undecided { background: #888; } .unready { background: #8ecae6; } .defect { background: #d62828; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin: 0 .3rem 0 1rem; border-radius: 2px; }
section { background: var(--soft); padding: .7rem 1rem; margin: 1rem 0; border-left: 4px solid #d62828; }
pre { margin: 0; white-space: pre-wrap; }
"""


def page(project: str, told: dict[str, Any]) -> str:
    """A page of what `headrace skew --json` tells."""
    defects = told["causes"]["defect"]
    verdict = show_count(defects, "defect") if defects else "No defect"
    compared = f"{show_count(told['compared'], 'value')} of {show_count(sum(told['samples'].values()), 'sample')}"
    waiting = show_count(told["waiting"], "sample waits", "samples wait")
    rows = "".join(_row(name, each) for name, each in told["features"].items())
    head = "".join(f"<th>{escape(name)}</th>" for name in ("compared", "equal", "rate", "95 % interval", *CAUSES))
    legend = "".join(f'<i class="{_class(cause)}"></i>{escape(cause)}' for cause in CAUSES)
    evidence = "".join(_defect(each) for each in told["evidence"])
    ages = "".join(_ages(view, each) for view, each in told["freshness"].items())
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{escape(project)}: skew</title>
<style>{STYLE}</style>
<h1>{escape(project)}: what was served beside what was known</h1>
<p><strong>{verdict}</strong> among {compared},
from {escape(told["since"])} to {escape(told["until"])}. {waiting} for the lake.</p>
<p class="legend"><i class="bar" style="display:inline-block;width:.8rem"></i>equal{legend}</p>
<table><tr><th>feature</th><th></th>{head}</tr>{rows}</table>
<h2>How old the newest event was</h2>
<table><tr><th>view</th><th>values</th><th>p50 since it happened</th><th>p99</th><th>p50 since it arrived</th>
<th>p99</th><th>p50 over time</th></tr>{ages}</table>
{evidence}
</html>
"""


def _row(name: str, each: dict[str, Any]) -> str:
    low, high = each["rate_interval"]
    parts = "".join(_part(cause, each["causes"][cause] / each["compared"]) for cause in CAUSES)
    cells = [f"{each['compared']:,}", f"{each['equal']:,}", f"{each['rate']:.3%}", f"{low:.3%} to {high:.3%}"]
    cells += [f"{each['causes'][cause]:,}" for cause in CAUSES]
    told = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr><td>{escape(name)}</td><td><div class="bar">{parts}</div></td>{told}</tr>'


def _ages(view: str, each: dict[str, Any]) -> str:
    """How old the values of a view were, and how that went."""
    spreads = [each[part][share] for part in ("since_it_happened_s", "since_it_arrived_s") for share in ("p50", "p99")]
    cells = "".join(f"<td>{'-' if age is None else f'{age:,.1f} s'}</td>" for age in spreads)
    line = [part["since_it_arrived_s"]["p50"] for part in each["over_time"]]
    return f"<tr><td>{escape(view)}</td><td>{each['count']:,}</td>{cells}<td>{_line(line)}</td></tr>"


def _line(values: list[float]) -> str:
    """A line of values from 0 to the greatest."""
    most = max(values, default=0) or 1
    points = " ".join(
        f"{at * 120 / max(1, len(values) - 1):.1f},{20 - 19 * each / most:.1f}" for at, each in enumerate(values)
    )
    return f'<svg width=120 height=21 role=img><polyline points="{points}" fill=none stroke="#457b9d"/></svg>'


def _part(cause: str, share: float) -> str:
    """A stretch of the bar; one that is there at all can be seen."""
    return f'<i class="{_class(cause)}" style="width:{max(share, 0.01) if share else 0:.1%}"></i>'


def _defect(each: dict[str, Any]) -> str:
    values = "\n".join(
        f"{name}: served {value['served']!r}, known {value['known']!r}" for name, value in each["features"].items()
    )
    events = "\n".join(
        f"event {event['id']} at {event['event_time']}, arrived {event['arrived_at']} "
        f"({event['partition']}/{event['offset']})"
        for event in each["events"]
    )
    where = f"{each['view']} of {', '.join(map(str, each['key']))} at {each['at']} ({each['source']}, {each['record']})"
    text = "\n".join(line for line in (where, each["says"], values, events) if line)
    return f"<section><h2>{escape(each['kind'])}</h2><pre>{escape(text)}</pre></section>"


def _class(cause: str) -> str:
    return cause.replace(" ", "-")
