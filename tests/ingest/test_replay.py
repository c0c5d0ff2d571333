"""Dead letters replayed: each exactly once wherever it is cut off, with its own arrival, through admission again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.clock import DAY, HOUR, SECOND
from headrace.config.config import Names
from headrace.errors import DataError, MachineError
from headrace.ingest.dead_letters import replay as module
from headrace.ingest.dead_letters.lock import locked
from headrace.ingest.dead_letters.replay import LetterTopics, ReplayOptions, drop, replay
from headrace.ingest.dead_letters.selection import LetterSelection
from headrace.log import EmbeddedLog, MemoryLog, Message, Position, Retention
from headrace.meaning.verdict import ARRIVED_AT, REPLAY_OF, judge
from headrace.spark.dead_letter import DeadLetter, present, walk
from headrace.testing import FakeClock, logged
from tests.streams import BASE

CLICKS = hr.stream(
    "clicks", fields={"user": str, "at": hr.Timestamp("us")}, event_time="at", key="user", allowed_lateness="10m"
)
PLACES = LetterTopics("clicks", "clicks.dead")
EVERYTHING = ReplayOptions(LetterSelection())


def good(user: str = "ann") -> bytes:
    return f'{{"user":"{user}","at":{BASE}}}'.encode()


def letter(number: int, value: bytes | None = None, **more) -> DeadLetter:
    """A letter that would now be admitted, as after a mended definition."""
    held = {"verdict": "invalid", "reason": "country is required", "key": None, "headers": ()} | more
    body = good() if value is None else value
    return DeadLetter(partition=0, offset=number, arrived_at=BASE + SECOND + number, value=body, size=len(body), **held)


def prepared(log, letters: Sequence[DeadLetter]):
    log.create_topic("clicks", partitions=2)
    log.create_topic("clicks.dead", compacted=True)
    log.append_batch("clicks.dead", [each.message for each in letters])
    return log


@pytest.fixture
def log():
    return MemoryLog(clock=FakeClock(BASE + HOUR))


CLOCK = FakeClock(BASE + HOUR)


def there(log) -> dict[str, DeadLetter]:
    return present(walk(log, "clicks.dead"))


def test_a_replayed_letter_is_appended_with_its_own_arrival_key_and_headers_and_goes(log):
    one = letter(7, key=b"\xff", headers=(("trace", b"\x00"), ("trace", b"2"), (ARRIVED_AT, b"1")))
    prepared(log, [one])
    done = replay(log, CLICKS, PLACES, EVERYTHING, CLOCK)
    (record,) = logged(log, CLICKS)
    assert (record.key, record.value) == (b"\xff", good())
    arrival = str(one.arrived_at).encode()
    assert record.headers == (("trace", b"\x00"), ("trace", b"2"), (ARRIVED_AT, arrival), (REPLAY_OF, b"0/7"))
    (judged,) = judge(CLICKS, [record])
    assert (judged.verdict, judged.place[0], judged.lane) == ("admitted", one.arrived_at, "late")
    assert [(each.id, each.position, each.verdict) for each in done.sent] == [
        ("0/7", Position(record.partition, record.offset), "admitted")
    ]
    assert there(log) == {}


def test_a_letter_that_would_be_dead_again_is_left_with_the_reason(log):
    prepared(log, [letter(0), letter(1, b"{"), letter(2, b'{"user":"x","at":%d}' % (BASE + DAY))])
    done = replay(log, CLICKS, PLACES, EVERYTHING, CLOCK)
    assert [(each.id, each.verdict) for each in done.left] == [("0/1", "malformed"), ("0/2", "future")]
    assert done.left[1].reason.startswith("dated ")
    assert there(log).keys() == {"0/1", "0/2"}
    assert len(logged(log, CLICKS)) == 1


def test_a_letter_that_is_late_by_its_first_arrival_is_sent_because_it_is_dead_no_more(log):
    prepared(log, [letter(0, b'{"user":"x","at":%d}' % (BASE - DAY))])
    assert [each.verdict for each in replay(log, CLICKS, PLACES, EVERYTHING, CLOCK).sent] == ["late"]


def test_force_sends_them_anyway(log):
    prepared(log, [letter(1, b"{")])
    done = replay(log, CLICKS, PLACES, ReplayOptions(LetterSelection(), force=True), CLOCK)
    assert [each.verdict for each in done.sent] == ["malformed"]
    assert (logged(log, CLICKS)[0].value, there(log)) == (b"{", {})


def test_a_null_value_stays_one(log):
    prepared(log, [replace(letter(1), value=None, size=0)])
    replay(log, CLICKS, PLACES, ReplayOptions(LetterSelection(), force=True), CLOCK)
    assert logged(log, CLICKS)[0].value is None


def test_a_mended_value_takes_the_place_of_the_broken_one_and_has_its_key(log):
    prepared(log, [letter(1, b"{"), letter(2, b"{")])
    replay(log, CLICKS, PLACES, ReplayOptions(LetterSelection(ids=("0/2",)), value=good("bob")), CLOCK)
    (record,) = logged(log, CLICKS)
    assert (record.value, record.key, dict(record.headers)[REPLAY_OF]) == (good("bob"), b"bob", b"0/2")
    assert there(log).keys() == {"0/1"}


def test_a_stream_that_takes_its_arrival_from_a_field_finds_it_when_it_can_be_read(log):
    fields = {"user": str, "at": hr.Timestamp("us"), "seen": hr.Timestamp("us")}
    stream = hr.stream("clicks", fields=fields, event_time="at", arrival="field:seen")
    prepared(log, [letter(0, b'{"user":"a","at":%d,"seen":%d}' % (BASE, BASE + 5)), letter(1, b"{")])
    replay(log, stream, PLACES, ReplayOptions(LetterSelection(), force=True), CLOCK)
    arrivals = {dict(each.headers)[REPLAY_OF]: dict(each.headers)[ARRIVED_AT] for each in logged(log, stream)}
    assert arrivals == {b"0/0": str(BASE + 5).encode(), b"0/1": str(BASE + SECOND + 1).encode()}


def test_letters_are_chosen_by_verdict_reason_and_arrival(log):
    prepared(log, [letter(0), letter(1, verdict="malformed"), letter(2, reason="NO user"), letter(3)])
    for wanted, expected in [
        (LetterSelection(verdict="malformed"), ["0/1"]),
        (LetterSelection(reason="no USER"), ["0/2"]),
        (LetterSelection(since=BASE + SECOND + 3), ["0/3"]),
    ]:
        assert [each.id for each in replay(log, CLICKS, PLACES, ReplayOptions(wanted), CLOCK).sent] == expected
    assert there(log).keys() == {"0/0"}


def test_a_name_that_is_not_there_is_refused_and_nothing_is_sent(log):
    prepared(log, [letter(0)])
    with pytest.raises(DataError, match="no such dead letter") as refused:
        replay(log, CLICKS, PLACES, ReplayOptions(LetterSelection(ids=("0/0", "0/9"))), CLOCK)
    assert (refused.value.code, refused.value.got) == ("no-letter", "'0/9'")
    assert logged(log, CLICKS) == []


def test_dropped_letters_go_and_are_told(log):
    prepared(log, [letter(0), letter(1)])
    assert [each.id for each in drop(log, PLACES, LetterSelection(ids=("0/1",)))] == ["0/1"]
    assert there(log).keys() == {"0/0"}
    assert logged(log, CLICKS) == []


def test_a_letter_that_a_batch_writes_again_after_it_was_done_with_stays_gone(log):
    prepared(log, [letter(0), letter(1)])
    replay(log, CLICKS, PLACES, ReplayOptions(LetterSelection(ids=("0/0",))), CLOCK)
    drop(log, PLACES, LetterSelection(ids=("0/1",)))
    log.append_batch("clicks.dead", [letter(0).message, letter(1).message])
    assert there(log) == {}
    assert replay(log, CLICKS, PLACES, EVERYTHING, CLOCK).sent == []


def test_a_letter_that_a_batch_writes_again_keeps_that_its_replay_was_begun(log):
    prepared(log, [letter(0), replace(letter(0), replaying={0: 3}), letter(0)])
    assert there(log)["0/0"].replaying == {0: 3}


def test_another_record_at_the_same_position_is_another_letter(log):
    prepared(log, [letter(0)])
    drop(log, PLACES, LetterSelection())
    log.append_batch("clicks.dead", [replace(letter(0), arrived_at=BASE + DAY).message])
    assert there(log).keys() == {"0/0"}


# cut off


class Cut(Exception):  # noqa: N818 - it is no error, it is an end
    """The process dies here."""


class Dying(MemoryLog):
    """A log whose process dies at the nth append, just before or just after it."""

    def __init__(self) -> None:
        super().__init__(clock=FakeClock(BASE + HOUR))
        self.left: int | None = None
        self.after = False
        self.part = False

    def append_batch(self, topic: str, messages: Sequence[Message], *, partition: int | None = None) -> list[Position]:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                if self.part:
                    # As Kafka may: the beginning of a batch was kept.
                    super().append_batch(topic, messages[: len(messages) // 2], partition=partition)
                elif self.after:
                    super().append_batch(topic, messages, partition=partition)
                raise Cut
        return super().append_batch(topic, messages, partition=partition)


cuts = st.lists(st.tuples(st.integers(0, 8), st.sampled_from(["before", "after", "part"])), max_size=4)


@given(cuts=cuts, compact=st.booleans(), others=st.integers(0, 3))
def test_every_letter_is_appended_exactly_once_wherever_replays_are_cut_off(cuts, compact, others):
    log = prepared(Dying(), [letter(number, good(f"u{number}")) for number in range(7)])
    before, module.PART = module.PART, 3
    try:
        for at, how in cuts:
            log.left, log.after, log.part = at, how == "after", how == "part"
            with contextlib.suppress(Cut):
                replay(log, CLICKS, PLACES, EVERYTHING, CLOCK)
            log.left = None
            log.append_batch("clicks", [Message(good("other"))] * others)
            if compact:
                log.clean("clicks.dead")
        replay(log, CLICKS, PLACES, EVERYTHING, CLOCK)
    finally:
        module.PART = before
    counts = Counter(dict(each.headers).get(REPLAY_OF) for each in logged(log, CLICKS))
    del counts[None]
    assert counts == Counter({f"0/{number}".encode(): 1 for number in range(7)})
    assert there(log) == {}


def test_a_letter_whose_cut_off_replay_had_appended_it_is_told_as_found_also_when_it_is_named(log):
    log = prepared(Dying(), [letter(0)])
    log.left, log.after = 1, True
    with pytest.raises(Cut):
        replay(log, CLICKS, PLACES, EVERYTHING, CLOCK)
    log.left = None
    done = replay(log, CLICKS, PLACES, ReplayOptions(LetterSelection(ids=("0/0",))), CLOCK)
    assert (done.found, done.sent, len(logged(log, CLICKS))) == (["0/0"], [], 1)


def test_a_letter_of_which_nothing_can_be_known_any_more_is_left_unless_forced():
    clock = FakeClock(BASE + HOUR)
    log = Dying()
    log._clock = clock
    prepared(log, [letter(0)])
    log.append_batch("clicks", [Message(good())] * 3, partition=0)
    log.left, log.after = 1, True
    with pytest.raises(Cut):
        replay(log, CLICKS, PLACES, EVERYTHING, CLOCK)
    log.left = None
    clock.advance("2d")
    log.create_topic("clicks", partitions=2, retention=Retention.of(age="1d"))
    log.clean("clicks")
    done = replay(log, CLICKS, PLACES, EVERYTHING, CLOCK)
    assert [(each.id, each.reason) for each in done.left] == [("0/0", module.UNSURE)]
    assert len(replay(log, CLICKS, PLACES, ReplayOptions(LetterSelection(), force=True), CLOCK).sent) == 1


KILLED = """
import sys
sys.path.insert(0, sys.argv[2])
from headrace.clock import SystemClock
from headrace.ingest.dead_letters import replay as module
from headrace.log import EmbeddedLog
from tests.ingest.test_replay import CLICKS, EVERYTHING, PLACES

