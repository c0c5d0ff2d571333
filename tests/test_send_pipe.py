"""Rows of a pipe: sent while their producer goes on, and ended by Ctrl-C after the last whole line."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import headrace as hr
from headrace.cli.init import create
from headrace.cli.main import main
from headrace.config import config as configuration
from headrace.errors import DataError
from headrace.ingest.files.source import Source
from headrace.ingest.send import pipe
from headrace.ingest.send.delivery import SendOptions, SendRate, send
from headrace.ingest.send.interruption import Interruption
from headrace.ingest.send.pipe import open_source
from headrace.log import MemoryLog
from headrace.topics import open_log

VISITS = hr.stream("visits", fields={"id": str, "at": hr.Timestamp}, event_time="at")
AT = "2026-01-01T00:00:00Z"
LINGER = 600.0
"""Seconds that no test waits."""


def line(number: int) -> bytes:
    return json.dumps({"id": f"v{number}", "card": "1", "amount": 1.0, "country": "DE", "at": AT}).encode() + b"\n"


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


class Producer:
    """Does one thing after another in a thread, and then closes its end of the pipe."""

    def __init__(self, write: int, *acts: Callable[[], object]) -> None:
        self._write, self._acts = write, acts
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            for act in self._acts:
                act()
        except BaseException as error:
            self.failure = error
        finally:
            os.close(self._write)

    def join(self) -> None:
        self.thread.join()
        if self.failure is not None:
            raise self.failure


class Batches(MemoryLog):
    """A log that keeps how many were appended at once."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self.create_topic("visits")

    def append_batch(self, topic, messages, *, partition=None):
        positions = super().append_batch(topic, messages, partition=partition)
        self.sizes.append(len(messages))
        return positions


@pytest.fixture
def stdin(monkeypatch) -> Iterator[int]:
    """The end of a pipe to write to; the other is stdin."""
    read, write = os.pipe()
    with os.fdopen(read) as file:
        monkeypatch.setattr("sys.stdin", file)
        yield write


def deliver(given: Source, log: MemoryLog, **wishes) -> int:
    return send(
        given, VISITS, log, "visits", wish=SendOptions(linger=LINGER, **wishes), pace=SendRate(wishes.get("rate"))
    ).sent


def press_ctrl_c() -> None:
    until(lambda: isinstance(getattr(signal.getsignal(signal.SIGINT), "__self__", None), Interruption))
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_a_row_is_in_the_log_while_its_producer_goes_on(stdin, format):
    log = Batches()
    rows = [line(1), line(2)] if format == "jsonl" else [f"id,at\nv1,{AT}\n".encode(), f"v2,{AT}\n".encode()]
    producer = Producer(
        stdin,
        lambda: os.write(stdin, rows[0]),
        lambda: until(lambda: log.sizes == [1]),
        lambda: os.write(stdin, rows[1]),
        lambda: until(lambda: log.sizes == [1, 1]),
    )
    with Interruption() as interruption:
        given = open_source("-", format, interruption=interruption)
        assert send(given, VISITS, log, "visits", wish=SendOptions(linger=0)).sent == 2
    producer.join()


def test_rows_that_come_together_are_appended_together(stdin):
    log = Batches()
    producer = Producer(stdin, *[lambda: os.write(stdin, line(1))] * 3)
    with Interruption() as interruption:
        assert deliver(open_source("-", interruption=interruption), log) == 3
    producer.join()
    assert log.sizes == [3]


def test_a_named_pipe_is_read_as_it_is_written(tmp_path):
    log, path = Batches(), tmp_path / "rows.jsonl"
    os.mkfifo(path)
    # Opened for both, so that nobody waits for the other to open it.
    write = os.open(path, os.O_RDWR)
    producer = Producer(write, lambda: os.write(write, line(1)), lambda: until(lambda: log.sizes == [1]))
    with Interruption() as interruption:
        given = open_source(str(path), interruption=interruption)
        assert send(given, VISITS, log, "visits", wish=SendOptions(linger=0)).sent == 1
    producer.join()


def test_the_last_line_of_a_pipe_needs_no_end(stdin):
    log = Batches()
    producer = Producer(stdin, lambda: os.write(stdin, line(1) + line(2).rstrip()))
    with Interruption() as interruption:
        assert deliver(open_source("-", interruption=interruption), log) == 2
    producer.join()


def test_rows_before_a_bad_one_of_a_pipe_are_sent(stdin):
    log = Batches()
    bad = b"{\n"
    producer = Producer(stdin, lambda: os.write(stdin, line(1) + bad), lambda: until(lambda: log.sizes == [1]))
    with Interruption() as interruption, pytest.raises(DataError) as caught:
        send(open_source("-", interruption=interruption), VISITS, log, "visits", wish=SendOptions(linger=0))
    producer.join()
    assert (caught.value.where, log.sizes) == ("stdin:2", [1])


def test_a_pipe_that_stops_being_csv_ends_after_what_was(stdin):
    log = Batches()
    producer = Producer(stdin, lambda: os.write(stdin, f'id,at\nv1,{AT}\n"v2,{AT}\n'.encode()))
    with Interruption() as interruption, pytest.raises(DataError, match="not CSV"):
        deliver(open_source("-", "csv", interruption=interruption), log)
    producer.join()
    assert log.sizes == [1]


