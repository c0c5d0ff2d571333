"""Children of a test have default signal handling, whatever was ignored where pytest was started."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT)
SHOW = "import signal; print([n for n in (1, 2, 3, 15) if signal.getsignal(n) is signal.SIG_IGN])"
ROOT = Path(__file__).parent.parent.parent


def ignore():
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)


def test_a_child_ignores_no_signal():
    assert subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_child_ignores_no_signal_where_pytest_was_started_with_signals_ignored():
    one = f"{Path(__file__).relative_to(ROOT)}::{test_a_child_ignores_no_signal.__name__}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "1", one]
    ran = subprocess.run(command, cwd=ROOT, preexec_fn=ignore, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
