"""The evidence of an incident as a picture: a self-contained SVG, made by hand, with its meaning as text.

What is drawn is in the incident; nothing is asked for again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from headrace.clock import show_time
from headrace.drift.incident import DriftAlarm, Incident
from headrace.drift.series_watch import Point

WIDTH, HEIGHT = 720, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 15, 40, 40
BAND = 2.0
"""How many scales the band is wide to either side of what is expected."""


def plot(incident: Incident, series: str | None = None) -> str:
    """Draw a series of an incident, what was expected of it, and where it began to move.

    Parameters
    ----------
    incident
        With its alarms.
    series
        Which of its series; the one that moved furthest unless said otherwise.

    Examples
    --------
    >>> from headrace.drift.incident import opened
    >>> seen = tuple(Point(at, float(at > 5), 0.0, 0.1) for at in range(10))
    >>> sizes = {"effect": 1.0, "before": 0.0, "now": 1.0, "times_least": 100.0}
    >>> moved = DriftAlarm("null rate of card", 6, 10, **sizes, evidence=seen)
    >>> plot(opened("fraud", 3, moved)).startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    True
    """
    alarm = next((each for each in incident.alarms if each.series == series), incident.moved)
    return drawn(alarm, f"{incident.model} version {incident.version}: {alarm.series}")


def drawn(alarm: DriftAlarm, title: str) -> str:
    """The picture of one alarm."""
    points = alarm.evidence or (Point(alarm.since, alarm.now, alarm.before, 0.0),)
    scale = _Scale(points)
    band = [(point.start, point.expected + BAND * point.scale) for point in points]
    band += [(point.start, point.expected - BAND * point.scale) for point in reversed(points)]
    since = scale.x(max(alarm.since, points[0].start))
    floor = HEIGHT - _BOTTOM
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-labelledby="title told" font-family="sans-serif" font-size="12">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="told">{escape(alarm.says)}. The band is what was expected.</desc>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="20" font-size="14">{escape(title)}</text>',
        f'<polygon points="{scale.path(band)}" fill="#c6dbef"/>',
        f'<polyline points="{scale.path((point.start, point.value) for point in points)}" fill="none" '
        'stroke="#08306b" stroke-width="1.5"/>',
        f'<line x1="{since:.1f}" y1="{_TOP}" x2="{since:.1f}" y2="{floor}" stroke="#b30000" stroke-dasharray="5 3"/>',
        f'<text x="{since - 4:.1f}" y="{_TOP + 11}" fill="#b30000" text-anchor="end">since</text>',
        *_labels(points, scale),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _labels(points: Sequence[Point], scale: _Scale) -> list[str]:
    """The ends of both axes."""
    floor = HEIGHT - _BOTTOM
    return [
        f'<line x1="{_LEFT}" y1="{floor}" x2="{WIDTH - _RIGHT}" y2="{floor}" stroke="#666666"/>',
        f'<text x="{_LEFT - 6}" y="{_TOP + 5}" text-anchor="end">{scale.high:.3g}</text>',
        f'<text x="{_LEFT - 6}" y="{floor}" text-anchor="end">{scale.low:.3g}</text>',
        f'<text x="{_LEFT}" y="{floor + 18}">{show_time(points[0].start)}</text>',
        f'<text x="{WIDTH - _RIGHT}" y="{floor + 18}" text-anchor="end">{show_time(points[-1].start)}</text>',
    ]


class _Scale:
    """Where moments and values are in the picture."""

    def __init__(self, points: Sequence[Point]) -> None:
        self.first, last = points[0].start, points[-1].start
        self.span = max(1, last - self.first)
        wide = [BAND * point.scale for point in points]
        ends = [point.expected + sign * by for point, by in zip(points, wide, strict=True) for sign in (1, -1)]
        self.low, self.high = min(*ends, *(p.value for p in points)), max(*ends, *(p.value for p in points))
        self.tall = (self.high - self.low) or 1.0

    def x(self, moment: int) -> float:
        return _LEFT + (moment - self.first) / self.span * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - _BOTTOM - (value - self.low) / self.tall * (HEIGHT - _TOP - _BOTTOM)

    def path(self, places: Iterable[tuple[int, float]]) -> str:
        return " ".join(f"{self.x(moment):.1f},{self.y(value):.1f}" for moment, value in places)
