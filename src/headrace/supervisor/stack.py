"""The processes of a project: what starts each, and how one knows that it is ready.

All but serving are ready when they have told how they are doing; serving is when it says so over HTTP.
"""

from __future__ import annotations

import errno
import http.client
import json
import socket
import ssl
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from headrace.config.config import Config, names
from headrace.errors import ConfigError, DiskFullError, HeadraceError, shown
from headrace.log.protocol import Log
from headrace.processes.state_folder import StateFolder
from headrace.status.topic import last_records
from headrace.supervisor.child import ChildCommand
from headrace.topics import STATUS

HTTP_TIMEOUT = 1.0
DEADLINE = 180.0
"""Seconds to be ready in: Spark on a busy machine takes a minute, and serving waits for the pipeline's first word."""


def command(*arguments: str, path: Path, env: str | None) -> list[str]:
    """A verb of this very installation, for one project."""
    # -P, as the installed script has it: a module in the user's folder must not stand in for one of Python's.
    chosen = [] if env is None else ["--env", env]
    return [sys.executable, "-P", "-m", "headrace.cli.main", *arguments, "--project", str(path.resolve()), *chosen]


def children(
    config: Config,
    where: StateFolder,
    log: Log,
    *,
    path: Path | None,
    port: int | None,
    scores: bool = False,
    evaluates: bool = False,
) -> list[ChildCommand]:
    """A project's processes, in the order of their start.

    Parameters
    ----------
    scores
        Whether a model of the project scores a stream.
    evaluates
        Whether its predictions are evaluated or watched for drift.
    """
    project = path or config.root
    chosen = [] if port is None else ["--port", str(port)]
    separate = [part for part in config.processes.separate if evaluates or part != "evaluate"]

    def telling(name: str, **more: Any) -> ChildCommand:
        """A process that is ready when it has told how it is doing."""
        ready = told_ready(log, names(config).topic(STATUS), name)
        return ChildCommand(name, command("run", name, path=project, env=config.env), ready, DEADLINE, **more)

    def spark(name: str, **more: Any) -> ChildCommand:
        """A process of Spark components, which is ready when those are that values depend on."""
        file = where.ready(name)
        line = command("run", name, path=project, env=config.env)
        return ChildCommand(name, line, components_ready(file), DEADLINE, health=components(file), sign=file, **more)

    return [
        spark("spark"),
        ChildCommand(
            "serve",
            command("run", "serve", *chosen, path=project, env=config.env),
            serve_ready(where.ready("serve")),
            DEADLINE,
            # It answers from what is stored, which needs no room.
            needs_room=False,
        ),
        *([telling("score", after="serve")] if scores else []),
        # History can wait a moment: on a small machine it would only slow down what people wait for.
        *(spark(part, after="serve", niceness=10) for part in separate),
        *([telling("audit", after="spark", niceness=10)] if config.audit.most else []),
    ]


def told_ready(log: Log, topic: str, component: str) -> Callable[[int, int], Mapping[str, Any] | None]:
    """Ready when it has published its status since its start; not while the log cannot be read."""

    def ready(_: int, started: int) -> Mapping[str, Any] | None:
        try:
            record = last_records(log, topic, [component]).get(component)
        except HeadraceError as error:
            if error.code != "log-unreachable" and not isinstance(error, DiskFullError):
                raise
            return None
        return {} if record is not None and record.arrived_at > started else None

    return ready


def components(file: Path) -> Callable[[int, int], Mapping[str, Any] | None]:
    """The components of a Spark process, from the file that it keeps."""

    def read(pid: int, _: int) -> Mapping[str, Any] | None:
        try:
            said = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return {"components": said["components"]} if said.get("pid") == pid else None

    return read


def components_ready(file: Path) -> Callable[[int, int], Mapping[str, Any] | None]:
    """Ready when the first of its components, on which values depend, takes input."""
    read = components(file)

    def ready(pid: int, started: int) -> Mapping[str, Any] | None:
        said = read(pid, started)
        first = next(iter(said["components"].values()), None) if said else None
        return said if first and first["ready"] else None

    return ready


def serve_ready(file: Path) -> Callable[[int, int], Mapping[str, Any] | None]:
    """Ready when it answers so at the address in its file."""

    def ready(pid: int, _: int) -> Mapping[str, Any] | None:
        try:
            told = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if told.get("pid", pid) != pid:
            return None
        url = address(told["host"], told["port"], told.get("scheme", "http"))
        return {"url": url, "port": told["port"]} if answers(f"{url}/ready") else None

    return ready


def address(host: str, port: int, scheme: str = "http") -> str:
    """The URL at which a local client reaches a listener.

    >>> address("0.0.0.0", 80), address("::1", 80)
    ('http://127.0.0.1:80', 'http://[::1]:80')
    """
    local = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
    return f"{scheme}://[{local}]:{port}" if ":" in local else f"{scheme}://{local}:{port}"


def ask(url: str, timeout: float = HTTP_TIMEOUT) -> tuple[int, bytes]:
    """Status and body of a GET, straight to the machine: a proxy in the environment has no part in it."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "https":
        # Only whether it is ready is asked, of a process of our own: nothing secret is sent, whoever answers.
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        secure = http.client.HTTPSConnection(host, parts.port, timeout=timeout, context=trusting)
        connection: http.client.HTTPConnection = secure
    else:
        connection = http.client.HTTPConnection(host, parts.port, timeout=timeout)
    try:
        connection.request("GET", parts.path or "/")
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def answers(url: str) -> bool:
    """Whether a GET is answered with 200."""
    try:
        return ask(url)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def refuse_taken(host: str, port: int) -> None:
    """Refuse a port that somebody listens on, before anything is started."""
    try:
        found: Sequence[Any] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, to = found[0]
        with socket.socket(family, kind, protocol) as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(to)
    except socket.gaierror as error:
        hint = "Set serve.host to an address of this machine, such as 127.0.0.1."
        raise ConfigError("bad-setting", "The host to serve on is not known.", got=shown(host), hint=hint) from error
    except OSError as error:
        hint = "Choose another with --port or serve.port in headrace.toml; 0 takes a free one."
        if error.errno == errno.EADDRINUSE:
            message = "The port to serve on is taken by another program."
        else:
            message = f"The port to serve on cannot be used: {error.strerror}."
        raise ConfigError("port-taken", message, got=f"{host}:{port}", hint=hint) from error
