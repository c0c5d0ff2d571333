"""`headrace dead-letters`: what was refused, why, what would become of it now; send it again, or let it go."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import dead_letter_text, options
from headrace.cli.interrupt import if_interrupted
from headrace.cli.output import data, data_json, table, talk
from headrace.errors import UsageError, shown
from headrace.plural import show_count

if TYPE_CHECKING:
    from headrace.define.stream import Stream
    from headrace.ingest.dead_letters.replay import Replayed
    from headrace.ingest.dead_letters.replay_record import ReplayRecord
    from headrace.spark.dead_letter import DeadLetter

SHOWN = 50
LEFT = 1


@click.group("dead-letters")
def command() -> None:
    """List, show, replay and drop dead letters.

    A dead letter is a record that is malformed, invalid or from the future. It is named by its position,
    PARTITION/OFFSET. STREAM may be left out when the project has only one.
    """


def _filters(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which letters are meant."""
    kinds = click.Choice(["malformed", "invalid", "future"])
    verdict = click.option("--verdict", type=kinds, help="Those with this verdict.")
    reason = click.option("--reason", metavar="TEXT", help="Those whose reason contains this text.")
    since = click.option("--since", metavar="WHEN", help="Those that arrived since a time, or an age such as 2h.")
    return verdict(reason(since(function)))


@command.command("list")
@click.argument("stream", required=False, metavar="[STREAM]")
@options.project_options
@_filters
@click.option("--limit", type=click.IntRange(1), default=SHOWN, metavar="N", help=f"The newest N; {SHOWN} by default.")
@options.as_json
def list_letters(
    stream: str | None, path: Path | None, env: str | None, limit: int, as_json: bool, **filters: Any
) -> None:
    """List dead letters, with how many there are for each reason."""
    from headrace.ingest.dead_letters.selection import choose, reasons

    told = {}
    with dead_letter_text.opened(path, env) as opened:
        for declared in dead_letter_text.streams(opened.project, stream):
            there = opened.letters(declared, values=False)
            chosen = choose(there, dead_letter_text.select_letters((), **filters))
            counts = [{"verdict": v, "reason": r, "letters": n} for v, r, n in reasons(chosen)]
            shown_letters = [dead_letter_text.brief(letter) for letter in chosen[-limit:]]
            told[declared.name] = {"total": len(there), "matching": len(chosen), "reasons": counts}
            told[declared.name]["letters"] = shown_letters
    if as_json:
        data_json({"streams": told})
        return
    for name, held in told.items():
        _show_list(name, held)


def _show_list(name: str, held: dict[str, Any]) -> None:
    count = held["matching"]
    data(f"stream {name}: {show_count(count, 'dead letter')}")
    for each in held["reasons"]:
        data(f"  {each['letters']:,} {each['verdict']}: {each['reason']}")
    if held["letters"]:
        columns = ("id", "arrived_at", "verdict", "size", "reason")
        table(columns, [[f"{each[name]}" for name in columns] for each in held["letters"]])
    if count > len(held["letters"]):
        talk(f"{show_count(count - len(held['letters']), 'older one is', 'older ones are')} not shown; see --limit.")


@command.command("show")
@click.argument("given", nargs=-1, required=True, metavar="[STREAM] ID")
@options.project_options
@click.option("--raw", is_flag=True, help="Write the value's bytes and nothing else.")
@options.as_json
def show_letter(given: tuple[str, ...], path: Path | None, env: str | None, raw: bool, as_json: bool) -> None:
    """Show one dead letter, and what admission says of it now."""
    from headrace.clock import SystemClock
    from headrace.ingest.dead_letters.replay_record import build_replay
    from headrace.ingest.dead_letters.selection import choose

    with dead_letter_text.opened(path, env) as opened:
        declared, ids = dead_letter_text.named(opened.project, given)
        if len(ids) != 1:
            raise UsageError("bad-usage", "Name one letter, as PARTITION/OFFSET.", got=shown(" ".join(given)))
        (letter,) = choose(opened.letters(declared, values=True), dead_letter_text.select_letters(ids))
        now = build_replay(letter, declared, now=SystemClock().now(), read=opened.reader(declared))
    if raw:
        click.echo(letter.value or b"", nl=False)
    elif as_json:
        data_json(
            {
                "stream": declared.name,
                **dead_letter_text.letter_json(letter),
                "now": dead_letter_text.current_verdict(now),
            }
        )
    else:
        _show(declared.name, letter, now)


def _show(stream: str, letter: DeadLetter, now: ReplayRecord) -> None:
    from headrace.clock import show_time

    data(f"{stream} {letter.id}: {letter.verdict}, {letter.reason}")
    data(f"arrived: {show_time(letter.arrived_at)}")
    for name, value in (("key", letter.key), *((f"header {name}", value) for name, value in letter.headers)):
        if value is not None:
            data(f"{name}: {dead_letter_text.readable(value)}")
    judged = now.judgement
    data(f"now: {judged.verdict}{f', {judged.reason}' if judged.reason else ''}")
    if letter.replaying is not None:
        data("a replay of it was cut off; the next one finds out how far it came")
    data(f"value: {'null' if letter.value is None else show_count(letter.size, 'byte')}")
    if letter.value:
        data(dead_letter_text.readable(letter.value))


