"""From nothing to ready and back: what `headrace up` and `headrace down` do to a project.

lock ──► end orphans ──► port free? ──► services ──► topics ──► spark, serve ──► ready ──► watch ──► SIGTERM, Ctrl-C
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from headrace.config.config import names
from headrace.disk import refuse_full
from headrace.errors import ProjectError
from headrace.log.protocol import Log
from headrace.processes import log_file, process_identity, state_folder
from headrace.processes.child import ChildProcess
from headrace.processes.process_identity import KILLED
from headrace.processes.signals import Signals
from headrace.processes.state_folder import StateFolder
from headrace.project import Project
from headrace.serve.server_options import refuse_unusable
from headrace.supervisor import stack
from headrace.supervisor.file_changes import EditWatch
from headrace.supervisor.services import Say, Services
from headrace.supervisor.supervisor import GRACE, Supervisor
from headrace.topics import STATUS, create, open_log, topics

STARTING_LOOK, READY_LOOK = 0.1, 0.5
SUPERVISOR = "supervisor"
READY = "ready in"
"""How the line begins that says so; by then the status file says it too."""

Watch = Callable[[Supervisor, Log], None]


def up(project: Project, *, path: Path | None, port: int | None, say: Say, watch: Watch) -> bool:
    """Start a project's processes and keep them running until told to end; true when a Ctrl-C told so.

    Parameters
    ----------
    path
        What names the project, to hand on to its processes.
    port
        The port to serve on instead of the configured one.
    say
        Told, in a line, of every change.
    watch
        Called about twice a second with the project's log, to show how it goes.
    """
    config, began = project.config, time.monotonic()
    refuse_full(names(config).path())
    refuse_unusable(config)
    project.register_schemas()
    where = state_folder.find_state_folder(config)
    chosen = config.serve.port if port is None else port
    with state_folder.locked(where):
        orphans = state_folder.end_left(where, grace=GRACE)
        if orphans:
            say(f"ended {orphans} that an earlier `headrace up` had left running")
        if chosen:
            stack.refuse_taken(config.serve.host, chosen)
        services = Services(config, say)
        services.start()
        status = stack.command("status", "--json", path=path or config.root, env=config.env)
        edits = EditWatch(project.files, status, names(config).topic(STATUS), say)
        with open_log(config) as log, Signals() as signals, edits:
            wanted = topics(project.plan(), names(config), config.log.partitions)
            create(log, wanted)
            say(f"topics: {len(wanted)} ready ({time.monotonic() - began:.1f} s)")

            def look(supervisor: Supervisor) -> None:
                services.look()
                edits.look(supervisor, log)
                watch(supervisor, log)

            about = {"project": config.name, "env": config.env, "root": str(config.root)}
            scores = any(model.stream is not None for model in project.models)
            evaluates = bool(project.labels) or (scores and config.drift.watch == "all")
            children = stack.children(config, where, log, path=path, port=port, scores=scores, evaluates=evaluates)
            keep(Supervisor(children, where, say=say, about=about), signals, say=say, watch=look, began=began)
            return signals.interrupted


def keep(
    supervisor: Supervisor, signals: Signals, *, say: Say, watch: Callable[[Supervisor], None], began: float
) -> None:
    """Run a supervisor until a signal ends it; whatever happens, its children end with it."""
    try:
        supervisor.start()
        said, missing = False, ""
        while not signals.wait(READY_LOOK if supervisor.was_ready else STARTING_LOOK):
            supervisor.step()
            supervisor.check_start()
            if supervisor.was_ready and not said:
                said = True
                urls = [str(found.details["url"]) for found in supervisor.watched if "url" in found.details]
                say(f"{READY} {time.monotonic() - began:.1f} s{''.join(f' at {url}' for url in urls)}")
            if (found := ", ".join(supervisor.missing())) != missing:
                missing = found
                say(f"{'not running' if said else 'waiting for'}: {missing}" if missing else "everything runs")
            watch(supervisor)
    finally:
        if signals.ending:
            say("stopping; a second signal kills")
        supervisor.stop(hurry=lambda: len(signals.ending) > 1)
    say("stopped")


def detach(command: Sequence[str], where: StateFolder, say: Say) -> int:
    """Start a supervisor of its own session, relay what it says until it is ready, and leave it running.

    The result is 0, or the exit code of a supervisor that gave up.
    """
    held = state_folder.holder(where)
    if held is not None:
        hint = "See it with `headrace status`, or end it with `headrace down`."
        raise ProjectError("already-running", "The project is already up.", got=f"pid {held.pid}", hint=hint)
    refuse_full(where.data)
    log = where.log(SUPERVISOR)
    log_file.rotate(log)
    with log_file.opened(log) as output:
        lines = log_file.follow({SUPERVISOR: log}, lambda: started.wait(STARTING_LOOK) is not None)
        started = ChildProcess(command, output=output)
    try:
        for _, line in lines:
            say(line)
            # Of two that start at once both write to this log, and only the one that holds the lock is ready.
            if line.startswith(READY) and _is_held_by(where, started.pid):
                break
    except KeyboardInterrupt:
        started.ask_to_end()
        started.wait(GRACE + KILLED)
        raise
    code = started.code()
    started.leave_running()
    return code or 0


def _is_held_by(where: StateFolder, pid: int) -> bool:
    """Whether this process is the supervisor."""
    held = state_folder.holder(where)
    return held is not None and held.pid == pid


def down(where: StateFolder) -> int:
    """End a project's supervisor and whatever it left behind; says how many processes there were."""
    found = state_folder.recorded(where)
    held = state_folder.holder(where)
    if held is not None:
        found.append(held)
        process_identity.send(held, signal.SIGTERM)
        if not process_identity.gone([held], within=GRACE + 2 * KILLED):
            process_identity.send(held, signal.SIGKILL)
    return max(len(found), state_folder.end_left(where, grace=GRACE))
