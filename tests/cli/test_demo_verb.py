"""`headrace demo` where the demo is not there."""

from __future__ import annotations

import importlib
import importlib.util

from headrace.cli import demo
from headrace.cli.main import main


def test_a_package_without_the_demo_says_where_it_is(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    try:
        importlib.reload(demo)
        assert main(["demo", "--small"]) == 3
    finally:
        monkeypatch.undo()
        importlib.reload(demo)
    shown = capsys.readouterr().err
    assert "The demo is not part of the installed package." in shown
    assert "make demo" in shown
