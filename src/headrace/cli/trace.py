"""`headrace trace`: one event's whole way, from its place in the log to the training sets that have it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.output import data, data_json, line, table, talk
from headrace.errors import DataError, shown
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.define.stream import Stream
    from headrace.project import Project

SHOWN = 10


@click.command("trace")
@click.argument("event_id", metavar="EVENT_ID")
@options.project_options
@click.option("--stream", metavar="STREAM", help="Look in this stream alone.")
@options.as_json
def command(event_id: str, path: Path | None, env: str | None, stream: str | None, as_json: bool) -> None:
    """Follow one event through log, tiles, predictions and sets.

    Every copy with its place and its verdict; the lane and the tiles of the one that counts, with the rows of the
    changelog that have it and when they were published; the predictions and the training sets in which it counted.
    An event is its id and its time: where one id stands for events of different times, each is followed by itself.
    An event is known here some seconds after it came, when the archive has it.
    """
    from headrace import project
    from headrace.cli.dead_letter_text import streams
    from headrace.topics import open_log

    loaded = project.load(path, env)
    with open_log(loaded.config) as log:
        told = [_traced(loaded, log, each, event_id) for each in streams(loaded, stream)]
    found = [each for each in told if each["events"]]
    if not found:
        hint = "The archive has an event some seconds after it came; `headrace status` says how far it is."
        raise DataError("not-found", "The lake has no record of this event.", got=shown(event_id), hint=hint)
    if as_json:
        data_json({"event_id": event_id, "streams": found})
        return
    for each in found:
        if len(each["events"]) > 1:
            events = show_count(len(each["events"]), "event")
            data(f"{event_id} in {each['stream']} is the id of {events} of different times")
        for event in each["events"]:
            _show(event_id, each["stream"], event)


def _traced(loaded: Project, log: Any, stream: Stream, event_id: str) -> dict[str, Any]:
    from headrace.skew.trace import Trace
    from headrace.training.membership import containing

    trace = Trace(loaded.plan(), loaded.config, log)

    def followed(event_time: int | None, copies: list[dict[str, Any]]) -> dict[str, Any]:
        told: dict[str, Any] = {"event_time": copies[0]["event_time"], "copies": copies}
        counting = trace.event(stream, event_id, event_time)
        if counting is None:
            return told | {"lane": None, "tiles": [], "predictions": [], "training_sets": []}
        event, lane = counting
        return told | {
            "lane": lane,
            "tiles": trace.tiles(stream, event, lane),
            "predictions": trace.predictions(stream, event),
            "training_sets": list(containing(loaded, stream, event)),
        }

    events = trace.copies(stream, event_id).items()
    return {"stream": stream.name, "events": [followed(moment, copies) for moment, copies in events]}


def _show(event_id: str, stream: str, told: dict[str, Any]) -> None:
    moment = told["event_time"] or "an unknown time"
    line(f"{event_id} in {stream} at {moment}: {show_count(len(told['copies']), 'copy', 'copies')}")
    columns = ("partition", "offset", "event_time", "arrived_at", "verdict")
    table(columns, [[str(each[name]) for name in columns] for each in told["copies"]])
    if told["lane"] is None:
        talk("No copy of it counts.")
        return
    for tile in told["tiles"]:
        data("")
        line(f"tile {tile['tile']} of {tile['tiles']}, key {', '.join(map(str, tile['key']))}, lane {tile['lane']}")
        rows = [
            [each["published_at"], each["run"], each["lane"], f"{each['version']}", _has(each)]
            for each in _lane_rows(tile)
        ]
        table(("published", "run", "lane", "version", "has it"), rows)
    _show_predictions(told["predictions"])
    for each in told["training_sets"]:
        data(f"training set {each['folder']} ({each['mode']}): {show_count(each['rows'], 'row')}")


def _lane_rows(tile: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the event's own lane."""
    return [each for each in tile["rows"] if each["lane"] == tile["lane"] or tile["lane"] == "late"]


def _has(row: dict[str, Any]) -> str:
    return {True: "yes", False: "not yet", None: "from the lake"}[row["has_it"]]


def _show_predictions(found: list[dict[str, Any]]) -> None:
    data(f"\n{show_count(len(found), 'prediction')} with it")
    if found:
        rows = [
            [each["at"], f"{each['model']}@{each['version']}", f"{each['score']:.4f}", "its own" if each["own"] else ""]
            for each in found[:SHOWN]
        ]
        table(("at", "model", "score", ""), rows)
    if len(found) > SHOWN:
        talk(f"{show_count(len(found) - SHOWN, 'more is', 'more are')} not shown; --json has them.")
