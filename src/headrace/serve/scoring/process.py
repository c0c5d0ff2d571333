"""The process of one version of a model: it loads it, scores what it is asked, and does nothing else.

Whatever a model does, sleeps, spins or crashes, it does here, where nobody waits but those who asked for its scores.
All that waits is scored together, as far as it takes about as long as `SLICE`, so that it answers again and again
under load. It ends when the socket does, and with the process that started it, however that ends. Run as
`python -m headrace.serve.scoring.process FOLDER MODEL VERSION SOCKET PARENT`, by `scoring_child` alone.
"""

from __future__ import annotations

import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from headrace.errors import HeadraceError
from headrace.machine import collect_seldom, end_with
from headrace.safe_text import quote_logs
from headrace.serve.scoring.wire import FAULT, Frames, ScoreFault, ScoreReply, Started, fault_of, framed, read_asked

SLICE = 0.05
"""Seconds that scoring may take before answers go out."""
MOST = 1_000
"""Rows that are scored together at the most."""
CHUNK = 1 << 20
ZEROS: dict[str, Any] = {"string": "", "boolean": False, "integer": 0, "float": 0.0, "timestamp": 0}

Rows = list[list[Any]]


class RowScorer(Protocol):
    """What is needed of a scorer."""

    @property
    def manifest(self) -> Any:
        """What the version says of itself."""
        ...

    def score(self, rows: Sequence[dict[str, Any]]) -> Sequence[float | HeadraceError]:
        """A score or an error for every row."""
        ...


def main(given: Sequence[str]) -> int:
    """Load a version, say whether it can score, and score until the socket ends."""
    quote_logs()
    folder, model, version, descriptor, parent = given
    end_with(int(parent))
    # Ctrl-C reaches every process of a terminal; who has asked is answered all the same.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(descriptor)) as where:
        try:
            scorer = _loaded(Path(folder), model, int(version))
        except HeadraceError as error:
            where.sendall(framed(Started(fault_of(error))))
            return error.exit_code
        except Exception as error:
            said = ScoreFault(
                "bad-model", "The version cannot be loaded.", f"{type(error).__name__}: {error}", None, 500
            )
            where.sendall(framed(Started(said)))
            return 1
        collect_seldom()
        where.sendall(framed(Started(None)))
        answer(where, scorer)
    return 0


def _loaded(folder: Path, model: str, version: int) -> RowScorer:
    """The scorer, after it has scored once: what is loaded on first use is loaded then."""
    from headrace.clock import SystemClock
    from headrace.models.registry import ModelRegistry

    scorer = ModelRegistry(folder, SystemClock()).load(model, version)
    scorer.score([{column.name: ZEROS.get(column.type, 0) for column in scorer.manifest.columns}])
    return scorer


def answer(where: socket.socket, scorer: RowScorer) -> None:
    """Score what is asked over a socket until it ends."""
    frames, most = Frames(), MOST
    names = [column.name for column in scorer.manifest.columns]
    while data := _received(where):
        waiting = [read_asked(frame) for frame in frames.feed(data)]
        while waiting:
            together = list(_next_rows(waiting, most))
            rows = [dict(zip(names, row, strict=True)) for _, asked in together for row in asked]
            began = time.perf_counter()
            results = iter(_scored(scorer, rows))
            took = time.perf_counter() - began
            told = [ScoreReply(number, took, [next(results) for _ in asked]) for number, asked in together]
            try:
                where.sendall(b"".join(framed(each) for each in told))
            except OSError:
                return
            most = min(max(int(SLICE * len(rows) / max(took, 1e-9)), 1), MOST)


def _next_rows(waiting: list[tuple[int, Rows]], most: int) -> Iterator[tuple[int, Rows]]:
    """What comes next, as many rows as are scored together; one request at the least."""
    rows = 0
    while waiting and (not rows or rows + len(waiting[0][1]) <= most):
        number, asked = waiting.pop(0)
        rows += len(asked)
        yield number, asked


def _scored(scorer: RowScorer, rows: Sequence[dict[str, Any]]) -> list[float | ScoreFault]:
    try:
        found = scorer.score(rows)
    except Exception as error:
        said = ScoreFault(FAULT, "The model failed.", f"{type(error).__name__}: {error}", None, 500)
        return [said] * len(rows)
    return [fault_of(each) if isinstance(each, HeadraceError) else float(each) for each in found]


def _received(where: socket.socket) -> bytes:
    try:
        return where.recv(CHUNK)
    except OSError:
        return b""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
