"""`up`, `status`, `logs`, `down`, `run`, `send`, `tail` and `get`, with small stand-ins for what they start and ask."""

from __future__ import annotations

import contextlib
import http.server
import io
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from headrace import project
from headrace.cli import run
from headrace.cli.init import create
from headrace.cli.main import main
from headrace.cli.tail import as_object
from headrace.clock import HOUR, SystemClock, show_time
from headrace.config import config as configuration
from headrace.errors import ProjectError
from headrace.log.record import Record
from headrace.processes import process_identity, state_folder
from headrace.supervisor import services, stack, up
from headrace.supervisor.child import ChildCommand, start_child
from headrace.topics import open_log, topics
from tests.moments import refuse_numbers_in

ROWS = [
    {"id": "p1", "card": "42", "amount": 10.5, "country": "DE", "at": "2026-01-01T00:00:00Z"},
    {"id": "p2", "card": "7", "amount": 2.0, "country": "FR", "at": "2026-01-01T00:01:00Z"},
]


@pytest.fixture
def shop(tmp_path, monkeypatch):
    create(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    with contextlib.suppress(FileNotFoundError):
        (tmp_path / "shop" / "payments.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    yield configuration.load()
    up.down(state_folder.find_state_folder(configuration.load()))


@pytest.fixture
def ask(capsys):
    """Run a verb and return (exit code, stdout, stderr)."""

    def asked(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        said = capsys.readouterr()
        refuse_numbers_in(said.out)
        return code, said.out, said.err

    return asked


# send


@pytest.mark.usefixtures("shop")
def test_send_works_with_nothing_running_and_counts_in_json(ask):
    code, out, err = ask("send", "payments", "payments.jsonl", "--json")
    told = json.loads(out)
    assert (code, told["stream"], told["sent"], told["refused"], told["faults"]) == (0, "payments", 2, 0, [])
    assert err.startswith("Sent 2 events to payments in ")
    assert ask("tail", "payments")[1].count("\n") == 2


def test_send_reads_lines_from_stdin(shop, ask, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(ROWS[0]).encode())))
    assert ask("send", "payments", "-")[0] == 0
    with open_log(shop) as log:
        assert sum(log.end_offsets("payments").values()) == 1


@pytest.mark.usefixtures("shop")
def test_send_to_an_unknown_stream_names_the_closest(ask):
    code, _, err = ask("send", "paymnets", "payments.jsonl")
    assert code == 2
    assert "hint: Did you mean 'payments'?" in err


def test_send_stops_at_a_bad_row_and_says_where(shop, ask, golden):
    file = shop.root / "payments.csv"
    file.write_text("id,card,amount,country,at,shop\np1,42,1,DE,2026-01-01T00:00:00Z,x\np2,42,lots,DE,x,y\n")
    code, out, err = ask("send", "payments", "payments.csv")
    assert (code, out) == (2, "")
    golden("cli/send_bad_row", err)


def test_send_keeps_going_when_told_to(shop, ask):
    with (shop.root / "payments.jsonl").open("a") as file:
        file.write("{\n" * 12)
    code, out, err = ask("send", "payments", "payments.jsonl", "--keep-going", "--json")
    assert (code, json.loads(out)["sent"], json.loads(out)["refused"]) == (0, 2, 12)
    assert "left out: payments.jsonl:3: " in err
    assert "left out: 2 more" in err


@pytest.mark.parametrize("options", [["--raw", "--rebase"], ["--raw", "--format", "csv"], ["--rate", "0"]])
@pytest.mark.usefixtures("shop")
def test_send_refuses_wishes_that_do_not_fit_together(ask, options):
    assert ask("send", "payments", "payments.jsonl", *options)[0] == 2


@pytest.mark.usefixtures("shop")
def test_send_obeys_the_prefix_of_an_environment(ask):
    assert json.loads(ask("send", "payments", "payments.jsonl", "--env", "staging", "--json")[1])["topic"] == (
        "staging.payments"
    )
    assert ask("tail", "payments", "--env", "staging")[1].count("\n") == 2
    assert ask("tail", "payments")[0] == 2


# tail


@pytest.fixture
def filled(shop):
    """A topic of two partitions with known records."""
    with open_log(shop) as log:
        log.create_topic("clicks", partitions=2)
        for number in range(30):
            log.append("clicks", f"v{number}".encode(), key=b"k", partition=number % 2)
        log.append("clicks", b"\xff\x1b[2J\n", headers=(("why", b"poison"),), partition=0)
    return shop


def values(out: str) -> list[str]:
    return [json.loads(line).get("value", "?") for line in out.splitlines()]


@pytest.mark.usefixtures("filled")
def test_tail_shows_the_last_ten_in_the_order_of_their_arrival(ask):
    code, out, err = ask("tail", "clicks", "--json")
    assert (code, err) == (0, "")
    assert values(out) == [*(f"v{number}" for number in range(21, 30)), "?"]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["--limit", "3"], ["v28", "v29", "?"]),
        (["--from", "start", "--limit", "3"], ["v0", "v1", "v2"]),
        (["--from", "14", "--partition", "1"], ["v29"]),
        (["--from", "999"], []),
        (["--from", "end"], []),
        (["--from", "1h", "--limit", "2"], ["v0", "v1"]),
        (["--from", "2999-01-01T00:00:00Z"], []),
        (["--partition", "1", "--limit", "2"], ["v27", "v29"]),
        (["--from", "13", "--partition", "1", "--limit", "2", "-f"], ["v27", "v29"]),
    ],
)
@pytest.mark.usefixtures("filled")
def test_tail_starts_where_it_is_told(ask, options, shown):
    code, out, _ = ask("tail", "clicks", "--json", *options)
    assert (code, values(out)) == (0, shown)


