"""`headrace lateness`: how late events arrive, what each allowed lateness would make of that, and which to choose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.output import data_json, talk
from headrace.clock import SECOND
from headrace.errors import DefinitionError, HeadraceError, UsageError, shown
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.cli.lateness_source import Gathered
    from headrace.define.stream import Stream
    from headrace.lateness.delays import Distribution
    from headrace.lateness.state_size import StateModel
    from headrace.project import Project
    from headrace.status.records import TileSetStatus

LAST = 100_000
MOST = 1_000_000


@click.command("lateness")
@click.argument("stream", required=False, metavar="[STREAM]")
@options.project_options
@click.option("--live", is_flag=True, help="Look at the last records of the log, not at the lake.")
@click.option("--last", type=click.IntRange(1, MOST), metavar="N", help=f"With --live, how many; {LAST:,} by default.")
@click.option("--outage", metavar="TIME", help="Also find the lateness that survives an outage, such as 45m.")
@click.option("--state-budget", "budget", metavar="SIZE", help="With --outage, what its state may take, such as 2GB.")
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE", help="Draw the delays as .png or .svg.")
@options.as_json
def command(
    stream: str | None, path: Path | None, env: str | None, plot: Path | None, as_json: bool, **wishes: Any
) -> None:
    """Show how late events arrive, and choose the allowed lateness.

    The delay of an event is how long after it happened it arrived. Everything in the lake is counted, or when it has
    nothing the last records of the log; further copies of an event are left out.
    """
    from headrace import project
    from headrace.cli.dead_letter_text import streams
    from headrace.cli.lateness_text import show

    outage, budget = _outage(wishes)
    loaded = project.load(path, env)
    chosen = streams(loaded, stream)
    if plot is not None:
        from headrace.lateness.plot import refuse

        refuse(plot)
        if len(chosen) > 1:
            hint = f"One of {', '.join(each.name for each in chosen)}."
            raise UsageError("bad-usage", "A picture is of one stream: say which.", hint=hint)
    told = {}
    for each in chosen:
        found = _gather(loaded, each, live=wishes["live"], last=wishes["last"])
        told[each.name] = report(loaded, each, found, outage, budget)
        if plot is not None:
            _plot(plot, each, found, told[each.name])
    if as_json:
        data_json({"streams": told})
        return
    for name, facts in told.items():
        show(name, facts)


def _outage(wishes: dict[str, Any]) -> tuple[int | None, int | None]:
    from headrace.cli.byte_size import parse_size
    from headrace.clock import duration

    if wishes["last"] is not None and not wishes["live"]:
        raise UsageError("bad-usage", "--last is of the log: say --live with it.")
    if wishes["outage"] is None:
        if wishes["budget"] is not None:
            raise UsageError("bad-usage", "--state-budget is for an outage: say --outage with it.")
        return None, None
    try:
        outage = duration(wishes["outage"])
    except DefinitionError as error:
        got = shown(wishes["outage"])
        raise UsageError("bad-usage", "--outage cannot be read.", got=got, hint=error.hint) from None
    return outage, None if wishes["budget"] is None else parse_size(wishes["budget"], "--state-budget")


def _gather(project: Project, stream: Stream, *, live: bool, last: int | None) -> Gathered:
    from headrace.cli.lateness_source import from_lake, from_log
    from headrace.topics import open_log

    found = None if live else from_lake(project, stream)
    if found is not None:
        return found
    if not live:
        talk(f"The lake has nothing of {stream.name} yet: these are the last {LAST:,} records of the log.")
    with open_log(project.config) as log:
        return from_log(project, stream, log, last or LAST)


def report(
    project: Project, stream: Stream, found: Gathered, outage: int | None = None, budget: int | None = None
) -> dict[str, Any]:
    """Everything the verb tells of a stream; times are RFC 3339, durations in microseconds."""
    from headrace.clock import show_time

    delays = found.delays
    told: dict[str, Any] = {
        "source": found.source,
        "records": delays.count,
        "exact": delays.exact,
        "first_arrival": None if delays.first is None else show_time(delays.first),
        "last_arrival": None if delays.last is None else show_time(delays.last),
        "left_out": {"copies": found.copies, "assumed_arrival": found.assumed, "unreadable": found.unreadable},
        "allowed_lateness": stream.allowed_lateness,
        "max_clock_skew": stream.max_clock_skew,
    }
    if not delays.count:
        return told
    overall, model = delays.overall(), _model(project, stream, found)
    return told | {
        "delays": _quantiles(overall),
        "partitions": {str(number): _quantiles(each) for number, each in delays.partitions().items()},
        "histogram": [{"from": low, "to": high, "records": count} for low, high, count in delays.histogram()],
        **_choices(stream, overall, model, outage, budget),
    }


def _quantiles(delays: Distribution) -> dict[str, int]:
    from headrace.lateness.delays import QUANTILES

    found = {name: delays.quantile(q) for name, q in QUANTILES.items()}
    return {"records": delays.count, **found, "max": delays.greatest}


def _choices(
    stream: Stream, delays: Distribution, model: StateModel, outage: int | None, budget: int | None
) -> dict[str, Any]:
    from headrace.lateness import choice

    best = choice.recommended(delays)
    marked, told = [stream.allowed_lateness, best], {}
    if outage is not None:
        survives = choice.surviving(delays, outage)
        marked.append(survives)
        told["outage"] = _survival(delays, model, outage, survives, budget)

    def lateness(value: int) -> dict[str, Any]:
        cost = model.state(value).as_json()
        return {"allowed_lateness": value, "late": delays.beyond(value), "state": cost}

    def skew(value: int) -> dict[str, Any]:
        return {"max_clock_skew": value, "future": delays.ahead(value)}

    return {
        "recommended": lateness(best),
        **told,
        "lateness_choices": [lateness(value) for value in choice.latenesses(delays, marked)],
        "skew_choices": [skew(value) for value in choice.skews(delays, [stream.max_clock_skew])],
        "state_model": {
            "rate_per_s": round(model.delays.rate(best), 3),
            "tile_sets": {each.id: _cost(each) for each in model.tile_sets},
        },
    }


def _survival(
    delays: Distribution, model: StateModel, outage: int, survives: int, budget: int | None
) -> dict[str, Any]:
    cost = model.state(survives)
    tail = max(0, delays.quantile(0.999))
    told: dict[str, Any] = {"outage": outage, "needed": outage + tail, "allowed_lateness": survives}
    told |= {"late": delays.beyond(survives), "state": cost.as_json()}
    if budget is None:
        return told
    longest = model.longest(budget)
    spared = None if longest is None else max(0, longest - tail) // SECOND * SECOND
    more = {"fits": cost.bytes <= budget, "longest_lateness": longest, "longest_outage": spared}
    return told | {"state_budget": budget, **more}


def _cost(each: Any) -> dict[str, Any]:
    names = ("grain", "keys", "identity_bytes", "tile_bytes", "measured")
    return {name: getattr(each, name) for name in names}


def _model(project: Project, stream: Stream, found: Gathered) -> StateModel:
    from headrace.lateness.state_size import StateModel, active_keys, cost

    sets = [tiles for tiles in project.plan().tile_sets if tiles.stream.name == stream.name]
    measured = _tile_sets(project)
    costs = tuple(cost(tiles, active_keys(tiles, found.events), measured.get(tiles.id)) for tiles in sets)
    return StateModel(found.delays, stream.max_clock_skew, costs)


def _tile_sets(project: Project) -> dict[str, TileSetStatus]:
    """What the pipeline last published of its tile sets; nothing when the log cannot be asked."""
    from headrace.config.config import names
    from headrace.status.records import PipelineStatus
    from headrace.status.topic import read_status
    from headrace.topics import STATUS, open_log

    try:
        with open_log(project.config) as log:
            found = read_status(log, names(project.config).topic(STATUS), PipelineStatus).get(PipelineStatus)
    except HeadraceError as error:
        talk(f"Sizes of state rows are not measured: {error.message}")
        return {}
    return {} if found is None else found.tile_sets


def _plot(file: Path, stream: Stream, found: Gathered, told: dict[str, Any]) -> None:
    from headrace.cli.lateness_text import delay
    from headrace.lateness.plot import draw

    if not found.delays.count:
        talk(f"There is nothing of {stream.name} to draw.")
        return
    shown_delays = {"P50": told["delays"]["p50"], "P99": told["delays"]["p99"]}
    chosen = {"allowed now": stream.allowed_lateness, "recommended": told["recommended"]["allowed_lateness"]}
    marks = {f"{name} {delay(value)}": value for name, value in (shown_delays | chosen).items()}
    draw(file, f"{stream.name}: {show_count(found.delays.count, 'record')}", found.delays.histogram(), marks)
    talk(f"Drew {file}.")
