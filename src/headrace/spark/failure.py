"""Why Spark has failed, in one sentence: the innermost cause of an error that came through Py4J or Spark Connect.

Such an error carries its cause in the text that Java makes of it: stack traces of two languages around one line that
matters. To make that text, Py4J asks the JVM; when that is gone, even `str(error)` fails. What no cause is found in is
told by its type.
"""

from __future__ import annotations

import re
import traceback

from headrace.errors import HeadraceError

LONGEST = 300
GONE = "Spark's Java process has ended, or does not answer."
_PACKAGES = ("pyspark.", "py4j.")
_PYTHON = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+([A-Za-z_][\w.]*)(?:: (.*))?")
_OURS = re.compile(r"^headrace\.[\w.]+: (.+)(?:\n  (?:code|where): .*)*(?:\n  got: (.*))?", re.MULTILINE)
_JAVA = re.compile(r"^Caused by: ([\w.$]+)(?:: (.*))?$", re.MULTILINE)
_FIRST = re.compile(r"^([a-z][\w$]*(?:\.[\w$]+)+(?:Exception|Error)): ")
_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\] ")
_STATE = re.compile(r" ?SQLSTATE: [0-9A-Z]{5}.*$")


def is_spark_error(error: BaseException) -> bool:
    """Whether an error came from Spark or from the way to it."""
    return any(kind.__module__.startswith(_PACKAGES) for kind in type(error).__mro__)


def text_of(error: BaseException) -> str:
    """All that an error says, also when it cannot say it any more."""
    # What Spark has told already is in the error; to ask again would need the JVM.
    said = [getattr(error, name, None) for name in ("_desc", "_stackTrace")]
    if isinstance(said[0], str):
        return "\n".join(each for each in said if isinstance(each, str))
    try:
        return str(error)
    except Exception:
        return GONE


def cause_of(error: BaseException) -> str:
    """The innermost cause of a failure as a sentence: of Python's code if that failed, else of Java's.

    Examples
    --------
    >>> cause_of(ValueError("no such card"))
    'ValueError: no such card.'
    >>> cause_of(HeadraceError("log-failed", "The log cannot be written.", got="/data/log"))
    'The log cannot be written. /data/log'
    """
    if isinstance(error, HeadraceError):
        return error.brief
    if is_spark_error(error):
        return _innermost(text_of(error)) if not _is_gone(error) else GONE
    inner = error.__cause__
    if inner is not None and is_spark_error(inner):
        return cause_of(inner)
    said = text_of(error).strip()
    return _sentence(f"{type(error).__name__}: {said}" if said else type(error).__name__)


def traceback_of(error: BaseException) -> str:
    """Where an error was raised and all that it says, for a log; without asking a JVM that may be gone."""
    if not is_spark_error(error):
        return "".join(traceback.format_exception(error)).rstrip()
    return f"{''.join(traceback.format_tb(error.__traceback__))}{type(error).__name__}: {text_of(error)}".rstrip()


def _is_gone(error: BaseException) -> bool:
    """Whether it is the connection to the JVM that failed."""
    return any(kind.__name__ == "Py4JNetworkError" for kind in type(error).__mro__)


def _innermost(text: str) -> str:
    """The line that matters of a text with stack traces; an error of ours first, because it is a sentence."""
    ours = _OURS.findall(text)
    if ours:
        return _sentence(" ".join(filter(None, ours[-1])))
    for found in (_PYTHON.findall(text), _JAVA.findall(text)):
        if found:
            kind, said = found[-1]
            name = re.split(r"[.$]", kind)[-1]
            return _sentence(f"{name}: {_bare(said)}" if said else name)
    first = next((line for line in text.splitlines() if line.strip()), GONE)
    return _sentence(_bare(_FIRST.sub(lambda match: f"{match[1].rpartition('.')[2]}: ", first)))


def _bare(said: str) -> str:
    """A message without Spark's names for it.

    >>> _bare("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012")
    'Division by zero.'
    """
    return _STATE.sub("", _CONDITION.sub("", said))


def _sentence(said: str) -> str:
    line = " ".join(said.split())
    line = line if len(line) <= LONGEST else f"{line[: LONGEST - 4]} ..."
    return line if line.endswith((".", "!", "?", "...")) else f"{line}."
