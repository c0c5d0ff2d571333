"""Spark's classes as a JVM has loaded them, kept in a file: a JVM that starts from it is up in half the time.

The file belongs to one Java and one installation of PySpark, and lies in the Python environment, with which it goes
away. Installers such as uv let environments share the files of a package: then the classes are kept once for all of
them, in the user's cache. `headrace prepare` makes the file. Java itself checks that it fits, and does without it when
it does not.
"""

from __future__ import annotations

import os
import shutil
import sys
import zlib
from importlib.util import find_spec
from pathlib import Path

from headrace.machine import Java, cache_folder

# What Java has to say about a file that does not fit helps nobody: it goes on as if there were none.
_QUIET = "-Xlog:cds*=off -Xlog:class+path=off"
NAME = "spark-classes-{:08x}"
CORE = "jars/spark-core_*.jar"


def classes_file(java: Java) -> Path:
    """Where the classes for a Java are, or would be."""
    held = next(spark_home().glob(CORE)).stat()
    shared = held.st_nlink > 1
    key = zlib.crc32(f"{java.home} {java.version} {held.st_dev} {held.st_ino}".encode())
    where = cache_folder(os.environ) if shared else Path(sys.prefix) / "share" / "headrace"
    return where / NAME.format(key) / "classes.jsa"


def spark_home() -> Path:
    """Where PySpark is installed."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("No module named 'pyspark'")
    return Path(found.origin).parent


def stable_home(file: Path) -> Path:
    """A home of Spark that stays when its environment goes, for a file of classes that others share.

    Java remembers where the jars were and takes others for them only if they are the very same files. So the folder of
    the classes has links to them, and Spark is started from there when the file is made.
    """
    home, stable = spark_home(), file.parent
    if stable.parent != cache_folder(os.environ):
        return home
    for unused in stable.parent.glob("spark-classes-*"):
        if unused != stable and all(jar.stat().st_nlink == 1 for jar in unused.glob(CORE)):
            shutil.rmtree(unused)
    shutil.copytree(home / "bin", stable / "bin", dirs_exist_ok=True)
    shutil.rmtree(stable / "jars", ignore_errors=True)
    shutil.copytree(home / "jars", stable / "jars", copy_function=os.link)
    return stable


def starting(java: Java) -> str:
    """The options with which a JVM starts from the kept classes; none when there are none."""
    file = classes_file(java)
    return f"-XX:SharedArchiveFile={file} {_QUIET}" if file.is_file() else ""


def keeping(file: Path) -> str:
    """The options with which a JVM writes down the classes it has loaded, as it ends."""
    return f"-XX:ArchiveClassesAtExit={file} -XX:TieredStopAtLevel=1 {_QUIET}"