@pytest.mark.usefixtures("filled")
def test_tail_shows_position_arrival_key_and_value_without_touching_the_terminal(ask):
    out = ask("tail", "clicks", "--partition", "0", "--limit", "2")[1].splitlines()
    assert (out[0].split("  ")[0], out[0].split("  ")[2:]) == ("0/14", ["k", "v28"])
    assert out[1].split("  ")[2:] == ["-", "\\xff\\x1b[2J\\n", "why=poison"]


def test_bytes_that_are_no_text_are_base64_in_json():
    told = as_object(Record("t", 0, 0, 0, None, b"\xff", (("h", b"x"),)))
    assert (told["key"], told["value_base64"], told["headers"]) == (None, "/w==", [{"name": "h", "value": "x"}])


@pytest.mark.parametrize("options", [["nowhere"], ["clicks", "--partition", "2"], ["clicks", "--from", "soon"]])
@pytest.mark.usefixtures("filled")
def test_tail_refuses_what_is_not_there(ask, options):
    assert ask("tail", *options)[0] == 2


def test_tail_reaches_back_through_the_gaps_of_a_compacted_topic(shop, ask):
    with open_log(shop) as log:
        log.create_topic("state", compacted=True)
        for number in range(100):
            log.append("state", f"v{number}".encode(), key=b"a" if number < 2 else f"{number % 3}".encode())
        log.clean("state")
    assert values(ask("tail", "state", "--json", "--limit", "4")[1]) == ["v1", "v97", "v98", "v99"]


# get


ANSWER = {
    "view": "card_activity",
    "key": {"card": "a/b"},
    "features": {"payments_10m": 2, "spend_1h": 12.50, "median_7d": None},
    "at": "2026-01-01T00:00:00Z",
    "as_of": "2026-01-01T00:00:00Z",
    "late_as_of": None,
    "freshness_ms": 1234.5,
    "missing": False,
    "stale": True,
    "mode": "micro-batch",
}


POSTED: list[dict[str, object]] = []
"""What was asked with request values."""


class Answering(http.server.BaseHTTPRequestHandler):
    """Answers one key with digits that a float would lose, refuses another, and knows nothing else."""

    def do_GET(self) -> None:
        known = {
            "/v1/features/card_activity/a%2Fb": (200, json.dumps(ANSWER).replace("12.5", "12.50000000000000000001")),
            "/v1/features/card_activity/no": (404, json.dumps({"error": {"code": "not-found", "message": "No."}})),
        }
        status, body = known.get(self.path, (500, "oh"))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        POSTED.append(asked)
        answer = ANSWER | {"view": asked["view"]}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"at": ANSWER["at"], "answers": [answer], "errors": 0}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def serving(shop) -> Iterator[None]:
    """A stand-in for serving, in this process, recorded as `up` would."""
    me = process_identity.identify(os.getpid())
    assert me is not None
    with http.server.HTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        record = {**me._asdict(), "state": "ready", "url": f"http://127.0.0.1:{server.server_port}"}
        state_folder.write_status(state_folder.find_state_folder(shop), {"processes": {"serve": record}})
        yield
        state_folder.write_status(state_folder.find_state_folder(shop), {"processes": {}})
        server.shutdown()


