"""The one place that configures a local Spark session.

Whoever brings a session of their own keeps their settings; what Headrace's meaning depends on (UTC, ANSI with
`try_*` functions) is checked where it is used, not forced here.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from headrace.errors import HeadraceError
from headrace.machine import JAVA_OPTIONS, find_java
from headrace.spark.avro import LIMITING
from headrace.spark.classes import keeping, starting
from headrace.spark.failure import GONE, cause_of, is_spark_error
from headrace.spark.jvm import ended_if_interrupted, has_ended, killed_if_interrupted
from headrace.spark.python_workers import start_worker_host

DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
COLLECTOR = "-XX:+UseParallelGC"
"""Java's default works beside the program all the time, for which few cores have no time: events would wait for it."""

SETTINGS: dict[str, str] = {
    # When a query fails, Spark searches the error's whole text with a regular expression that recurses: on a small
    # stack that search overflows, and the query's thread dies without anybody being told. And what Spark generates for
    # a strict decoder is one long method, which Java would interpret for ever: compiled, it takes half as long.
    DRIVER_OPTIONS: f"-Xss16m -XX:-DontCompileHugeMethods {LIMITING}",
    "spark.driver.memory": "1g",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # What is told of the last batches is read every second, all of it, and every one costs a millisecond.
    "spark.sql.streaming.numRecentProgressUpdates": "40",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Real-time mode: how long a row may wait for others on its way between two tasks.
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1",
    # There is one shuffle partition. Rows that are in one task already (`TileQuery`) need not be spread by their keys,
    # which Spark insists on by default; and its list of what may run event by event lacks what says that they are.
    "spark.sql.streaming.statefulOperator.useStrictDistribution": "false",
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
    # What a plan shows of its sources' options: nothing that a Kafka cluster may take for a secret.
    "spark.sql.redaction.options.regex": "(?i)url|secret|password|jaas|keystore|truststore|token|credential",
    # What Spark keeps of jobs that are over, their plans above all, for a page that is not there.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "5",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


UMASK = "spark.hadoop.fs.permissions.umask-mode"
"""What others may not do with the files that Spark writes, checkpoints above all."""


def local_session(
    name: str,
    slots: int = 2,
    jars: Sequence[Path] = (),
    keep_classes: Path | None = None,
    options: Mapping[str, str] = MappingProxyType({}),
) -> SparkSession:
    """A Spark session inside this process, with `slots` task slots, and `jars` on its classpath.

    `options` are further settings of Spark. A process has one JVM, so `jars`, `options` and `keep_classes`, a file for
    the classes it will have loaded in the end, count only for the first session.
    """
    java = find_java()
    # Spark's Python workers must find this very installation, whatever `python3` happens to be first on the path.
    start_worker_host()
    os.environ["JAVA_HOME"] = str(java.home)
    # Behind Spark's own jars, not before them: kept classes are good for a classpath that begins as theirs did.
    os.environ["SPARK_DIST_CLASSPATH"] = os.pathsep.join(map(str, jars))
    builder = SparkSession.builder.master(f"local[{slots}]").appName(name)
    for key, value in {**SETTINGS, UMASK: _umask(), **options}.items():
        builder = builder.config(key, value)
    classes = keeping(keep_classes) if keep_classes else starting(java)
    builder = builder.config(DRIVER_OPTIONS, f"{SETTINGS[DRIVER_OPTIONS]} {_collector()} {classes}")
    with killed_if_interrupted():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    # It prints a traceback when the JVM's end breaks its connection: that is told by whoever needs the JVM.
    vars(session.sparkContext._accumulatorServer)["handle_error"] = lambda *_: None
    return session


def _umask() -> str:
    """This process's umask, which Hadoop's file systems do not look at by themselves."""
    now = os.umask(0o077)
    os.umask(now)
    return f"{now:03o}"


def _collector() -> str:
    """The garbage collector's option, unless the user has chosen one: Java takes no two."""
    chosen = " ".join(os.environ.get(name, "") for name in (JAVA_OPTIONS, "JAVA_TOOL_OPTIONS"))
    return "" if re.search(r"-XX:\+Use\w+GC\b", chosen) else COLLECTOR


def end_quietly(session: SparkSession) -> None:
    """Have Spark and the way to it log nothing more: in an orderly end jobs are cancelled, and each would say so.

    A batch that is cut off by it leaves nothing, and is run again at the next start.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # If the JVM is gone, it is quiet.
    with contextlib.suppress(Py4JError):
        session.sparkContext.setLogLevel("OFF")


@contextlib.contextmanager
def settings(session: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """While entered, a session has these settings: for what is run or started meanwhile."""
    before = {name: session.conf.get(name, None) for name in wanted}
    try:
        for name, value in wanted.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, was in before.items():
            session.conf.unset(name) if was is None else session.conf.set(name, was)


@contextlib.contextmanager
def quiet_session(name: str, file: Path, jars: Sequence[Path] = ()) -> Iterator[SparkSession]:
    """A session for the time being, whose JVM writes to a file what it would write to stderr: that is for people.

    Where one is active already, that one: whoever started it ends it. What fails in Spark becomes an error of ours.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    # What fails is said once, by its cause.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    sys.stderr.flush()
    kept, log = os.dup(2), os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    try:
        os.dup2(log, 2)
        session = local_session(name, jars=jars)
    except Exception as error:
        # Whoever refuses a connection here is the JVM that has just been started.
        if is_spark_error(error) or isinstance(error, ConnectionError):
            raise _failed(cause_of(error) if is_spark_error(error) else GONE, file) from error
        raise
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(log)
    with ended_if_interrupted():
        try:
            yield session
        except KeyboardInterrupt:
            # Its JVM is gone, or as good as gone: there is nobody to stop it.
            raise
        except BaseException as error:
            is_gone = has_ended()
            # If it is the JVM that is gone, that need not be said again while stopping.
            with contextlib.suppress(Py4JError, ConnectionError), warnings.catch_warnings(action="ignore"):
                session.stop()
            if is_gone:
                raise _failed(GONE, file) from error
            # A query that cannot be meant is a defect of ours; one that fails has a cause outside.
            if is_spark_error(error) and not isinstance(error, AnalysisException):
                raise _failed(cause_of(error), file) from error
            raise
        session.stop()


def _failed(cause: str, file: Path) -> HeadraceError:
    hint = f"What Spark said is in {file}."
    return HeadraceError("spark-failed", "A job of Spark has failed.", got=cause, hint=hint)
