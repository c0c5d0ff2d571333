"""`headrace redis`: a Redis on this machine for the store of a project, and how the one that it uses is doing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import options
from headrace.cli.output import data, show_status, talk

if TYPE_CHECKING:
    from headrace.config.config import Config


@click.group("redis")
def command() -> None:
    """Run a local Redis for the store."""


@command.command("up")
@options.project_options
@click.option("--port", type=click.IntRange(1, 65_535), metavar="N", help="Listen here; otherwise on a free port.")
def up(path: Path | None, env: str | None, port: int | None) -> None:
    """Start a Redis for this project and print its address.

    On the loopback, and nothing of it on the disk: the store is filled again from the changelog. It goes on until
    `headrace redis down`. A project with store.kind = "redis" that names no store.url uses it.
    """
    from headrace.config import config
    from headrace.processes import redis

    loaded = config.load(path, env=env)
    folder = redis.redis_folder(loaded)
    found = redis.running(folder)
    if found is not None and port in (None, int(found.address.rpartition(":")[2])):
        talk(f"Redis is already up (pid {found.pid}).")
    else:
        found = redis.up(folder, port=port)
        talk(f"Redis is up (pid {found.pid}).")
        if loaded.store.kind != "redis":
            talk('Set kind = "redis" in [store] of headrace.toml, and the project uses it.')
        elif redis.named(loaded):
            talk("The project does not use it: store.url names another.")
    data(found.address)


@command.command("down")
@options.project_options
def down(path: Path | None, env: str | None) -> None:
    """Stop the project's Redis; the store is filled again in the next one."""
    from headrace.config import config
    from headrace.processes import redis

    stopped = redis.down(redis.redis_folder(config.load(path, env=env)))
    talk("Stopped Redis." if stopped else "No Redis was running.")


@command.command("status")
@options.project_options
@options.as_json
def status(path: Path | None, env: str | None, as_json: bool) -> int:
    """Show the project's Redis: where it is, whether it answers, how much it holds.

    The exit code is 1 when it does not answer. `bytes` is all that it holds, not the project's alone.
    """
    from headrace.config import config

    return show_status(_status(config.load(path, env=env)), as_json=as_json)


def _status(loaded: Config) -> dict[str, Any]:
    from headrace.errors import HeadraceError
    from headrace.processes import redis
    from headrace.store.open import redis_url
    from headrace.store.redis.client import RedisClient

    local = redis.running(redis.redis_folder(loaded))
    told: dict[str, Any] = {
        "store": loaded.store.kind,
        "address": None,
        "answers": False,
        "version": None,
        "bytes": None,
        "problem": None,
        "local": None if local is None else {"address": local.address, "pid": local.pid},
    }
    try:
        client = RedisClient(redis_url(loaded))
        told["address"] = client.address
        said = client.call("INFO")
        told |= {"answers": True, "version": said["redis_version"], "bytes": said["used_memory"]}
        client.close()
    except HeadraceError as error:
        told["problem"] = error.brief
    return told
