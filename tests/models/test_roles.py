"""Roles: each change and its history, ways back that never turn in circles, and the same choice everywhere."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headrace.errors import DataError, HeadraceError
from headrace.models import RoleChange, Roles, choose_version
from headrace.models.roles import earlier, part
from tests.models.models import add, registry, rule


@pytest.fixture
def kept(tmp_path):
    """A registry with four versions of one model."""
    made = registry(tmp_path)
    for _ in range(4):
        add(made, rule(tmp_path))
    return made


def test_no_version_has_a_role_by_being_added(kept):
    assert kept.roles("fraud") == Roles()


def test_a_promoted_version_is_the_champion_and_the_history_says_so(kept):
    kept.promote("fraud", 1, "first")
    roles = kept.promote("fraud", 2)
    assert roles == kept.roles("fraud")
    at = 1_767_225_600_000_000
    assert roles.champion == 2
    assert roles.history == (
        RoleChange(at, "promote", 1, None, "first", "user"),
        RoleChange(at, "promote", 2, 1, None, "user"),
    )


def test_promoting_the_champion_changes_nothing(kept):
    assert kept.promote("fraud", 1) == kept.promote("fraud", 1)
    assert len(kept.roles("fraud").history) == 1


def test_a_challenger_that_is_promoted_challenges_no_longer(kept):
    kept.promote("fraud", 1)
    roles = kept.challenge("fraud", 2, 0.25)
    assert (roles.challenger, roles.share) == (2, 0.25)
    roles = kept.promote("fraud", 2)
    assert (roles.champion, roles.challenger, roles.share) == (2, None, 0.0)


def test_a_challenger_is_taken_away(kept):
    kept.promote("fraud", 1)
    kept.challenge("fraud", 2, 0.25)
    assert kept.unchallenge("fraud", failing=3).challenger == 2
    roles = kept.unchallenge("fraud", failing=2, by="fallback")
    assert (roles.challenger, roles.share, roles.history[-1].by) == (None, 0.0, "fallback")
    assert kept.unchallenge("fraud") == roles


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, float("nan")])
def test_a_share_is_between_none_and_all(kept, share):
    kept.promote("fraud", 1)
    with pytest.raises(DataError, match="between 0 and 1") as caught:
        kept.challenge("fraud", 2, share)
    assert caught.value.code == "bad-argument"


def test_nobody_challenges_himself_or_nobody(kept):
    with pytest.raises(DataError) as caught:
        kept.challenge("fraud", 2, 0.5)
    assert caught.value.code == "no-champion"
    kept.promote("fraud", 2)
    with pytest.raises(DataError, match="cannot challenge itself"):
        kept.challenge("fraud", 2, 0.5)


def test_shadows_come_and_go_and_are_none_when_they_answer(kept):
    kept.promote("fraud", 1)
    kept.shadow("fraud", 3)
    assert kept.shadow("fraud", 2).shadows == (2, 3)
    assert kept.unshadow("fraud", 3).shadows == (2,)
    assert kept.unshadow("fraud", 3).history == kept.roles("fraud").history
    assert kept.challenge("fraud", 2, 0.5).shadows == ()
    for version in (1, 2):
        with pytest.raises(DataError, match="is no shadow"):
            kept.shadow("fraud", version)


@pytest.mark.parametrize("change", ["promote", "shadow"])
def test_a_version_that_is_not_there_gets_no_role(kept, change):
    with pytest.raises(HeadraceError) as caught:
        getattr(kept, change)("fraud", 9)
    assert (caught.value.code, caught.value.hint) == ("unknown-model", "It has versions 1, 2, 3, 4.")


def test_a_damaged_version_gets_no_role(kept, tmp_path):
    (tmp_path / "models" / "fraud" / "2" / "score.py").write_text("def score(row): return 1.0")
    with pytest.raises(DataError, match="not the one that was added"):
        kept.promote("fraud", 2)
    assert kept.roles("fraud").champion is None


def test_each_rollback_goes_further_back_and_never_to_and_fro(kept):
    for version in (1, 2, 3):
        kept.promote("fraud", version)
    assert kept.rollback("fraud").champion == 2
    assert kept.promote("fraud", 4).champion == 4
    assert [kept.rollback("fraud").champion for _ in range(2)] == [2, 1]
    with pytest.raises(DataError, match="no champion before") as caught:
        kept.rollback("fraud")
    assert caught.value.code == "no-champion"
    assert kept.roles("fraud").champion == 1


def test_a_rollback_is_in_the_history_with_its_reason(kept):
    kept.promote("fraud", 1)
    kept.promote("fraud", 2)
    change = kept.rollback("fraud", "it raised", failing=2, by="fallback").history[-1]
    assert (change.what, change.version, change.before, change.why, change.by) == (
        "rollback",
        1,
        2,
        "it raised",
        "fallback",
    )


def test_of_several_that_notice_a_failing_champion_one_rolls_back(kept):
    for version in (1, 2, 3):
        kept.promote("fraud", version)
    assert [kept.rollback("fraud", failing=3).champion for _ in range(3)] == [2, 2, 2]
    assert len(kept.roles("fraud").history) == 4


def test_a_version_that_is_promoted_twice_is_visited_once_on_the_way_back(kept):
    for version in (1, 2, 3, 2):
        kept.promote("fraud", version)
    assert [kept.rollback("fraud").champion for _ in range(2)] == [3, 1]


def test_a_rollback_passes_over_a_version_that_is_damaged(kept, tmp_path):
    for version in (1, 2, 3):
        kept.promote("fraud", version)
    (tmp_path / "models" / "fraud" / "2" / "score.py").unlink()
    assert kept.rollback("fraud").champion == 1
    assert earlier(kept.roles("fraud")) == []


def test_a_challenger_that_becomes_champion_by_a_rollback_challenges_no_longer(kept):
    kept.promote("fraud", 1)
    kept.promote("fraud", 2)
    kept.challenge("fraud", 1, 0.5)
    roles = kept.rollback("fraud")
    assert (roles.champion, roles.challenger, roles.share) == (1, None, 0.0)


def test_roles_of_a_model_that_is_not_there_cannot_be_changed(kept):
    with pytest.raises(HeadraceError) as caught:
        kept.rollback("frued")
    assert (caught.value.code, caught.value.hint) == ("unknown-model", "Did you mean 'fraud'?")


def test_roles_that_cannot_be_read_are_refused(kept, tmp_path):
    (tmp_path / "models" / "fraud" / "roles.json").write_text('{"champion": "one"}')
    with pytest.raises(DataError, match="cannot be read") as caught:
        kept.roles("fraud")
    assert caught.value.code == "bad-model"


def test_a_token_is_another_after_every_change_and_only_then(kept):
    seen = [kept.token("fraud")]
    kept.promote("fraud", 1)
    seen.append(kept.token("fraud"))
    kept.promote("fraud", 1)
    assert kept.token("fraud") == seen[-1]
    kept.promote("fraud", 2)
    seen.append(kept.token("fraud"))
    assert seen[0] is None
    assert len(set(seen)) == 3


def test_without_a_champion_nobody_is_chosen():
    with pytest.raises(HeadraceError) as caught:
        choose_version("fraud", Roles(), ["1"])
    assert caught.value.code == "no-champion"


def test_where_a_key_falls_is_pinned():
    assert part("fraud", ["4242", 7, True]) == 0.12023275774917543
    code = "from headrace.models.roles import part; print(part('fraud', ['4242', 7, True]))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(told.stdout) == part("fraud", ["4242", 7, True])


def test_a_number_and_its_text_are_different_keys_and_models_choose_apart():
    assert len({part("fraud", ["1"]), part("fraud", [1]), part("churn", ["1"])}) == 3


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9])
def test_the_challenger_gets_its_share_of_ten_thousand_keys(share):
    roles = Roles(champion=1, challenger=2, share=share)
    found = sum(choose_version("fraud", roles, [f"card-{n}"]) == (2, "challenger") for n in range(10_000))
    # Five standard deviations: a fair digest is outside once in two million.
    assert abs(found - 10_000 * share) < 5 * (10_000 * share * (1 - share)) ** 0.5


def test_a_key_that_the_challenger_had_stays_with_it_when_the_share_grows():
    keys = [[f"card-{n}"] for n in range(1_000)]
    some, more = (
        {key[0] for key in keys if choose_version("fraud", Roles(1, 2, share), key)[0] == 2} for share in (0.1, 0.3)
    )
    assert some < more
