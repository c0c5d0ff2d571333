from __future__ import annotations

import json

import pytest

from headrace.clock import DAY, HOUR, micros
from headrace_demo.world.files import write_labels, write_payments
from headrace_demo.world.labels import labels
from headrace_demo.world.stream import READABLE, World, history

WORLD = World(seed=6, start=micros("2026-03-04T10:00:00Z"), cards=1_000, days=3, payments=8_000)


@pytest.fixture(scope="module")
def past():
    return list(history(WORLD))


def test_every_readable_payment_has_one_label_that_tells_the_truth(past):
    truth = {each.event["id"]: (each.event["card"], each.is_fraud) for each in past if each.kind in READABLE}
    made = list(labels(past, seed=6))
    assert len(made) == len(truth)
    assert {each.payment: (each.card, each.fraud) for each in made} == truth


def test_labels_come_by_their_own_time_hours_to_days_after_the_payment(past):
    paid = {each.event["id"]: micros(each.event["at"]) for each in past}
    made = list(labels(past, seed=6))
    assert [each.at for each in made] == sorted(each.at for each in made)
    waits = [each.at - paid[each.payment] for each in made]
    assert min(waits) >= 2 * HOUR
    assert DAY < max(waits) <= 5 * DAY


def test_a_file_of_history_has_what_can_be_read_with_its_arrival(past, tmp_path):
    file = tmp_path / "payments.jsonl"
    count = write_payments(past, file)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    kept = [each for each in past if each.kind in (*READABLE, "duplicate")]
    assert count == len(rows) == len(kept)
    for row, each in zip(rows, kept, strict=True):
        assert micros(row.pop("arrived_at")) == each.sent_at
        assert row == each.event


def test_a_file_of_labels_names_payments(past, tmp_path):
    file = tmp_path / "labels.jsonl"
    made = list(labels(past, seed=6))
    assert write_labels(made, file) == len(made)
    row = json.loads(file.read_text().splitlines()[0])
    first = made[0]
    assert row == {"at": row["at"], "payment": first.payment, "card": first.card, "fraud": first.fraud}
    assert micros(row["at"]) == first.at
