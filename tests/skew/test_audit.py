"""A project audited over its log and its lake: what waits for the lake, what is found, who is told."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.asof.lake import PastEvents
from headrace.clock import HOUR
from headrace.errors import DataError
from headrace.skew.audit import audit
from headrace.skew.process import Auditing
from headrace.status.records import AuditStatus
from headrace.status.topic import read_status
from headrace.topics import STATUS
from tests.cli.asking import asking
from tests.skew.shop import Shop
from tests.skew.world import plan
from tests.streams import BASE

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def shop(tmp_path_factory, spark):
    made = Shop(tmp_path_factory.mktemp("audit") / "shop", spark)
    made.send()
    made.serve(made.world.rows())
    yield made
    made.log.close()


def test_what_the_lake_does_not_know_yet_waits(shop):
    found = shop.audit()
    assert (found.waiting, found.counts.total.compared) == (1, 0)
    shop.archive()
    found = shop.audit()
    assert (found.waiting, found.counts.total.compared) == (0, 5)
    assert found.as_json()["features"]["cards.spend_1h"]["equal"] == 1


def test_the_process_tells_what_it_found_and_raises_an_alarm(shop):
    auditing = Auditing(plan, shop.config, shop.log, shop.clock)
    shop.serve(shop.world.rows())
    shop.clock.advance("2m")
    auditing.step()
    told = read_status(shop.log, STATUS, AuditStatus).get(AuditStatus)
    assert (told.skew.compared, told.skew.mismatched, told.alarms) == (5, 0, [])
    shop.serve(shop.world.rows(), lambda values: values | {"spend_1h": 1.0})
    shop.clock.advance("2m")
    auditing.step()
    told = read_status(shop.log, STATUS, AuditStatus).get(AuditStatus)
    assert told.skew.features
    assert told.skew.features["cards.spend_1h"].causes["defect"] == 1
    assert told.alarms[0].kind == "skew"
    assert "1 unexplained" in told.alarms[0].says
    auditing.step()
    assert read_status(shop.log, STATUS, AuditStatus).get(AuditStatus).skew.compared == 10


@pytest.fixture
def ask(shop, capsys):
    asked = asking(capsys, "skew")
    return lambda *more: asked("--project", str(shop.config.root), "--since", "2025-12-31T00:00:00Z", *more)


def test_the_verb_shows_features_causes_and_evidence(ask, tmp_path):
    told = json.loads(ask("--json")[1])
    assert told["compared"] == told["equal"] + told["mismatched"]
    assert told["mismatched"] == sum(told["causes"].values())
    code, shown, said = ask("--html", str(tmp_path / "skew.html"))
    assert code == 1
    assert "skew.html" in said
    assert "cards.spend_1h" in shown
    assert "DEFECTS: 1 unexplained" in shown
    assert "served 1.0, known" in shown
    page = (tmp_path / "skew.html").read_text()
    assert "<h2>unexplained</h2>" in page
    assert "http" not in page


def test_a_view_that_is_not_there_is_refused(ask):
    code, _, said = ask("--features", "card")
    assert code == 2
    assert "cards" in said


def test_of_many_samples_some_are_drawn_evenly(shop):
    for _ in range(8):
        shop.serve(shop.world.rows())
    found = audit(plan, shop.config, shop.log, BASE, shop.clock.now() + HOUR, most=3)
    assert found.counts.samples["read cards"] == 3


@pytest.fixture
def archived(shop):
    shop.archive()
    return shop


def test_an_event_is_followed_from_its_place_to_the_sets_that_have_it(archived, capsys):
    made = archived.config.root / "sets" / "fraud"
    (made / "data").mkdir(parents=True)
    # It had not arrived yet at the first.
    moments = [archived.world.now - HOUR, archived.world.now - HOUR // 2, archived.world.now]
    rows = {"card": ["a"] * 3, "t": pa.array(moments, pa.timestamp("us", tz="UTC"))}
    pq.write_table(pa.table(rows), made / "data" / "part.parquet")
    asked = {"time": "t", "mode": "as_known", "include_event": None}
    said = {"manifest": 1, "created_at": "2026-02-01T00:00:00Z", "asked": asked, "features": {"n": {"view": "cards"}}}
    (made / "manifest.json").write_text(json.dumps(said))
    trace, whose = asking(capsys, "trace"), ("--project", str(archived.config.root))
    code, out, _ = trace("p30", *whose, "--json")
    (found,) = json.loads(out)["streams"]
    (told,) = found["events"]
    (copy,) = told["copies"]
    assert (code, copy["verdict"], told["lane"]) == (0, "late", "late")
    assert [(tile["tiles"], tile["key"]) for tile in told["tiles"]] == [("payments.by_card", ["a"])]
    assert told["training_sets"] == [{"folder": "sets/fraud", "mode": "as_known", "rows": 2}]
    code, out, _ = trace("p119", *whose)
    assert code == 0
    assert "admitted" in out
    assert "training set sets/fraud (as_known): 1 row" in out
    code, _, err = trace("nobody", *whose)
    assert code == 2
    assert "no record of this event" in err


def test_what_the_lake_has_forgotten_is_said_and_not_compared(archived, monkeypatch):
    def forgotten(*_):
        raise DataError("lake-forgotten", "Days that the value needs were forgotten.")

    monkeypatch.setattr(PastEvents, "read", forgotten)
    found = archived.audit()
    assert found.skipped == {"cards": "Days that the value needs were forgotten."}
    assert found.counts.total.compared == 0


def test_values_of_a_training_set_have_ages_too(archived, ask):
    code, out, _ = ask("--training-set", str(archived.config.root / "sets" / "fraud"), "--json")
    told = json.loads(out)["trained"]["cards"]
    assert (code, told["count"], told["warning"]) == (1, 3, None)
    assert told["since_it_arrived_s"]["p50"] > 0
