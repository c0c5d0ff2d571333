"""Lineups: what roles say is loaded and swapped whole, and what cannot be loaded costs nobody an answer."""

from __future__ import annotations

import threading

import pytest

from headrace.models.lineup import loaded_lineups
from tests.models.models import NAMES, add, registry

ROW = dict.fromkeys(NAMES, 0)


@pytest.fixture
def kept(tmp_path):
    """A registry with four versions, each of which scores its own number in hundredths."""
    made = registry(tmp_path)
    for version in range(1, 5):
        file = tmp_path / "own.py"
        file.write_text(f"def score(row):\n    return {version / 100}\n")
        add(made, file)
    return made


def scores(lineups, count=50):
    lineup = lineups.lineup
    return {lineup.choose([str(n)]).scorer.score([ROW])[0] for n in range(count)}


def damage(folder, version):
    (folder / "models" / "fraud" / str(version) / "score.py").write_text("broken")


def test_before_a_version_is_promoted_there_is_no_lineup(kept):
    lineups = loaded_lineups(kept, "fraud")
    assert lineups.refresh() is False
    assert (lineups.lineup.champion, lineups.lineup.choose(["a"])) == (None, None)


def test_the_champion_answers_and_a_challenger_some_keys(kept):
    lineups = loaded_lineups(kept, "fraud")
    kept.promote("fraud", 1)
    assert lineups.refresh()
    assert scores(lineups) == {0.01}
    kept.challenge("fraud", 2, 0.5)
    assert lineups.refresh()
    assert scores(lineups) == {0.01, 0.02}
    roles = {lineups.lineup.choose([str(n)]).role for n in range(50)}
    assert roles == {"champion", "challenger"}


def test_a_choice_names_the_version_that_scores(kept):
    lineups = loaded_lineups(kept, "fraud")
    kept.promote("fraud", 1)
    kept.challenge("fraud", 2, 0.5)
    lineups.refresh()
    made = [lineups.lineup.choose([str(n)]) for n in range(50)]
    assert [each.version / 100 for each in made] == [each.scorer.score([ROW])[0] for each in made]


def test_shadows_are_loaded_beside(kept):
    kept.promote("fraud", 1)
    kept.shadow("fraud", 3)
    kept.shadow("fraud", 4)
    lineups = loaded_lineups(kept, "fraud")
    lineups.refresh()
    told = [(each.version, each.role, each.scorer.score([ROW])[0]) for each in lineups.lineup.shadows]
    assert told == [(3, "shadow", 0.03), (4, "shadow", 0.04)]


def test_nothing_is_read_again_until_roles_change(kept, monkeypatch):
    kept.promote("fraud", 1)
    lineups = loaded_lineups(kept, "fraud")
    lineups.refresh()
    before = lineups.lineup
    monkeypatch.setattr(kept, "roles", lambda model: pytest.fail("roles were read"))
    assert lineups.refresh() is False
    assert lineups.lineup is before


def test_a_version_that_is_loaded_is_not_loaded_again(kept, monkeypatch):
    kept.promote("fraud", 1)
    lineups = loaded_lineups(kept, "fraud")
    lineups.refresh()
    loaded, before = [], kept.load

    def load(model, version):
        loaded.append(version)
        return before(model, version)

    monkeypatch.setattr(kept, "load", load)
    kept.challenge("fraud", 2, 0.5)
    lineups.refresh()
    assert loaded == [2]


def test_whoever_took_a_lineup_keeps_it(kept):
    kept.promote("fraud", 1)
    lineups = loaded_lineups(kept, "fraud")
    lineups.refresh()
    taken = lineups.lineup
    kept.promote("fraud", 2)
    lineups.refresh()
    assert taken.choose(["a"]).scorer.score([ROW]) == [0.01]
    assert lineups.lineup.choose(["a"]).scorer.score([ROW]) == [0.02]


def test_a_champion_that_cannot_be_loaded_leaves_the_one_before_until_it_can(kept, tmp_path, caplog):
    kept.promote("fraud", 1)
    lineups = loaded_lineups(kept, "fraud")
    lineups.refresh()
    kept.promote("fraud", 2)
    good = (tmp_path / "models" / "fraud" / "2" / "score.py").read_text()
    damage(tmp_path, 2)
    assert [lineups.refresh(), lineups.refresh()] == [False, False]
    assert scores(lineups) == {0.01}
    assert lineups.failure.startswith("Version 2: The file of model 'fraud' version 2 is not the one that was added.")
    assert len(caplog.records) == 1
    (tmp_path / "models" / "fraud" / "2" / "score.py").write_text(good)
    assert lineups.refresh()
    assert (scores(lineups), lineups.failure) == ({0.02}, None)


def test_a_challenger_or_shadow_that_cannot_be_loaded_is_left_out_and_holds_up_nobody(kept, tmp_path):
    kept.promote("fraud", 1)
    kept.challenge("fraud", 2, 0.5)
    kept.shadow("fraud", 3)
    damage(tmp_path, 2)
    damage(tmp_path, 3)
    lineups = loaded_lineups(kept, "fraud")
    assert lineups.refresh()
    assert (scores(lineups), lineups.lineup.shadows) == ({0.01}, ())
    assert "Version 2:" in str(lineups.failure)
    assert "Version 3:" in str(lineups.failure)


def test_roles_that_cannot_be_read_leave_the_lineup(kept, tmp_path):
    kept.promote("fraud", 1)
    lineups = loaded_lineups(kept, "fraud")
    lineups.refresh()
    (tmp_path / "models" / "fraud" / "roles.json").write_text("{")
    assert lineups.refresh() is False
    assert (scores(lineups), "cannot be read" in str(lineups.failure)) == ({0.01}, True)
    (tmp_path / "models" / "fraud" / "roles.json").unlink()
    kept.promote("fraud", 2)
    lineups.refresh()
    assert (scores(lineups), lineups.failure) == ({0.02}, None)


def test_while_versions_change_every_batch_is_scored_wholly_by_one(kept):
    kept.promote("fraud", 1)
    lineups = loaded_lineups(kept, "fraud")
    lineups.refresh()
    stop, outcomes, versions = threading.Event(), [], []

    def score():
        while not stop.is_set():
            made = lineups.lineup.choose(["a"])
            outcomes.append((made.version, tuple(made.scorer.score([ROW] * 5))))

    threads = [threading.Thread(target=score) for _ in range(2)]
    for each in threads:
        each.start()
    try:
        for turn in range(40):
            version = turn % 4 + 1
            kept.promote("fraud", version)
            lineups.refresh()
            seen = len(outcomes)
            while len(outcomes) < seen + 3 and all(each.is_alive() for each in threads):
                stop.wait(0.0005)
            versions.append(lineups.lineup.roles.champion)
    finally:
        stop.set()
        for each in threads:
            each.join()
    assert versions == [turn % 4 + 1 for turn in range(40)]
    assert {version for version, _ in outcomes} == {1, 2, 3, 4}
    assert [each for each in outcomes if each[1] != (each[0] / 100,) * 5] == []
