"""Spark's classes as a JVM has loaded them, kept in a file: a JVM that starts from it is up in half the time.

The file belongs to one Java and one installation of PySpark, and lies in the Python environment, with which it goes
away. `headrace prepare` makes it. Java itself checks that it fits, and does without it when it does not.
"""

from __future__ import annotations

import sys
import zlib
from importlib.metadata import version
from pathlib import Path

from headrace.machine import Java

# What Java has to say about a file that does not fit helps nobody: it goes on as if there were none.
_QUIET = "-Xlog:cds*=off -Xlog:class+path=off"


def kept(java: Java) -> Path:
    """Where the classes for a Java are, or would be."""
    key = zlib.crc32(f"{java.home} {java.version} {version('pyspark')}".encode())
    return Path(sys.prefix) / "share" / "headrace" / f"spark-classes-{key:08x}.jsa"


def starting(java: Java) -> str:
    """The options with which a JVM starts from the kept classes; none when there are none."""
    file = kept(java)
    return f"-XX:SharedArchiveFile={file} {_QUIET}" if file.is_file() else ""


def keeping(file: Path) -> str:
    """The options with which a JVM writes down the classes it has loaded, as it ends."""
    return f"-XX:ArchiveClassesAtExit={file} -XX:TieredStopAtLevel=1 {_QUIET}"