@command.command("replay")
@click.argument("given", nargs=-1, metavar="[STREAM] [ID]...")
@options.project_options
@_filters
@click.option("--all", "every", is_flag=True, help="All of them.")
@click.option("--value", "file", type=click.File("rb"), metavar="FILE", help="A mended value for the one letter named.")
@click.option("--force", is_flag=True, help="Also those that would be dead letters again.")
@options.as_json
def replay_letters(
    given: tuple[str, ...], path: Path | None, env: str | None, every: bool, force: bool, as_json: bool, **more: Any
) -> int:
    """Send dead letters to their stream again, each exactly once.

    A record goes through admission again, as if it came when it first arrived. Letters that would be refused again are
    left where they are and listed; the exit code is then 1. A replay that was cut off is finished by the next one.
    """
    from headrace.cli.progress_bar import bar
    from headrace.clock import SystemClock
    from headrace.config.config import names
    from headrace.ingest.dead_letters.lock import locked
    from headrace.ingest.dead_letters.replay import Replayed, ReplayOptions, replay

    file = more.pop("file")
    with (
        if_interrupted(lambda: "Letters that were replayed stay so; the next replay finishes this one."),
        dead_letter_text.opened(path, env) as opened,
        locked(names(opened.project.config)),
        bar("replaying") as advance,
    ):
        declared, ids = dead_letter_text.named(opened.project, given)
        wanted = dead_letter_text.restricted(dead_letter_text.select_letters(ids, **more), every=every)
        if file is not None and len(ids) != 1:
            raise UsageError("bad-usage", "--value mends the one letter that is named.", got=shown(" ".join(ids)))
        value, topics = None if file is None else file.read(), opened.topics(declared)
        wish = ReplayOptions(wanted, force, value, opened.reader(declared))

        def progress(done: int, total: int) -> None:
            advance(done, total, show_count(done, "letter"))

        there = {topics.source, topics.dead} <= opened.log.topics().keys()
        done = replay(opened.log, declared, topics, wish, SystemClock(), progress) if there else Replayed()
    return _report_replay(declared, done, as_json=as_json)


def _report_replay(stream: Stream, done: Replayed, *, as_json: bool) -> int:
    for each in done.left:
        talk(f"left: {each.id}: {each.verdict}, {each.reason}")
    found = f", {len(done.found):,} found that an earlier replay had sent" if done.found else ""
    talk(f"Replayed {len(done.sent):,} of {stream.name}, {len(done.left):,} left{found}.")
    if as_json:
        sent = [{"id": each.id, **each.position._asdict(), "verdict": each.verdict} for each in done.sent]
        left = [{"id": each.id, "verdict": each.verdict, "reason": each.reason} for each in done.left]
        data_json({"stream": stream.name, "replayed": sent, "found": done.found, "left": left})
    return LEFT if done.left else 0


@command.command("drop")
@click.argument("given", nargs=-1, metavar="[STREAM] [ID]...")
@options.project_options
@_filters
@click.option("--all", "every", is_flag=True, help="All of them.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@options.as_json
def drop_letters(
    given: tuple[str, ...], path: Path | None, env: str | None, every: bool, yes: bool, as_json: bool, **filters: Any
) -> int:
    """Take dead letters away for good. The lake keeps their records."""
    from headrace.config.config import names
    from headrace.ingest.dead_letters.lock import locked
    from headrace.ingest.dead_letters.replay import drop
    from headrace.ingest.dead_letters.selection import choose

    with dead_letter_text.opened(path, env) as opened, locked(names(opened.project.config)):
        declared, ids = dead_letter_text.named(opened.project, given)
        wanted = dead_letter_text.restricted(dead_letter_text.select_letters(ids, **filters), every=every)
        chosen = choose(opened.letters(declared, values=False), wanted)
        if chosen and not yes and not _agreed(len(chosen), declared.name):
            talk("Nothing was dropped.")
            return LEFT
        dropped = drop(opened.log, opened.topics(declared), wanted) if chosen else []
    talk(f"Dropped {len(dropped):,} of {declared.name}.")
    if as_json:
        data_json({"stream": declared.name, "dropped": [letter.id for letter in dropped]})
    return 0


def _agreed(count: int, stream: str) -> bool:
    if not sys.stdin.isatty():
        raise UsageError(
            "bad-usage", "Dropping cannot be undone: say --yes.", got=f"{show_count(count, 'letter')} of {stream}"
        )
    return click.confirm(f"Drop {show_count(count, 'dead letter')} of {stream} for good?", err=True)