module.PART = 3
with EmbeddedLog(sys.argv[1]) as log:
    print("begins", flush=True)
    done = module.replay(log, CLICKS, PLACES, EVERYTHING, SystemClock(), lambda done, total: print(done, flush=True))
"""


def test_replays_killed_again_and_again_append_every_letter_once(tmp_path):
    count = 120
    with EmbeddedLog(tmp_path) as log:
        prepared(log, [letter(number, good(f"u{number}")) for number in range(count)])
    root = str(Path(__file__).parents[2])
    for wait in range(6):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path), root], stdout=subprocess.PIPE)
        # It has begun, and a few parts are done; it goes on meanwhile, so the end comes anywhere.
        for _ in range(1 + wait):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    with EmbeddedLog(tmp_path) as log:
        replay(log, CLICKS, PLACES, EVERYTHING, FakeClock(BASE + HOUR))
        records = [each for partition in (0, 1) for each in log.read("clicks", partition, 0, limit=10_000)]
        assert Counter(dict(each.headers)[REPLAY_OF] for each in records) == Counter(
            {f"0/{number}".encode(): 1 for number in range(count)}
        )
        assert there(log) == {}


def test_only_one_process_at_a_time_replays(tmp_path):
    named = Names("", "shop", tmp_path)
    with locked(named), pytest.raises(MachineError, match="Another process") as refused, locked(named):
        pass
    assert refused.value.code == "letters-locked"
    with locked(named):
        pass