@pytest.mark.parametrize(
    ("format", "text", "whole"),
    [
        ("jsonl", line(1) + line(2) + line(3)[:20], 2),
        ("jsonl", line(3)[:20], 0),
        ("csv", f"id,at\nv1,{AT}\nv2,{AT}\nv3,2026".encode(), 2),
        ("csv", f'id,at\nv1,{AT}\n"v2\n'.encode(), 1),
    ],
    ids=["half a line", "nothing else", "half a row", "a row of several lines"],
)
def test_ctrl_c_sends_the_whole_rows_of_a_pipe(stdin, format, text, whole):
    log, done = Batches(), threading.Event()
    producer = Producer(stdin, lambda: os.write(stdin, text), press_ctrl_c, lambda: until(done.is_set))
    with Interruption() as interruption:
        assert deliver(open_source("-", format, interruption=interruption), log) == whole
        assert interruption.has_come()
    done.set()
    producer.join()


def test_ctrl_c_at_a_rate_sends_what_was_due(stdin):
    log = Batches()
    producer = Producer(
        stdin, lambda: os.write(stdin, line(1) * 100), lambda: until(lambda: log.sizes == [1]), press_ctrl_c
    )
    with Interruption() as interruption:
        pace = SendRate(0.001, nap=interruption.wait, is_over=interruption.has_come)
        given = open_source("-", interruption=interruption)
        assert send(given, VISITS, log, "visits", wish=SendOptions(rate=0.001), pace=pace).sent == 1
    producer.join()


def test_half_a_line_is_not_sent_when_ctrl_c_ends_its_producer_first(stdin, monkeypatch):
    monkeypatch.setattr(pipe, "GRACE", LINGER)
    producer = Producer(stdin, lambda: os.write(stdin, line(1) + line(2)[:20]))
    producer.join()
    presser = threading.Thread(target=press_ctrl_c)
    with Interruption() as interruption:
        presser.start()
        assert deliver(open_source("-", interruption=interruption), Batches()) == 1
    presser.join()


def test_a_second_ctrl_c_ends_the_program():
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
        assert interruption.has_come()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_ctrl_c_ends_a_wait_before_python_has_run_its_handler():
    class Deaf(Interruption):
        def _note(self, *_):
            pass

    with Deaf() as interruption:
        signal.raise_signal(signal.SIGINT)
        assert interruption.wait(LINGER)


def test_another_signal_ends_nothing():
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with Interruption() as interruption:
            signal.raise_signal(signal.SIGUSR1)
            assert not interruption.wait(0.0)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_whoever_ignores_ctrl_c_goes_on_ignoring_it():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interruption() as interruption:
            signal.raise_signal(signal.SIGINT)
            assert not interruption.has_come()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


# The verb.


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Path:
    create(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return Path.cwd()


def count() -> int:
    with open_log(configuration.load()) as log:
        return sum(log.end_offsets("payments").values()) if "payments" in log.topics() else 0


@pytest.mark.usefixtures("shop")
def test_send_has_each_line_of_a_pipe_in_the_log_before_the_next_is_written(stdin, capsys):
    producer = Producer(
        stdin,
        lambda: os.write(stdin, line(1)),
        lambda: until(lambda: count() == 1),
        lambda: os.write(stdin, line(2)),
        lambda: until(lambda: count() == 2),
    )
    assert main(["send", "payments", "-", "--batch-ms", "0"]) == 0
    producer.join()
    assert capsys.readouterr().err.startswith("Sent 2 events to payments")


@pytest.mark.usefixtures("shop")
def test_ctrl_c_says_how_many_lines_of_a_pipe_were_sent(stdin, capsys):
    done = threading.Event()
    text = line(1) + line(2) + b'{"id"'
    producer = Producer(stdin, lambda: os.write(stdin, text), press_ctrl_c, lambda: until(done.is_set))
    assert main(["send", "payments", "-", "--batch-ms", "60000", "--json"]) == 130
    done.set()
    producer.join()
    shown = capsys.readouterr()
    assert json.loads(shown.out)["sent"] == 2
    assert shown.err.startswith("Sent 2 events to payments")
    assert shown.err.splitlines()[-1] == "Interrupted."
    assert count() == 2


def test_ctrl_c_says_how_many_rows_of_a_file_were_sent(shop, stdin, capsys):
    (shop / "payments.jsonl").write_bytes(line(1) + line(2))
    producer = Producer(stdin, lambda: until(lambda: count() == 1), press_ctrl_c)
    assert main(["send", "payments", "payments.jsonl", "--rate", "0.001"]) == 130
    producer.join()
    assert capsys.readouterr().err.startswith("Sent 1 event to payments")


@pytest.mark.usefixtures("shop")
def test_a_pipe_that_is_dated_to_now_is_read_to_its_end_first(stdin):
    producer = Producer(stdin, lambda: os.write(stdin, line(1)), lambda: os.write(stdin, line(2)))
    assert main(["send", "payments", "-", "--rebase"]) == 0
    producer.join()
    assert count() == 2


@pytest.mark.usefixtures("shop")
def test_columns_of_a_pipe_that_are_no_fields_are_named(stdin, capsys):
    text = f"id,card,amount,country,at,shop\np1,42,1,DE,{AT},x\n"
    producer = Producer(stdin, lambda: os.write(stdin, text.encode()))
    assert main(["send", "payments", "-", "--format", "csv"]) == 0
    producer.join()
    assert capsys.readouterr().err.startswith("Column 'shop' is no field of payments and is left out.")


def test_there_is_an_error_where_there_is_no_stdin(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(DataError, match="no stdin"):
        open_source("-")


def test_stdin_that_is_no_file_is_read_whole(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line(1))))
    with Interruption() as interruption:
        assert deliver(open_source("-", interruption=interruption), Batches()) == 1