@pytest.mark.parametrize(
    ("late", "said"),
    [
        ("2026-01-01T00:00:00Z", "As of 2026-01-01T00:00:00Z, 1.2 s ago (stale).\n"),
        (None, "As of 2026-01-01T00:00:00Z, 1.2 s ago (stale).\n"),
        (
            "2025-12-31T23:59:00Z",
            "As of 2026-01-01T00:00:00Z, 1.2 s ago; late events as of 2025-12-31T23:59:00Z (stale).\n",
        ),
    ],
)
@pytest.mark.usefixtures("serving")
def test_get_says_how_far_late_events_are_where_they_are_behind(ask, monkeypatch, late, said):
    monkeypatch.setitem(ANSWER, "late_as_of", late)
    assert ask("get", "card_activity", "card=a/b")[2] == said


@pytest.mark.usefixtures("serving")
def test_get_shows_values_and_says_how_fresh_they_are(ask, golden):
    code, out, err = ask("get", "card_activity", "card=a/b")
    assert code == 0
    golden("cli/get", f"{out}---\n{err}")


@pytest.mark.usefixtures("serving")
def test_get_as_json_is_the_answer_with_all_its_digits(ask, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    code, out, err = ask("get", "card_activity", "card=a/b", "--json")
    assert (code, err, "12.50000000000000000001" in out) == (0, "", True)
    assert json.loads(out)["features"]["payments_10m"] == 2


@pytest.mark.usefixtures("serving")
def test_get_passes_on_what_serving_refuses(ask):
    code, out, err = ask("get", "card_activity", "card=no")
    assert (code, out, "error: No." in err, "code: not-found" in err) == (2, "", True, True)


@pytest.mark.usefixtures("serving")
def test_get_says_when_serving_answers_nonsense(ask):
    code, _, err = ask("get", "card_activity", "card=else")
    assert (code, "code: no-answer" in err) == (1, True)


@pytest.mark.usefixtures("serving")
def test_get_reads_a_feature_set_with_its_request_values(ask):
    POSTED.clear()
    code, out, _ = ask("get", "fraud", "card=a/b", "--request", "amount=12.5")
    assert (code, out.startswith("feature")) == (0, True)
    assert POSTED == [{"view": "fraud", "keys": [["a/b"]], "request": {"amount": 12.5}}]
    assert json.loads(ask("get", "fraud", "card=42", "--request=amount=1", "--json")[1])["view"] == "fraud"
    assert POSTED[1]["request"] == {"amount": 1}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "'fraud' needs request values: amount is missing."),
        ([], "hint: Add --request amount=...."),
        (["--request", "amount=lots"], "A request value cannot be used: amount must be a finite number."),
        (["--request", "amount=nan"], "A request value cannot be used: amount must be a finite number."),
        (["--request", "amount="], "cannot use the request values: amount is required"),
        (["--request", "amuont=1"], "hint: Did you mean 'amount'?"),
        (["--request", "amount"], "A request value is given once, as NAME=VALUE."),
        (["--request", "amount=1", "--request", "amount=2"], "A request value is given once, as NAME=VALUE."),
        (["--request", "amount=1", "--at", "2026-01-01T00:00:00Z"], "Values of a past moment take no request values."),
    ],
)
@pytest.mark.usefixtures("shop")
def test_get_refuses_request_values_that_a_feature_set_does_not_take(ask, arguments, said):
    code, _, err = ask("get", "fraud", "card=42", *arguments)
    assert (code, said in err) == (2, True), err
    assert "hint: " in err


@pytest.mark.usefixtures("shop")
def test_get_refuses_request_values_of_a_view(ask):
    code, _, err = ask("get", "card_activity", "card=42", "--request", "amount=1")
    assert (code, "Leave out --request: what is read takes none." in err) == (2, True)


