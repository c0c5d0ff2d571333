"""A version is tried in a process of its own: one that hangs, crashes or takes all memory ends no command."""

from __future__ import annotations

import functools

import pytest

from headrace.errors import HeadraceError
from headrace.models import ModelRegistry
from headrace.models.trial import try_out
from headrace.testing import FakeClock
from tests.models.models import add, rule

BAD = {
    "crashes": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "bad-model", "SIGSEGV"),
    "ends its process": ("import os; os._exit(0)", "bad-model", "exit code 0"),
    "takes all memory": ("held = [bytes(1 << 34) for _ in range(1 << 20)]", "bad-model", "MemoryError"),
    "hangs": ("import time; time.sleep(600)", "model-slow", "score.py (python)"),
}


def registry(folder, **more):
    return ModelRegistry(folder / "models", FakeClock(0), check=functools.partial(try_out, **more))


@pytest.mark.parametrize("what", BAD)
def test_a_model_that_is_no_good_is_refused_in_a_sentence(what, tmp_path):
    text, code, got = BAD[what]
    file = tmp_path / "score.py"
    file.write_text(f"{text}\n\n\ndef score(row):\n    return 0.5\n")
    kept = registry(tmp_path, limit=1.0 if what == "hangs" else 30.0)
    with pytest.raises(HeadraceError) as caught:
        add(kept, file)
    assert (caught.value.code, got in str(caught.value.got), bool(caught.value.hint)) == (code, True, True)
    assert kept.models() == []


def test_a_model_that_scores_is_kept_and_tried_again_before_it_gets_a_role(tmp_path):
    kept = registry(tmp_path)
    assert add(kept, rule(tmp_path)).version == 1
    kept.try_out("fraud", 1)


def test_a_file_of_python_is_not_opened_when_nobody_allows_it(tmp_path):
    file = tmp_path / "score.py"
    file.write_text("raise SystemExit('it ran')\n")
    with pytest.raises(HeadraceError) as caught:
        add(registry(tmp_path), file, allow_code=False)
    assert caught.value.code == "code-not-allowed"
