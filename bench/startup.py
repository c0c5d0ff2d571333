"""How long `import headrace` and `headrace --help` take, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time

from bench.harness import Result, measured, run

IMPORT = "import time; t = time.perf_counter(); import headrace; print(time.perf_counter() - t)"


def import_seconds() -> float:
    """`import headrace`, timed inside a fresh interpreter."""
    ran = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    return float(ran.stdout)


def help_seconds() -> float:
    """`headrace --help`, timed from outside: what a user waits."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "headrace.cli.main", "--help"], capture_output=True, check=True)
    return time.perf_counter() - start


def measure(quick: bool) -> list[Result]:
    """Both, several times after one warm-up that fills the file cache."""
    import_seconds(), help_seconds()
    times = range(5 if quick else 15)
    return [
        measured("import_s", [import_seconds() for _ in times], "lower", target=0.2),
        measured("help_s", [help_seconds() for _ in times], "lower", target=0.4),
    ]


if __name__ == "__main__":
    sys.exit(run("startup", measure))
