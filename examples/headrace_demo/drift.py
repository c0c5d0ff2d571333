"""`headrace demo --drift`: thieves change their ways, and one incident says so once labels have come."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from headrace.cli.output import data, table, talk
from headrace_demo.learning import learn
from headrace_demo.screen import screen

if TYPE_CHECKING:
    from headrace.project import Project
    from headrace_demo.traffic import Seen
    from headrace_demo.world.stream import World


def report(shop: Project, world: World, rate: float) -> dict[str, Any]:
    """Learn, replay, and what the watch has found; the verdict on it is `found`."""
    from headrace.clock import DAY, micros, show_time
    from headrace.evaluation.alerts import read_alerts
    from headrace.topics import open_log
    from headrace_demo import stack, traffic, turning

    talk(f"{world.payments:,} payments of {world.days} days, all made up; thieves become patient on the way.")
    replay = learn(shop, talk, lambda: turning.written(shop.config.root, world))
    with stack.started(shop, talk) as url, open_log(shop.config) as log:
        stack.scoring(shop)
        days = (world.start - turning.BEGIN) // DAY
        talk(
            f"Replaying {len(replay.payments):,} payments and {len(replay.labels):,} labels of {days} days; see {url}/"
        )
        with screen() as show:
            seen = traffic.run(shop, log, replay.payments, partial(turning.send, shop, log, replay, rate), show)
        talk("Waiting until the last labels have been looked at.")
        turning.looked_at(shop, log)
        alerts = read_alerts(shop.config, log)
    opened = [alert for alert in alerts if alert["what"] == "opened"]
    near = all(abs(micros(alert["since"]) - replay.turned) <= DAY for alert in opened)
    return {
        "seed": world.seed,
        "turned": show_time(replay.turned),
        "payments": len(seen.payments),
        "scored": len(seen.scored),
        "labels": len(replay.labels),
        "stopped": {
            "before": _stopped(seen, replay.turned, after=False),
            "after": _stopped(seen, replay.turned, after=True),
        },
        "alerts": alerts,
        "found": len(opened) == 1 and opened[0]["kind"] == "concept" and near,
        "all_scored": seen.complete,
    }


def _stopped(seen: Seen, turned: int, *, after: bool) -> dict[str, int]:
    """How many thefts there were before or after thieves changed their ways, and how many raised an alarm."""
    mine = [
        seen.scored[name].decision
        for name, sent in seen.payments.items()
        if sent.is_fraud and name in seen.scored and (sent.sent_at >= turned) == after
    ]
    return {"frauds": len(mine), "stopped": sum(mine)}


def show(found: dict[str, Any]) -> None:
    """The report for eyes."""
    data(f"{found['scored']:,} of {found['payments']:,} payments that can be read have a score\n")
    rows = []
    for name, told in found["stopped"].items():
        share = told["stopped"] / told["frauds"] if told["frauds"] else 0.0
        rows.append((name, f"{told['stopped']:,} of {told['frauds']:,}", f"{share:.0%}"))
    table((f"thefts {found['turned']}", "stopped", "share"), rows)
    data("")
    for alert in found["alerts"]:
        data(f"{alert['what']}, seen with the labels of the window that ended at {alert['seen_at']}: {alert['says']}")
    data("one incident, which names the cause" if found["found"] else "that is NOT one incident that names the cause")