@pytest.mark.usefixtures("shop")
def test_get_with_nothing_running_says_how_to_start_it(ask):
    code, _, err = ask("get", "card_activity", "card=42")
    assert code == 1
    assert "hint: Start it with `headrace up`." in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["card_activty", "card=1"], "Did you mean 'card_activity'?"),
        (["card_activity"], "needs its whole key: card is missing"),
        (["card_activity", "42"], "Write `headrace get card_activity card=...`."),
        (["card_activity", "crad=42"], "takes each column of its key once"),
        (["card_activity", "card=1", "card=2"], "takes each column of its key once"),
    ],
)
@pytest.mark.usefixtures("shop")
def test_get_refuses_a_key_that_is_not_the_views(ask, arguments, said):
    code, _, err = ask("get", *arguments)
    assert (code, said in err) == (2, True)


# up, status, logs, down


HERE: dict[str, object] = {"url": "http://here", "port": 80}
SLEEPS = "import sys, time; print('hello', flush=True); time.sleep(600)"


@pytest.fixture
def small(monkeypatch) -> Callable[..., None]:
    """Let `up` start a small program instead of the pipeline and serving."""

    def instead(program: str, ready: dict[str, object] | None = HERE) -> None:
        child = ChildCommand("serve", [sys.executable, "-S", "-c", program], lambda *_: ready)
        monkeypatch.setattr(stack, "children", lambda *_, **__: [child])

    return instead


def wanted(shop: configuration.Config) -> set[str]:
    plan = project.load(shop.root).plan()
    return {topic.name for topic in topics(plan, configuration.names(shop), shop.log.partitions)}


def interrupt_when_ready(where: state_folder.StateFolder, number: int) -> threading.Thread:
    """Send this process a signal as soon as `up` says that it is ready."""

    def wait() -> None:
        deadline = time.monotonic() + 30
        while (state_folder.read_status(where) or {}).get("state") != "ready" and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_up_starts_says_how_it_goes_and_ends_on_a_signal(shop, ask, small, number, code):
    small(SLEEPS)
    thread = interrupt_when_ready(state_folder.find_state_folder(shop), number)
    ended, out, err = ask("up", "--port", "0")
    thread.join()
    assert (ended, out) == (code, "")
    said = [line.partition(" (")[0] for line in err.splitlines()]
    assert [line for line in said if not line.startswith("ready in")] == [
        f"topics: {len(wanted(shop))} ready",
        "serve: starting",
        "serve: ready",
        "stopping; a second signal kills",
        "stopped",
    ]
    assert "s at http://here" in err
    with open_log(shop) as log:
        assert set(log.topics()) == wanted(shop)


