"""Why Spark failed, from the texts that it gives: no JVM is needed to read them, and none when it is gone."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from headrace.errors import DataError
from headrace.spark.failure import GONE, cause_of

WORKER = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 \
in stage 3.0 (TID 3) (localhost executor driver): org.apache.spark.api.python.PythonException: Traceback (most recent \
call last):
  File "/opt/headrace/run/source.py", line 88, in read
    raise KeyError(partition)
          ^^^^^^^^^^^^^^^^^^^
KeyError: 7

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:645)
Caused by: org.apache.spark.SparkException: Task failed
"""
BATCH = """[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink. \
Reason: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/opt/py4j/java_gateway.py", line 4, in call
    return self.append()
KeyError: 'topic'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/opt/headrace/run/publish.py", line 74, in publish
    place.log.append_batch(topic, made)
headrace.errors.DataError: The disk under the log is full.
  code: log-full
  got: '/data/log'
 SQLSTATE: 39000
\tat py4j.Protocol.getReturnValue(Protocol.java:476)
"""
JAVA = """An error occurred while calling o57.collectToPython.
: org.apache.spark.SparkException: Job aborted.
\tat org.apache.spark.errors.SparkCoreErrors$.jobAborted(SparkCoreErrors.scala:1)
Caused by: java.lang.RuntimeException: reading failed
\t... 30 more
Caused by: java.io.FileNotFoundException: File file:/lake/part-0.parquet does not exist
\t... 40 more
"""
CONDITION = "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide`. SQLSTATE: 22012\n== SQL ==\nselect 1/0"


def captured(desc: str, stack: str = "") -> PySparkException:
    """An error as PySpark keeps it: its text is in it, and to show it would take a JVM."""

    class Captured(PySparkException):
        def __str__(self) -> str:
            raise AssertionError

    error = Captured(message=desc)
    vars(error).update(_desc=desc, _stackTrace=stack)
    return error


def java_error() -> Py4JJavaError:
    """An error that asks the JVM for its text, and the JVM is gone."""

    def refused(_: str) -> str:
        raise Py4JNetworkError("Answer from Java side is empty")

    gone = SimpleNamespace(_target_id="o1", _gateway_client=SimpleNamespace(send_command=refused))
    return Py4JJavaError("An error occurred while calling o57.collect.\n", gone)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (captured(WORKER), "KeyError: 7."),
        (captured("Query terminated", WORKER), "KeyError: 7."),
        (captured(BATCH), "The disk under the log is full. '/data/log'."),
        (Py4JError(JAVA), "FileNotFoundException: File file:/lake/part-0.parquet does not exist."),
        (captured(CONDITION), "Division by zero. Use `try_divide`."),
        (Py4JError("org.apache.spark.SparkException: Job 3 cancelled"), "SparkException: Job 3 cancelled."),
        (java_error(), GONE),
        (Py4JNetworkError("Answer from Java side is empty"), GONE),
        (DataError("log-corrupt", "The log is damaged.", got="offset 7"), "The log is damaged. offset 7"),
        (TimeoutError(), "TimeoutError."),
    ],
)
def test_the_cause_of_a_failure_is_its_innermost_sentence(error, said):
    assert cause_of(error) == said


def test_the_cause_of_an_error_that_spark_has_caused_is_that_of_spark():
    error = RuntimeError("the query has ended")
    error.__cause__ = captured(WORKER)
    assert cause_of(error) == "KeyError: 7."


def test_a_long_cause_is_cut_off():
    assert len(cause_of(captured("x" * 5_000))) == 300
