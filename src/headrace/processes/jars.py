"""The pinned jars: Spark's Kafka connector and a broker, fetched through Maven and held to the sums in `jars.txt`.

Each jar is fetched on its own, never with what it names as its dependencies: the list is complete, and a walk would
ask for versions that are not published. A jar comes into the cache folder only after its sum was right, so what is
there is right. Where Maven gets them from is the user's own Maven settings' business.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from headrace.errors import MachineError, shown
from headrace.machine import cache_folder
from headrace.plural import show_count
from headrace.processes.child import ChildProcess

CONNECTOR, BROKER = "connector", "broker"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
LONGEST_FETCH = 900.0
LOOK = 0.2

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>headrace</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
<build><plugins><plugin>
<groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId>
<configuration><artifactItems>
{items}
</artifactItems></configuration>
</plugin></plugins></build>
</project>
"""
_ITEM = "<artifactItem><groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version></artifactItem>"


class Jar(NamedTuple):
    """One pinned jar.

    >>> jars(CONNECTOR)[0].file
    'commons-pool2-2.13.1.jar'
    """

    use: str
    group: str
    artifact: str
    version: str
    size: int
    sha256: str

    @property
    def file(self) -> str:
        """Its file name."""
        return f"{self.artifact}-{self.version}.jar"


@cache
def jars(use: str) -> tuple[Jar, ...]:
    """The jars for a use: `CONNECTOR` or `BROKER`."""
    found = []
    for line in files("headrace.processes").joinpath("jars.txt").read_text("ascii").splitlines():
        listed, name, size, sha256 = line.split()
        if listed == use:
            group, artifact, version = name.split(":")
            found.append(Jar(use, group, artifact, version, int(size), sha256))
    return tuple(found)


def folder(use: str, environ: Mapping[str, str] | None = None) -> Path:
    """Where the jars for a use are kept; each use has a folder, because they hold two versions of one client."""
    return cache_folder(os.environ if environ is None else environ) / "jars" / use


def present(use: str, environ: Mapping[str, str] | None = None) -> list[Path]:
    """The jars for a use, all of them, or an error that says how to get them."""
    there = folder(use, environ)
    missing = [jar.file for jar in jars(use) if not _has_size(there / jar.file, jar)]
    if missing:
        got = f"{len(missing)} of {len(jars(use))} missing, {missing[0]} first"
        hint = "Fetch them with `headrace kafka jars`."
        raise MachineError("no-jars", f"The jars of the Kafka {use} are not there.", got=got, hint=hint)
    return [there / jar.file for jar in jars(use)]


def fetch(
    use: str, environ: Mapping[str, str] | None = None, *, tell: Callable[[int], None] = lambda _: None
) -> list[Path]:
    """The jars for a use; those that are not there, or not right, are fetched first.

    Parameters
    ----------
    use
        `CONNECTOR` or `BROKER`.
    environ
        Where PATH and the cache folder are read; the process's own when left out.
    tell
        Told how many have come, as they come.
    """
    variables = os.environ if environ is None else environ
    there = folder(use, variables)
    wanted = [jar for jar in jars(use) if not _is_intact(there / jar.file, jar)]
    tell(len(jars(use)) - len(wanted))
    if wanted:
        there.mkdir(parents=True, exist_ok=True)
        # Beside the cache, so that moving a jar into it is one step: two processes may fetch at once.
        with tempfile.TemporaryDirectory(dir=there.parent, prefix="fetch-") as fresh:
            _run_maven(wanted, Path(fresh), variables, lambda count: tell(len(jars(use)) - len(wanted) + count))
            for jar in wanted:
                _check(Path(fresh) / jar.file, jar)
                (Path(fresh) / jar.file).replace(there / jar.file)
    return [there / jar.file for jar in jars(use)]


def _has_size(file: Path, jar: Jar) -> bool:
    return file.is_file() and file.stat().st_size == jar.size


def _is_intact(file: Path, jar: Jar) -> bool:
    return _has_size(file, jar) and hashlib.sha256(file.read_bytes()).hexdigest() == jar.sha256


def _check(file: Path, jar: Jar) -> None:
    if not _is_intact(file, jar):
        message = "A jar is not the one that Headrace was tested with."
        hint = "Ask whoever runs the repository that your Maven settings name; nothing of it was kept."
        raise MachineError("bad-jar", message, got=jar.file, hint=hint)


def pom(wanted: Iterable[Jar]) -> str:
    """What Maven is asked for: these jars and no others.

    >>> "kafka-clients" in pom(jars(CONNECTOR))
    True
    """
    return _POM.format(items="\n".join(_ITEM.format(jar.group, jar.artifact, jar.version) for jar in wanted))


def _run_maven(wanted: list[Jar], into: Path, environ: Mapping[str, str], tell: Callable[[int], None]) -> None:
    maven = shutil.which("mvn", path=environ.get("PATH", ""))
    if maven is None:
        hint = "Install it (Debian: `apt-get install maven`), or put the jars into the folder by hand."
        got = f"{show_count(len(wanted), 'jar')} to fetch into {folder(wanted[0].use, environ)}"
        raise MachineError("no-maven", "Maven is needed to fetch jars, and was not found.", got=got, hint=hint)
    (into / "pom.xml").write_text(pom(wanted), encoding="utf-8")
    command = [maven, "-B", "-q", "-f", str(into / "pom.xml"), COPY, f"-DoutputDirectory={into}"]
    with (into / "said").open("w+b") as said:
        with ChildProcess(command, output=said, environment=environ) as ran:
            code = _wait(ran, lambda: tell(len(list(into.glob("*.jar")))))
        said.seek(0)
        text = said.read().decode("utf-8", "replace")
    if code != 0:
        told = next((line for line in text.splitlines() if "ERROR" in line), text.strip())
        hint = "Maven needs a repository it can reach: see your Maven settings."
        raise MachineError("no-jars", "Maven could not fetch the jars.", got=shown(told, 300), hint=hint)


def _wait(ran: ChildProcess, look: Callable[[], None]) -> int:
    deadline = time.monotonic() + LONGEST_FETCH
    while (code := ran.wait(LOOK)) is None:
        look()
        if time.monotonic() > deadline:
            ran.kill()
    return code
