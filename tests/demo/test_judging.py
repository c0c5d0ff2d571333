"""The demo's report: what is caught at one rate of false alarms, and its verdict on itself."""

from __future__ import annotations

import pytest

from headrace_demo.judging import caught, judge
from headrace_demo.stale import Stale
from headrace_demo.traffic import Scored, Seen
from headrace_demo.world.stream import Sent


def test_scores_are_compared_at_the_same_rate_of_false_alarms():
    sent = [Sent(0, {"id": str(n), "card": "c"}, b"", b"", n >= 200, "payment", "") for n in range(210)]
    seen = Seen(sent)
    for n in range(210):
        seen.add(str(n), Scored(0, n / 210, False, 1.0, None, {}))
    # The other score has half of the frauds below all that is honest, a third one all of them.
    half = [(n if n < 205 else -1) / 210 for n in range(210)]
    none = [(n if n < 200 else -1) / 210 for n in range(210)]
    told = caught(seen, Stale(half, none))
    assert (told["frauds"], told["honest"], told["false_alarm_rate"]) == (10, 200, 0.01)
    assert [told[key]["caught"] for key in ("fresh", "hour_old", "hour_old_own_model")] == [10, 5, 0]
    assert [told[key]["false_alarms"] for key in ("fresh", "hour_old", "hour_old_own_model")] == [2, 2, 2]
    assert (told["hour_old"]["only_fresh"], told["hour_old"]["only_this"]) == (5, 0)
    assert told["fresh"]["auc"] == 1.0


GOOD = {
    "sent": 3,
    "verdicts": {"admitted": 2, "late": 1},
    "reference_verdicts": {"admitted": 2, "late": 1},
    "payments": 3,
    "scored": 3,
    "features": {"card-1": {"differences": []}},
    "skew": {"causes": {"freshness": 2, "defect": 0}},
}


def test_a_report_without_fault_says_so():
    told = judge(GOOD)
    assert all(told[name] for name in ("verdicts_add_up", "equal", "all_scored", "no_defect"))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"sent": 4}, "verdicts_add_up"),
        ({"verdicts": {"admitted": 3, "late": 0}}, "verdicts_add_up"),
        ({"scored": 2}, "all_scored"),
        ({"features": {"card-1": {"differences": ["payments_10m"]}}}, "equal"),
        ({"skew": {"causes": {"freshness": 2, "defect": 1}}}, "no_defect"),
    ],
)
def test_every_fault_is_found(change, what):
    assert judge(GOOD | change)[what] is False
