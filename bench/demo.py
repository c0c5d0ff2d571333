"""From a clone to served: how long an installation and a new project take, how fresh it is and what it weighs.

A second project has five tile sets over 160,000 events: what each further one costs in memory and at the start.

The load is sent by this process; the program under test is the supervised stack. Freshness is measured by probes: a
payment of a card nobody else uses is appended, and its view is read over HTTP until the payment is in it. The
installation is one of its own: a fresh clone without an environment, whose dependencies this machine has in its caches.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

from bench.harness import ROOT, Result, measured, run
from bench.weigh import cpu_seconds, weight
from headrace import project, sample_payments
from headrace.cli.init import create
from headrace.clock import SECOND, SystemClock, show_time
from headrace.define.view import View
from headrace.log.protocol import Log
from headrace.processes import state_folder
from headrace.project import Project
from headrace.topics import open_log
from headrace_demo import stack

PER_SECOND = 200.0
MANY, MANY_PER_SECOND, PATIENCE = 160_000, 8_000.0, 900.0
"""The events of the project with five tile sets, how fast they are sent, and seconds until all must be included."""
KEYS = (
    {"card": "card-000"},
    {"country": "DE"},
    {"id": "p-0"},
    {"card": "card-000", "country": "DE"},
    {"country": "DE", "card": "card-000"},
)
"""The columns that each of the five views is kept by, and a key to read: views by one key share a tile set."""
IDLE = 30.0
"""Seconds over which the cost of a project without events is measured."""
POLL = 0.01


def probe(log: Log, reader: stack.Reader, view: View, number: int) -> float:
    """Milliseconds from before an append to the answer that has it."""
    card = f"probe-{number}"
    value = f'{{"id":"{card}","card":"{card}","amount":1.0,"country":"DE","at":"{show_time(SystemClock().now())}"}}'
    began = time.perf_counter()
    log.append("payments", value.encode(), key=card.encode())
    while reader.features(view, card)["missing"]:
        time.sleep(POLL)
    return (time.perf_counter() - began) * 1_000


def stack_weight(shop: Project) -> float:
    """MiB of memory that the supervisor and all its descendants hold."""
    told = state_folder.read_status(state_folder.find_state_folder(shop.config)) or {}
    return weight(told["supervisor"]["pid"])


def five_tile_sets() -> list[Result]:
    """Memory with five tile sets over many events, and seconds to be ready again with what they keep."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "shop"
        create(root)
        features = root / "features.py"
        text = features.read_text(encoding="utf-8")
        stream = text[: text.index("card_activity = ")]
        view = text[text.index("card_activity = ") : text.index("@hr.on_demand")]
        views = [
            view.replace("card_activity", f"card_activity_{number}").replace('by="card"', f"by={tuple(key)}")
            for number, key in enumerate(KEYS)
        ]
        features.write_text(stream + "".join(views), encoding="utf-8")
        shop = project.load(root)
        if len(shop.plan().tile_sets) != len(KEYS):
            raise ValueError("the views share tile sets")
        with stack.started(shop, _show) as url:
            log, reader = open_log(shop.config), stack.Reader(url)
            start = SystemClock().now() + SECOND // 2
            sent = sample_payments.payments(MANY, seed=7, start=start, per_second=MANY_PER_SECOND, cards=10_000)
            stack.send(log, "payments", sent, lambda _: None)
            moment = SystemClock().now()
            for planned, key in zip(shop.views, KEYS, strict=True):
                stack.included(reader, planned, [*key.values()], moment, PATIENCE)
            held = stack_weight(shop)
        began = time.perf_counter()
        with stack.started(shop, _show):
            ready = time.perf_counter() - began
    return [
        Result("stack_5_tile_sets_pss_mb", held, "lower"),
        Result("start_5_tile_sets_s", ready, "lower"),
    ]


def idle_share(shop: Project) -> float:
    """The share of one core that a project without events needs."""
    supervisor = (state_folder.read_status(state_folder.find_state_folder(shop.config)) or {})["supervisor"]["pid"]
    before, began = cpu_seconds(supervisor), time.perf_counter()
    time.sleep(IDLE)
    return (cpu_seconds(supervisor) - before) / (time.perf_counter() - began)


def _show(line: str) -> None:
    print(line, file=sys.stderr)


def installed_and_served() -> float:
    """Seconds from a fresh clone, by the commands that a user types, to the first window that is served."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "headrace"
        _run("git", "clone", "--quiet", str(ROOT), str(clone), cwd=ROOT)
        began = time.perf_counter()
        _run("make", "--silent", "install", cwd=clone)
        headrace = str(clone / ".venv" / "bin" / "headrace")
        _run(headrace, "init", "shop", cwd=clone)
        shop = project.load(clone / "shop")
        (view,) = shop.views
        _run(headrace, "up", "--detach", "--port", "0", cwd=clone / "shop")
        try:
            told = state_folder.read_status(state_folder.find_state_folder(shop.config)) or {}
            with closing(stack.Reader(told["processes"]["serve"]["url"])) as reader:
                probe(open_log(shop.config), reader, view, 0)
            return time.perf_counter() - began
        finally:
            _run(headrace, "down", cwd=clone / "shop")


def _run(*command: str, cwd: Path) -> None:
    subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.DEVNULL)


def measure(quick: bool) -> list[Result]:
    """One start, a warm-up under load, then probes under the same load."""
    warm, probes = (20, 30) if quick else (60, 60)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        create(Path(folder) / "shop")
        shop = project.load(Path(folder) / "shop")
        (view,) = shop.views
        with stack.started(shop, _show) as url:
            ready = time.perf_counter() - began
            log, reader = open_log(shop.config), stack.Reader(url)
            probe(log, reader, view, 0)
            count = int((warm + probes * 2.5) * PER_SECOND)
            start = SystemClock().now() + SECOND // 2
            sent = sample_payments.payments(count, seed=7, start=start, per_second=PER_SECOND)
            load = threading.Thread(target=stack.send, args=(log, "payments", sent, lambda _: None), daemon=True)
            load.start()
            time.sleep(warm)
            fresh = [probe(open_log(shop.config), reader, view, number) for number in range(1, probes + 1)]
            held = stack_weight(shop)
            load.join()
            stack.included(reader, view, "card-000", SystemClock().now())
            idle = idle_share(shop)
    return [
        Result("start_to_ready_s", ready, "lower", 12.0),
        Result("install_to_first_served_window_s", installed_and_served(), "lower", 45.0),
        measured("servable.embedded.p50_ms", fresh, "lower", 1_000.0),
        Result("servable.embedded.p99_ms", sorted(fresh)[int(0.99 * (len(fresh) - 1))], "lower"),
        Result("stack_rss_mb", held, "lower", 2_000.0),
        Result("idle_cpu_share", idle, "lower", 0.1),
    ]


if __name__ == "__main__":
    sys.exit(run("demo", measure, lambda _: five_tile_sets()))
