"""One incident for each cause, of the right kind, with what moved first and furthest."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from headrace.clock import DAY, HOUR
from headrace.drift import DriftAlarm, Incident, IncidentChange
from headrace.drift.incident import joined, kind_of, opened
from headrace.drift.ledger import Ledger
from headrace.errors import DataError


def alarm(series, since=0, times=2.0, at=None):
    return DriftAlarm(series, since * HOUR, (since + 5 if at is None else at) * HOUR, 0.5, 0.0, 0.5, times)


def test_alarms_that_begin_near_each_other_are_one_incident():
    ledger = Ledger("fraud", 1)
    first = ledger.add(alarm("mean of amount", 100), DAY)
    assert ledger.add(alarm("psi of amount", 110), DAY).incident == first.incident
    assert ledger.add(alarm("score", 90), DAY).incident == first.incident
    assert ledger.add(alarm("psi of country", 200), DAY).incident != first.incident
    assert [len(each.alarms) for each in ledger.incidents.values()] == [3, 1]


def test_a_change_that_began_while_the_incident_built_up_belongs_to_it():
    slow = opened("fraud", 1, alarm("mean of amount", 0, at=300))
    assert joined([slow], alarm("psi of amount", 310), DAY) == slow
    assert joined([slow], alarm("psi of amount", 330), DAY) is None


def test_the_series_that_moved_furthest_names_the_incident():
    incident = opened("fraud", 1, alarm("mean of amount", times=2.0))
    incident = incident.with_alarm(alarm("psi of amount", times=9.0)).with_alarm(alarm("mean of age", times=3.0))
    assert incident.moved.series == "psi of amount"
    assert [each.series for each in incident.explaining] == ["mean of age", "mean of amount"]


@pytest.mark.parametrize(
    ("series", "kind"),
    [
        (["null rate of card"], "data quality"),
        (["new share of country", "psi of country", "log_loss"], "data quality"),
        (["mean of amount", "mean of score"], "inputs"),
        (["mean of amount", "log_loss"], "inputs"),
        (["mean of score"], "scores"),
        (["mean of score", "log_loss"], "concept"),
        (["log_loss", "brier"], "concept"),
    ],
)
def test_the_kind_is_the_first_cause_in_the_chain(series, kind):
    for order in itertools.permutations(series):
        assert kind_of([alarm(each) for each in order]) == kind


def test_an_error_that_moved_far_more_than_its_inputs_is_the_concepts():
    assert kind_of([alarm("mean of amount", times=1.5), alarm("log_loss", times=20.0)]) == "concept"
    assert kind_of([alarm("mean of amount", times=10.0), alarm("log_loss", times=20.0)]) == "inputs"


def test_the_id_is_that_of_model_version_series_and_moment():
    ids = {
        opened(model, version, alarm(series, since)).id
        for model, version, series, since in itertools.product("ab", (1, 2), ("log_loss", "brier"), (0, 1))
    }
    assert len(ids) == 16
    assert opened("a", 1, alarm("brier", times=9.0)).id == opened("a", 1, alarm("brier", times=3.0)).id


def test_an_incident_is_acknowledged_closed_and_then_stays_so():
    incident = opened("fraud", 1, alarm("log_loss"))
    seen = incident.changed(IncidentChange("acknowledged", "kim", "looking", 1))
    over = seen.changed(IncidentChange("closed", "kim", "new price list", 2))
    assert [each.state for each in (incident, seen, over)] == ["open", "acknowledged", "closed"]
    assert [change.why for change in over.changes] == ["looking", "new price list"]
    with pytest.raises(DataError) as error:
        over.changed(IncidentChange("acknowledged", "kim", "again", 3))
    assert "closed" in str(error.value)
    with pytest.raises(DataError):
        incident.changed(IncidentChange("open", "kim", "", 1))


def test_a_closed_incident_takes_no_more_alarms():
    ledger = Ledger("fraud", 1)
    first = ledger.add(alarm("mean of amount", 100), DAY)
    ledger.change(first.incident, IncidentChange("closed", "kim", "known", 1))
    assert ledger.add(alarm("psi of amount", 101), DAY).incident != first.incident


def test_an_incident_recovers_when_its_last_series_is_back():
    ledger = Ledger("fraud", 1)
    name = ledger.add(alarm("mean of amount", 100), DAY).incident
    ledger.add(alarm("psi of amount", 100), DAY)
    ledger.returned(name, "psi of amount", 7)
    assert ledger.incidents[name].recovered is None
    ledger.returned(name, "mean of amount", 150 * HOUR)
    assert ledger.incidents[name].recovered == 150 * HOUR
    assert "Recovered at" in ledger.incidents[name].says
    late = ledger.add(alarm("log_loss", 101), DAY)
    assert late.incident == name, "labels came after it was over, and tell of the same time"
    assert ledger.incidents[name].recovered is None


def test_incidents_are_kept_until_they_were_over_for_so_long_and_those_under_way_for_ever():
    ledger = Ledger("fraud", 1)
    under_way = ledger.add(alarm("score", 0), 0).incident
    for at in range(1, 51):
        name = ledger.add(alarm("mean of amount", at * 100), DAY).incident
        if at % 2:
            ledger.returned(name, "mean of amount", at * 100 * HOUR)
        else:
            ledger.change(name, IncidentChange("closed", "kim", "known", at * 100 * HOUR))
    ledger.forget(100 * HOUR)
    assert len(ledger.incidents) == 51
    ledger.forget(4_000 * HOUR)
    assert len(ledger.incidents) == 12
    assert under_way in ledger.incidents


def test_an_incident_nobody_knows_is_not_found():
    with pytest.raises(DataError) as error:
        Ledger("fraud", 1).change("abc", IncidentChange("closed", "kim", "", 1))
    assert error.value.code == "not-found"


def test_an_incident_can_be_kept_as_json():
    incident = opened("fraud", 1, alarm("log_loss")).with_alarm(alarm("mean of amount"))
    assert msgspec.json.decode(msgspec.json.encode(incident), type=Incident) == incident
