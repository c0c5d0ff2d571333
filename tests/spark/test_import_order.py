"""Which copy of an event counts is decided by arrival, and not by the order of the file that is imported."""

from __future__ import annotations

import json
import random
from collections import Counter
from types import SimpleNamespace

import pytest

from headrace.clock import MINUTE, SECOND, micros, show_time
from headrace.log.embedded.log import EmbeddedLog
from headrace.log.record import Message, Record
from headrace.meaning.verdict import judge
from headrace.testing import FakeClock
from tests.budget import count_cases, run_seed
from tests.spark.test_history import LONG_AGO, bring, line, opened, payments, rows, wish

pytestmark = [pytest.mark.spark, pytest.mark.generated]

DELAYS = (-61 * SECOND, 0, 1, SECOND, 4 * MINUTE, 5 * MINUTE, 5 * MINUTE + 1, 9 * MINUTE)
FILES, ROWS = 0.4, 12
"""The share of generated files, and the rows of each."""


def shuffled_file(seed):
    """Lines of many small files in one, with few events and many copies that may contradict; and their arrivals."""
    chance, lines = random.Random(seed), []
    for file in range(count_cases(FILES)):
        for _ in range(ROWS):
            number = chance.randrange(4)
            at = LONG_AGO + number * SECOND
            arrival = at + chance.choice(DELAYS)
            other = {"id": f"{file}-{number}", "amount": chance.choice([1.5, 1.5, 2.5])}
            lines.append((line(number, seen=show_time(arrival), **other), arrival))
    chance.shuffle(lines)
    return lines


@pytest.fixture(scope="module")
def lakes(spark, tmp_path_factory):
    """A shuffled file, the lake that it was imported into, and one that was archived while its rows arrived."""
    from headrace.spark.archive.archive import StreamArchive

    folder, lines = tmp_path_factory.mktemp("order"), shuffled_file(run_seed())
    imported, archived = opened(folder / "imported"), opened(folder / "archived")
    texts = [text for text, _ in lines]
    bring(spark, imported, wish(folder / "old.jsonl", texts), folder, most=len(lines) * 2 // 3)
    clock = FakeClock(min(arrival for _, arrival in lines))
    with EmbeddedLog(folder / "log", clock=clock) as log:
        log.create_topic("payments")
        for text, arrival in sorted(lines, key=lambda each: each[1]):
            if arrival > clock.now():
                clock.advance(f"{arrival - clock.now()}us")
            log.append_batch("payments", [Message(text.encode())])
        clock.advance("1m")
        made = StreamArchive(payments, "payments", log, archived, spark, clock).step(len(lines))
    assert made is not None
    return SimpleNamespace(lines=lines, imported=imported, archived=archived, folder=folder)


def verdicts(lake):
    """What a lake says of every line that arrived at some moment."""
    return Counter(
        (row["value"].decode(), micros(row["arrived_at"]), row["verdict"], row["first_offset"] is None)
        for row in rows(lake.bronze)
    )


def events(lake):
    """What counts in a lake, since when and in which lane."""
    names = ("_event_id", "amount", "_arrived_at", "_late")
    return sorted(tuple(row[name] for name in names) for row in rows(lake.silver))


def test_import_archive_and_reference_agree_on_the_copies_of_a_shuffled_file(lakes):
    records = [
        Record("payments", 0, at, arrival, None, text.encode()) for at, (text, arrival) in enumerate(lakes.lines)
    ]
    judged = judge(payments, records)
    expected = Counter(
        ((each.record.value or b"").decode(), each.place[0], each.verdict, each.first is None) for each in judged
    )
    assert {each.verdict for each in judged} == {"admitted", "late", "duplicate", "future"}
    assert verdicts(lakes.imported) == expected
    assert verdicts(lakes.archived) == expected
    assert events(lakes.imported) == events(lakes.archived)
    counted = [(each.event.event_id, each.event.row["amount"]) for each in judged if each.contributes]
    assert [row[:2] for row in events(lakes.imported)] == sorted(counted)


def test_an_import_says_which_rows_arrived_before_the_copy_that_the_lake_has(lakes, spark):
    from headrace.lake.overview import stream_as_json

    first, *_ = events(lakes.imported)
    arrived = micros(first[2])
    event = json.loads(next(text for text, _ in lakes.lines if json.loads(text)["id"] == first[0]))
    copies = [json.dumps(event | {"seen": show_time(seen)}) for seen in (arrived - 1, arrived + 1)]
    done = bring(spark, lakes.imported, wish(lakes.folder / "more.jsonl", copies), lakes.folder)
    assert (done.rows, done.earlier_copies) == (2, 1)
    earlier, plain = (row for row in rows(lakes.imported.bronze) if row["partition"] == done.partition)
    assert earlier["reason"] == f"{plain['reason']}, which arrived later"
    told = stream_as_json({"bronze": lakes.imported.bronze, "silver": lakes.imported.silver})
    assert [each["earlier_copy"] for each in told["imports"]] == [0, 1]