def test_on_a_terminal_a_live_line_is_drawn_and_cleared_before_each_line_that_stays(shop, small, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    small(SLEEPS)
    thread = interrupt_when_ready(state_folder.find_state_folder(shop), signal.SIGTERM)
    assert main(["up", "--port", "0"]) == 0
    thread.join()
    assert "ready | serve ready http://here\r\x1b[2K" in terminal.getvalue()


@pytest.mark.usefixtures("shop")
def test_up_fails_with_the_reason_when_a_process_refuses_to_start(ask, small):
    small("print('no such thing', flush=True); raise SystemExit(2)", ready=None)
    code, _, err = ask("up", "--port", "0")
    assert code == 1
    assert "  no such thing" in err
    assert "code: start-failed" in err


def test_up_refuses_a_port_that_is_taken_before_it_starts_anything(shop, ask, small):
    small(SLEEPS)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, _, err = ask("up", "--port", str(taken.getsockname()[1]))
    assert (code, "code: port-taken" in err, "starting" in err) == (2, True, False)
    assert state_folder.holder(state_folder.find_state_folder(shop)) is None


def test_up_ends_what_a_killed_one_left_behind(shop, ask, small):
    small(SLEEPS)
    where = state_folder.find_state_folder(shop)
    left = start_child(ChildCommand("serve", [sys.executable, "-S", "-c", SLEEPS], lambda *_: None), where)
    assert left.identity is not None
    state_folder.write_status(where, {"state": "degraded", "processes": {"serve": left.identity._asdict()}})
    thread = interrupt_when_ready(where, signal.SIGTERM)
    code, _, err = ask("up", "--port", "0")
    thread.join()
    assert left.code() == -signal.SIGTERM
    assert (code, err.splitlines()[0]) == (0, "ended 1 that an earlier `headrace up` had left running")


@pytest.mark.usefixtures("shop")
def test_status_logs_and_down_are_content_with_nothing(ask):
    code, out, err = ask("status")
    assert (code, out, err) == (1, "shop: stopped\n", "")
    assert ask("logs") == (0, "", "There are no logs yet: nothing was started.\n")
    assert ask("down") == (0, "", "Nothing was running.\n")


def test_logs_of_one_process_and_of_all(shop, ask):
    where = state_folder.find_state_folder(shop)
    where.log("serve").parent.mkdir(parents=True)
    where.log("serve").write_text("a\nb\nc\n")
    where.log("spark").write_text("d\n")
    assert ask("logs", "serve", "-n", "2") == (0, "b\nc\n", "")
    assert ask("logs", "-n", "1")[1] == "spark      d\nserve      c\n"
    code, _, err = ask("logs", "serv")
    assert (code, "Did you mean 'serve'?" in err) == (2, True)


def test_status_says_how_and_when_a_process_that_runs_again_was_killed(shop, ask):
    exited = {
        "exit": -signal.SIGKILL,
        "exited_at": show_time(SystemClock().now() - HOUR),
        "exit_reason": "was ended by SIGKILL",
    }
    record = {"state": "ready", "since": show_time(0), "restarts": 1, "log": "", **exited}
    state_folder.write_status(state_folder.find_state_folder(shop), {"state": "ready", "processes": {"spark": record}})
    assert ask("status")[1].splitlines()[-1].endswith("was ended by SIGKILL, 1h ago")
    told = json.loads(ask("status", "--json")[1])["processes"]["spark"]
    assert {name: told[name] for name in exited} == exited


@pytest.mark.parametrize(
    ("state", "error"), [("hung", "It has done nothing for 301 s."), ("restarting", "RuntimeError: the lake is away.")]
)
def test_status_names_a_component_that_hangs_or_fails_every_time(shop, ask, state, error):
    well = {"state": "running", "ready": True, "since": "2026-01-01T00:00:00Z", "restarts": 0, "error": ""}
    parts = {"pipeline": well, "archive": well | {"state": state, "ready": False, "restarts": 7, "error": error}}
    says = f"Component archive is {state}: {error}"
    alarm = {"kind": f"component_{state}", "since": show_time(SystemClock().now() - HOUR), "says": says}
    with open_log(shop) as log:
        log.create_topic("headrace.status", compacted=True)
        log.append("headrace.status", json.dumps({"alarms": [alarm]}).encode(), key=b"process.spark")
    running = start_child(
        ChildCommand("spark", [sys.executable, "-S", "-c", SLEEPS], lambda *_: None),
        state_folder.find_state_folder(shop),
    )
    assert running.identity is not None
    try:
        with state_folder.locked(where := state_folder.find_state_folder(shop)):
            spark = {"state": "ready", "restarts": 0, "exit": None, "log": "", "components": parts}
            spark, since = spark | running.identity._asdict(), show_time(SystemClock().now())
            state_folder.write_status(where, {"state": "degraded", "since": since, "processes": {"spark": spark}})
            code, out, _ = ask("status")
            told = json.loads(ask("status", "--json")[1])
    finally:
        running.kill()
        assert process_identity.gone([running.identity], within=10)
        assert running.wait(10) is not None
    (row,) = (line for line in out.splitlines() if line.startswith("spark: archive"))
    assert (code, out.startswith("shop: degraded")) == (1, True)
    assert row.split(maxsplit=4)[2:4] == [state, "7"]
    assert row.endswith(error)
    assert f"alarm for 1h: {says}" in out
    assert (told["state"], told["processes"]["spark"]["components"]) == ("degraded", parts)


def test_logs_show_every_process_that_status_lists(shop, ask):
    where, record = state_folder.find_state_folder(shop), {"state": "stopped", "restarts": 0, "exit": None, "log": ""}
    state_folder.write_status(
        where, {"state": "ready", "processes": dict.fromkeys(("spark", "archive", "serve"), record)}
    )
    for local in services.list_services(shop):
        local.service.folder.mkdir(parents=True)
        local.service.log.write_text(f"said by {local.name}\n")
        known = {"address": "127.0.0.1:7", "pid": None, "stopped": False}
        local.service.file.write_text(json.dumps(known))
    for name in ("spark", "archive", "serve"):
        where.log(name).parent.mkdir(parents=True, exist_ok=True)
        where.log(name).write_text(f"said by {name}\n")
    listed = json.loads(ask("status", "--json")[1])["processes"]
    assert list(listed) == ["spark", "archive", "serve", "kafka", "redis"]
    assert [ask("logs", name)[1] for name in listed] == [f"said by {name}\n" for name in listed]
    assert sorted(line.split()[-1] for line in ask("logs")[1].splitlines()) == sorted(listed)


# A whole life, in processes of its own: the supervisor is started by `detach` exactly as `up --detach` does.

WHOLE = """
import sys
from headrace.cli.main import main
from headrace.supervisor import stack
from headrace.supervisor.child import ChildCommand

child = ChildCommand("serve", [sys.executable, "-S", "-c", sys.argv[1]], lambda *_: {"url": "http://here", "port": 80})
stack.children = lambda *_, **__: [child]
sys.exit(main(["up", "--port", "0"]))
"""


def test_a_detached_supervisor_relays_is_seen_refuses_a_second_and_ends(shop, ask, golden):
    where, said = state_folder.find_state_folder(shop), list[str]()
    assert up.detach([sys.executable, "-c", WHOLE, SLEEPS], where, said.append) == 0
    assert said[0].startswith(f"topics: {len(wanted(shop))} ready")
    assert said[-1].startswith("ready in ")
    code, out, _ = ask("status", "--json")
    told = json.loads(out)
    assert (code, told["state"], told["url"]) == (0, "ready", "http://here")
    serve = told["processes"]["serve"]
    assert (serve["pid"], serve["state"], serve["port"]) == (state_folder.recorded(where)[0].pid, "ready", 80)
    deadline = time.monotonic() + 30
    while "hello" not in ask("logs", "serve")[1]:  # it is called ready as soon as it is started
        assert time.monotonic() < deadline
    code, _, err = ask("up")
    assert (code, f"got: pid {told['supervisor']}" in err) == (2, True)
    assert ask("up", "--detach")[0] == 2
    assert ask("down") == (0, "", "Ended 2 processes.\n")
    code, out, _ = ask("status")
    assert (code, out.startswith("shop: stopped\n")) == (1, True)


def test_of_two_that_are_started_at_the_same_time_one_wins_and_the_other_says_who_holds_the_project(shop):
    gate = "import sys\nimport headrace.supervisor.up\nprint('here', flush=True)\nsys.stdin.readline()\n"
    command = [sys.executable, "-c", gate + WHOLE, SLEEPS]
    pipe = subprocess.PIPE
    both = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(2)]
    try:
        assert [each.stdout.readline() for each in both] == ["here\n"] * 2
        for each in both:
            each.stdin.write("go\n")
            each.stdin.flush()
        deadline = time.monotonic() + 30
        while not (ended := [each for each in both if each.poll() is not None]):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        (loser,) = ended
        (winner,) = (each for each in both if each is not loser)
        said = loser.communicate()[1]
        assert (loser.returncode, "code: already-running" in said) == (2, True)
        assert f"got: pid {winner.pid}\n" in said
        assert winner.poll() is None
        assert state_folder.holder(state_folder.find_state_folder(shop)) == process_identity.identify(winner.pid)
        winner.send_signal(signal.SIGTERM)
        said = winner.communicate(timeout=30)[1]
        assert (winner.returncode, said.count("serve: starting"), said.splitlines()[-1]) == (0, 1, "stopped")
    finally:
        for each in both:
            each.kill()
            each.communicate()


