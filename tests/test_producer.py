"""`hr.Producer`: checked, batched, bounded, and nothing lost without a word."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence

import pytest

import headrace as hr
from headrace.cli.init import create
from headrace.clock import DAY
from headrace.errors import DataError, DefinitionError, HeadraceError, MachineError
from headrace.ingest import producer as module
from headrace.log.record import Message, Position
from headrace.testing import FakeClock, MemoryLog, logged, run
from headrace.topics import open_log

NOW = "2026-06-01T00:00:00Z"
CLICKS = hr.stream(
    "clicks",
    fields={"id": str, "user": str, "price": float | None, "at": hr.Timestamp},
    event_id="id",
    event_time="at",
    key="user",
    checks={"not_negative": "price >= 0"},
)
USERS = hr.view("users", CLICKS, by="user", features={"n": hr.count(over="1h")})
PATIENCE = 30


def click(id="c1", user="ann", **more):
    return {"id": id, "user": user, "at": NOW, **more}


class Watched(MemoryLog):
    """A log that counts its appends, and fails or waits when told to."""

    def __init__(self) -> None:
        super().__init__(clock=FakeClock(NOW))
        self.batches: list[int] = []
        self.failures: list[HeadraceError] = []
        self.go = threading.Event()
        self.go.set()

    def append_batch(self, topic: str, messages: Sequence[Message], *, partition: int | None = None) -> list[Position]:
        assert self.go.wait(PATIENCE)
        self.batches.append(len(messages))
        if self.failures:
            raise self.failures.pop(0)
        if any(message.value == b"poison" for message in messages):
            raise DataError("bad-message", "A message is refused.")
        return super().append_batch(topic, messages, partition=partition)


@pytest.fixture
def log():
    made = Watched()
    yield made
    made.go.set()


def test_events_go_in_order_to_where_their_keys_belong(log):
    log.create_topic("clicks", partitions=3)
    with hr.Producer(stream=CLICKS, log=log) as producer:
        futures = [producer.send(click(f"c{n}", f"u{n % 5}")) for n in range(50)]
    assert len({future.result() for future in futures}) == 50
    found = {Position(each.partition, each.offset): each for each in logged(log, CLICKS)}
    for number, future in enumerate(futures):
        assert found[future.result()].key == f"u{number % 5}".encode()
        assert f'"id":"c{number}"'.encode() in (found[future.result()].value or b"")
    assert producer.counts == (50, 0, 0, 0)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (click(user=7), "user must be a string"),
        ({"id": "c1"}, "is required"),
        (click(price=-1.0), "check not_negative is false"),
        (click(prise=1.0), "has no such field"),
        (b"{", "malformed"),
        (b'{"id":"c1"}', "invalid, user is required"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_at_once_and_counted(log, row, reason):
    with hr.Producer(stream=CLICKS, log=log) as producer:
        with pytest.raises(DataError, match=reason) as refused:
            producer.send(row)
        assert refused.value.code == "bad-record"
        assert producer.counts == (0, 1, 0, 0)
    assert logged(log, CLICKS) == []


def test_an_event_may_be_handed_over_as_the_text_it_is(log):
    text = b'{"id": "c1", "user": "ann", "at": "2026-06-01T00:00:00Z", "more": 1}'
    with hr.Producer(stream=CLICKS, log=log) as producer:
        producer.send(text)
    assert [(each.key, each.value) for each in logged(log, CLICKS)] == [(b"ann", text)]


@pytest.mark.parametrize("format", ["avro", "confluent-avro", "confluent-json"])
def test_a_row_is_written_in_the_format_of_its_stream(log, format):
    from headrace.codec.wire import decoder

    stream = hr.stream("s", fields={"user": str, "at": hr.Timestamp}, event_time="at", key="user", format=format)
    with hr.Producer(stream=stream, log=log) as producer:
        producer.send({"user": "ann", "at": NOW})
        producer.send(b'{"user": "ann", "at": "2026-06-01T00:00:00Z"}')
    first, second = logged(log, stream)
    assert (first.key, first.value) == (b"ann", second.value)
    assert (decoder(stream)(first.value).row or {})["user"] == "ann"


def test_poison_is_sent_when_asked_for(log):
    with hr.Producer(stream=CLICKS, log=log, unchecked=True) as producer:
        producer.send(b"\xff\x00", key="k")
        producer.send({"id": 7, "extra": [None]})
    assert [(each.key, each.value) for each in logged(log, CLICKS)] == [
        (b"k", b"\xff\x00"),
        (None, b'{"id":7,"extra":[null]}'),
    ]


def test_many_threads_share_a_producer_and_every_event_is_there_once(log):
    with hr.Producer(stream=CLICKS, log=log, linger="1ms", batch=64, buffer=100) as producer:

        def work(number):
            for each in range(300):
                producer.send(click(f"{number}-{each}"))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = Counter(each.value for each in logged(log, CLICKS))
    assert (len(found), set(found.values())) == (2_400, {1})
    assert max(log.batches) <= 64


def test_events_that_wait_together_are_one_append(log):
    with hr.Producer(stream=CLICKS, log=log, linger="1h") as producer:
        for number in range(10):
            producer.send(click(f"c{number}"))
        producer.flush(PATIENCE)
        assert log.batches == [10]


def test_a_full_batch_does_not_linger(log):
    with hr.Producer(stream=CLICKS, log=log, linger="1h", batch=2) as producer:
        first = producer.send(click("c1"))
        producer.send(click("c2"))
        assert first.result(PATIENCE) == (0, 0)


def test_an_event_alone_goes_when_it_has_waited_long_enough(log):
    with hr.Producer(stream=CLICKS, log=log, linger="1ms") as producer:
        assert producer.send(click()).result(PATIENCE) == (0, 0)


def test_a_full_buffer_blocks_and_then_fails_and_says_that_the_event_was_not_taken(log):
    with hr.Producer(stream=CLICKS, log=log, buffer=2, block="20ms") as producer:
        log.go.clear()
        taken = [producer.send(click(f"c{number}")) for number in range(2)]
        with pytest.raises(MachineError, match="the event was not taken") as refused:
            producer.send(click("c9"))
        assert (refused.value.code, refused.value.got.startswith("2 events, ")) == ("buffer-full", True)
        assert producer.counts == (0, 1, 0, 2)
        log.go.set()
        assert [future.result(PATIENCE).offset for future in taken] == [0, 1]
    assert len(logged(log, CLICKS)) == 2


def test_a_blocked_event_is_taken_as_soon_as_there_is_room(log):
    with hr.Producer(stream=CLICKS, log=log, buffer=1, block="1h", linger="0s") as producer:
        log.go.clear()
        producer.send(click("c1"))
        threading.Timer(0.05, log.go.set).start()
        assert producer.send(click("c2")).result(PATIENCE) == (0, 1)


def test_the_buffer_is_bounded_in_bytes_too_but_takes_one_event_of_any_size(log, monkeypatch):
    monkeypatch.setattr(module, "BUFFER_BYTES", 1_000)
    with hr.Producer(stream=CLICKS, log=log, block="10ms") as producer:
        log.go.clear()
        producer.send(click("c" * 5_000))
        with pytest.raises(MachineError, match="stayed full for 10ms"):
            producer.send(click())
        log.go.set()


FAILED = MachineError("log-full", "The log cannot grow.")


def test_a_failure_of_the_log_is_told_to_the_future_and_once_at_flush(log):
    log.failures = [FAILED]
    with hr.Producer(stream=CLICKS, log=log, linger="1h") as producer:
        futures = [producer.send(click(f"c{number}")) for number in range(3)]
        with pytest.raises(MachineError, match="3 events were not appended") as told:
            producer.flush(PATIENCE)
        assert (told.value.code, told.value.__cause__) == ("not-delivered", FAILED)
        assert [future.exception() for future in futures] == [FAILED] * 3
        later = producer.send(click("later"))
        producer.flush(PATIENCE)
        assert later.result() == (0, 0)
        assert producer.counts == (1, 0, 3, 0)
    assert len(logged(log, CLICKS)) == 1
    assert log.batches == [3, 1], "a batch is handed to the log once"


def test_a_failure_that_nobody_asked_about_is_told_at_the_end(log):
    log.failures = [FAILED]
    with pytest.raises(MachineError, match="1 event was not appended"), hr.Producer(stream=CLICKS, log=log) as producer:
        producer.send(click())


def test_a_message_that_the_log_refuses_fails_alone(log):
    producer = hr.Producer(stream=CLICKS, log=log, linger="1h", unchecked=True)
    futures = [producer.send(value) for value in (b"1", b"poison", b"3")]
    with pytest.raises(MachineError, match="1 event was not appended"):
        producer.close(PATIENCE)
    assert str(futures[1].exception()).startswith("A message is refused.")
    assert [each.value for each in logged(log, CLICKS)] == [b"1", b"3"]


def test_a_flush_that_takes_too_long_says_what_is_left(log):
    with hr.Producer(stream=CLICKS, log=log) as producer:
        log.go.clear()
        producer.send(click())
        with pytest.raises(MachineError, match=r"1 event was not appended within 0\.01 s"):
            producer.flush(0.01)
        log.go.set()


def test_nothing_is_taken_after_the_end(log):
    producer = hr.Producer(stream=CLICKS, log=log)
    producer.close()
    with pytest.raises(DataError, match="is closed"):
        producer.send(click())
    producer.close()


def test_what_is_on_its_way_cannot_be_called_back(log):
    with hr.Producer(stream=CLICKS, log=log) as producer:
        assert not producer.send(click()).cancel()


# arrival


def test_history_sent_with_its_arrival_is_not_late(log):
    with hr.Producer(stream=CLICKS, log=log) as producer:
        producer.send(click("old", at="2026-01-01T00:00:00Z"))
        producer.send(click("kept", at="2026-01-01T00:00:00Z"), arrived_at="2026-01-01T00:00:02Z")
    judged = {each.event.event_id: each for each in run([USERS], logged(log, CLICKS)).judged}
    assert (judged["old"].verdict, judged["kept"].verdict, judged["kept"].lane) == ("late", "admitted", "late")
    assert judged["old"].place[0] - judged["kept"].place[0] > 100 * DAY


def test_a_stream_that_takes_its_arrival_from_a_header_gets_one(log):
    stream = hr.stream("s", fields={"at": hr.Timestamp}, event_time="at", arrival="header:seen")
    with hr.Producer(stream=stream, log=log) as producer:
        producer.send({"at": NOW}, headers=(("trace", b"1"),), arrived_at=NOW)
        producer.send({"at": NOW})
    first, second = logged(log, stream)
    assert first.headers == (("trace", b"1"), ("seen", NOW.encode()))
    assert second.headers[0][0] == "seen"


def test_an_arrival_is_refused_where_a_field_says_it(log):
    stream = hr.stream("s", fields={"at": hr.Timestamp, "seen": hr.Timestamp}, event_time="at", arrival="field:seen")
    with hr.Producer(stream=stream, log=log) as producer, pytest.raises(DataError, match="is its field 'seen'"):
        producer.send({"at": NOW, "seen": NOW}, arrived_at=NOW)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"headers": (("headrace.arrived_at", b"1"),)}, "Headrace's own"),
        ({"headers": (("x", "text"),)}, "a name and bytes"),
        ({"key": 7}, "bytes or None"),
        ({"arrived_at": "2026-01-01"}, "needs a UTC offset"),
    ],
)
def test_what_an_event_cannot_carry_is_refused(log, given, said):
    with hr.Producer(stream=CLICKS, log=log) as producer, pytest.raises(HeadraceError, match=said):
        producer.send(click(), **given)


@pytest.mark.parametrize(
    ("wish", "error"),
    [({"batch": 0}, DataError), ({"buffer": True}, DataError), ({"linger": "soon"}, DefinitionError)],
)
def test_a_wish_that_makes_no_sense_is_refused(log, wish, error):
    with pytest.raises(error):
        hr.Producer(stream=CLICKS, log=log, **wish)


# projects and processes

PAYMENT = {"id": "p1", "card": "42", "amount": 1.5, "country": "DE", "at": NOW}


@pytest.fixture
def shop(tmp_path):
    create(tmp_path / "shop")
    return tmp_path / "shop"


def sent(shop):
    from headrace.config.config import load

    with open_log(load(shop)) as log:
        return sum(log.end_offsets("payments").values())


def test_a_producer_finds_its_project_and_makes_the_topics(shop, monkeypatch):
    with hr.Producer(shop, stream="payments") as producer:
        producer.send(PAYMENT).result(PATIENCE)
    monkeypatch.chdir(shop)
    with hr.Producer(stream="payments") as producer:
        producer.send(PAYMENT)
    assert sent(shop) == 2
    with pytest.raises(HeadraceError, match="no such stream") as unknown:
        hr.Producer(shop, stream="paymnets")
    assert "payments" in str(unknown.value.hint)


def test_a_program_that_forgets_to_close_still_delivers(shop):
    program = (
        "import sys, headrace as hr\n"
        "producer = hr.Producer(sys.argv[1], stream='payments', linger='1h')\n"
        f"for n in range(5): producer.send({PAYMENT!r} | {{'id': str(n)}})\n"
    )
    subprocess.run([sys.executable, "-c", program, str(shop)], check=True, timeout=60)
    assert sent(shop) == 5


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_told_to_make_its_own(log):
    with hr.Producer(stream=CLICKS, log=log) as producer:
        child = os.fork()
        if child == 0:
            try:
                producer.send(click())
            except DataError as error:
                os._exit(7 if error.code == "not-running" else 1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