def test_of_two_that_are_detached_at_the_same_time_one_is_ready_and_the_other_fails(shop):
    where, gate = state_folder.find_state_folder(shop), threading.Barrier(2)
    said, codes = (list[str](), list[str]()), [0, 0]

    def start(number: int) -> None:
        gate.wait()
        try:
            codes[number] = up.detach([sys.executable, "-c", WHOLE, SLEEPS], where, said[number].append)
        except ProjectError as error:  # on a busy machine one may be so late that it sees the other at once
            codes[number] = error.exit_code
            said[number].append(f"  got: {error.got}")

    threads = [threading.Thread(target=start, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(codes) == [0, 2]
    held = state_folder.holder(where)
    assert held is not None
    assert f"  got: pid {held.pid}" in said[codes.index(2)]


def test_logs_show_what_processes_said_and_no_terminal_obeys_it(shop, ask):
    file = state_folder.find_state_folder(shop).log("serve")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("plain\ttext\n\x1b[2Jmoved\x07\n")
    assert ask("logs", "serve")[1] == "plain\ttext\n\\x1b[2Jmoved\\x07\n"


def test_what_a_verb_writes_is_for_nobody_else_but_a_project_is_as_it_was(shop, ask):
    before = os.umask(0o022)
    try:
        assert ask("init", "other")[0] == 0
        assert ask("send", "payments", "payments.jsonl")[0] in (0, 1)
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
    assert {stat.S_IMODE(file.stat().st_mode) for file in (shop.root / "other").glob("*.*")} == {0o644}
    log = [file for file in shop.data.rglob("*") if "log" in file.parts]
    assert log
    assert [file for file in log if file.stat().st_mode & 0o077] == []


def test_a_detached_supervisor_that_gives_up_says_why_and_fails(shop):
    said: list[str] = []
    broken = WHOLE.replace('{"url": "http://here", "port": 80}', "None")
    program = "print('no such thing', flush=True); raise SystemExit(2)"
    assert up.detach([sys.executable, "-c", broken, program], state_folder.find_state_folder(shop), said.append) == 1
    assert "  no such thing" in said
    assert "error: The serve process could not be started." in said


def test_status_tells_what_the_components_said(shop, ask, golden):
    stream = {"lag_events": 3, "lag_seconds": 0.25, "rate_per_s": 4.5}
    tiles = {"batch": 7, "batch_ms": 450, "state_rows": 1234, "dropped_by_watermark": 0}
    with open_log(shop) as log:
        log.create_topic("headrace.status", compacted=True)
        alarm = {
            "stream": "payments",
            "partition": 1,
            "kind": "late",
            "rate": 0.125,
            "usual": 0.002,
            "since": show_time(SystemClock().now() - HOUR),
            "says": "Partition 1 of payments: 12.5 % late, usually 0.2 %.",
        }
        pipeline = {"streams": {"payments": stream}, "tile_sets": {"payments.by_card": tiles}}
        pipeline["alarms"] = [alarm]
        log.append("headrace.status", json.dumps(pipeline).encode(), key=b"pipeline")
        views = {"views": {"card_activity": {"freshness_ms": 3_600_000}}}
        log.append("headrace.status", json.dumps(views).encode(), key=b"serve")
        counted = {"admitted": 9, "duplicate": 2, "late": 1}
        kept = {"archived": 12, "verdicts": counted, "conflict": 1, "lost": 0, "lag_events": 4}
        log.append("headrace.status", json.dumps({"streams": {"payments": kept}}).encode(), key=b"archive")
    code, out, _ = ask("status")
    assert code == 1
    golden("cli/status", "\n".join(out.splitlines()[:-1]))
    told = json.loads(ask("status", "--json")[1])
    assert (told["streams"]["payments"]["read"], told["alarms"]) == (12, [alarm])


# run


def test_run_hands_over_a_stop_that_a_signal_sets(monkeypatch):
    before = signal.getsignal(signal.SIGINT)
    for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 130)):
        with run.stopping() as stop:
            assert not stop.event.is_set()
            os.kill(os.getpid(), number)
            assert stop.event.wait(30)
        assert stop.code == code
    assert signal.getsignal(signal.SIGINT) is before


def test_a_process_that_does_not_end_when_asked_is_ended():
    program = (
        "import os, signal, threading\nfrom headrace.cli import run\n"
        "with run.stopping(drain=0.1) as stop:\n    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    threading.Event().wait(60)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False)
    assert ran.returncode == 1
    assert "did not end" in ran.stderr
