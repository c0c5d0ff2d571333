"""Every way Headrace says no.

An error names the thing, the place, what came and what to do: a `code` that is in the reference, one sentence,
`where` (the user's own file and line when it is their definition), `got` and `hint`.

    HeadraceError
    ├── DefinitionError        a stream, view or feature that cannot mean anything
    │   ├── ExpressionError    an SQL expression outside the shared set, or badly typed
    │   ├── SchemaError        a type or a schema change that is not allowed
    │   ├── UnknownNameError   a name that `headrace` does not have; an AttributeError as well
    │   └── UnknownImportError the same in `from headrace import ...`; an ImportError as well
    ├── ConfigError            headrace.toml, HEADRACE_* variables
    ├── ProjectError           a project that cannot be found or loaded
    ├── DataError              records or tables handed in that cannot be used
    ├── MachineError           something the machine lacks: Java, memory
    │   └── DiskFullError      room on a disk: what was to be written can be written later
    ├── DamagedError           what a store holds is not what was written to it
    ├── ExpiredError           tiles that a store no longer keeps
    └── UsageError             a command line that cannot be understood

Records never raise: a bad record gets a verdict and a reason (see `codec.json.read` and `meaning.reference`).
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any, ClassVar, Self

from headrace.plural import show_count

CALLERS = frozenset({"asyncio", "click", "concurrent", "pyspark", "starlette", "threading", "uvicorn"})
"""Packages by which Headrace itself is called: behind them there is no line of a definition."""
GENERATED = ("<frozen", "<string>")
PACKAGE = os.path.dirname(os.path.abspath(__file__))
NEW_LINE = "\n"

CODES: dict[str, str] = {
    # definitions
    "bad-name": "A name is not a lower-case identifier of at most 100 characters.",
    "bad-argument": "An argument is unknown or missing, has the wrong type, or a value outside the allowed set.",
    "unknown-name": "A name is asked for that `headrace` does not have.",
    "bad-duration": "A duration cannot be read, is zero or negative, or is longer than 100 years.",
    "bad-resolution": "A resolution does not divide its window, or a session's grain exceeds its gap.",
    "bad-window": "A window's numbers do not fit together.",
    "bad-timezone": "A time zone is not in the tz database.",
    "naive-timestamp": "A timestamp has no UTC offset.",
    "unknown-field": "A field is named that the stream does not have.",
    "wrong-type": "A field has a type the aggregate, key or role cannot take.",
    "missing-key": "A view's key may be null, so some events would belong to nobody.",
    "duplicate-name": "Two definitions, fields or features carry one name.",
    "cycle": "Computed columns need each other in a circle.",
    "not-pure": "An on-demand function takes an argument that is neither a request value, a feature nor `t`.",
    # expressions
    "bad-expression": "An SQL expression cannot be parsed.",
    "unsupported-expression": "An SQL construct is outside the set that means the same in Spark and in Python.",
    "mistyped-expression": "An SQL expression combines types that do not fit.",
    # schemas
    "bad-type": "A field's type is not one Headrace knows.",
    "incompatible-schema": "A schema change breaks the compatibility the stream promises.",
    "unknown-version": "A schema version is not in the registry.",
    "bad-avro": "An Avro schema cannot be read, or holds what no record of a stream can.",
    "registry-unreachable": "The schema registry cannot be reached, or does not answer as one.",
    "registry-refused": "The schema registry refused a request.",
    # configuration and projects
    "unknown-setting": "A setting is not one Headrace knows.",
    "bad-setting": "A setting has a value it cannot take.",
    "unknown-environment": "An environment is named that headrace.toml does not have.",
    "no-project": "No headrace.toml was found here or in a folder above.",
    "already-a-project": "The folder to create exists and is not empty.",
    "broken-features": "features.py raised while it was loaded.",
    "noisy-features": "features.py printed while it was loaded.",
    "slow-features": "features.py took too long to load.",
    "no-definitions": "features.py defines no view.",
    "not-found": "No view, dimension, feature or feature set of that name exists.",
    # dimensions
    "bad-dimension": "A dimension's table is not there, cannot be read, or does not hold what its definition says.",
    "dimension-unread": "Serving has not been able to read a dimension's table yet.",
    # data handed in
    "bad-record": "A record handed to the test runner or the preview cannot be used.",
    "bad-request": "A request value is missing, unknown or of the wrong type.",
    # the log
    "unknown-topic": "A topic is named that the log does not have.",
    "unknown-partition": "A partition is named that the topic does not have.",
    "topic-mismatch": "A topic exists with another number of partitions or another compaction.",
    "bad-message": "A message cannot be appended: not bytes, too large, or without the key its topic needs.",
    "offset-out-of-range": "A position lies before what retention has kept, or past the end of the log.",
    "log-full": "The disk under the log is full; nothing of the append was kept.",
    "log-failed": "The files of the log cannot be read or written.",
    "log-corrupt": "The bytes of the log are not those that were written.",
    "log-format": "The log was written in a format this version does not know.",
    "log-unreachable": "The Kafka brokers do not answer in time, or refuse who asks.",
    "wrong-arrival": "A topic keeps the producers' timestamps, and its stream does not say so.",
    # Spark
    "spark-failed": "A job or query of Spark has failed.",
    # the state that queries keep
    "checkpoint-damaged": "A file of a query's checkpoint is cut off, empty or not what was written.",
    "state-unreadable": "The state of a query cannot be read from its checkpoint.",
    # the store
    "store-busy": "The rows of a key changed at every one of many reads.",
    "bad-changelog": "A changelog record or the partial columns in it cannot be read.",
    "store-locked": "Another process writes to the store.",
    "store-failed": "The files of the store cannot be read or written, or Redis refuses to.",
    "store-format": "The store was written in a format this version does not know.",
    "store-ahead": "The store was filled from another log than the one it follows.",
    "store-unreachable": "Redis does not answer in time, or refuses who asks.",
    "store-damaged": "What the store holds is not what was written to it, or its files are gone; it is filled again.",
    "store-expired": "A value is asked for of a time whose tiles the store no longer holds.",
    "store-moved": "Another process has moved a shared store on, or emptied it; it is looked at again.",
    # the lake
    "lake-behind": "A past value is asked for, and the lake has not come to that moment yet.",
    "lake-conflict": "The lake holds something else than what is to be written to it.",
    "lake-failed": "The tables of the lake cannot be read or written.",
    "lake-forgotten": "A past value is asked for, and days of the lake that it needs were forgotten.",
    "lake-version": "A table of the lake is asked for in a version that is no longer there.",
    "lake-needed": "Days of the lake are to be forgotten that can still be asked for.",
    "bad-query": "A query to the lake cannot be answered, or is no query.",
    # serving
    "unknown-path": "The server has nothing at that path.",
    "wrong-method": "The path does not take that HTTP method.",
    "too-large": "A request's body is larger than the server takes.",
    "too-busy": "The server takes no more now: the pipeline is behind, or too much is under way.",
    "bad-encoding": "A request's body is compressed in a way the server does not read, or not as its header says.",
    "too-slow": "A request was not sent, or not answered, within the time that the server gives it.",
    "too-stale": "A view's values are older than its `max_staleness`, and stale ones are refused.",
    "on-demand-failed": "An on-demand function failed, or gave what is no JSON value.",
    "no-model": "A model has no version that answers.",
    "model-slow": "A version of a model did not score, or could not be started, in the time it has.",
    "model-down": "The process of a model's version has ended; it is started again.",
    "no-key": "A request needs an API key, and brings none that the server knows.",
    "wrong-role": "An API key does not have the role that a request needs.",
    "foreign-host": "A request without API keys is to a host that is not this machine.",
    "foreign-origin": "A browser sends a request of a page that did not come from the server.",
    "bad-key": "A configured API key, its role or its file cannot be used.",
    "unprotected": "Serving would listen beyond this machine without API keys.",
    "bad-certificate": "The certificate or key for https cannot be used.",
    "internal": "Something failed that Headrace did not foresee; the server's log has the details.",
    # running processes
    "already-running": "The project is up already, and one supervisor is enough.",
    "not-running": "Something is asked of a process that does not run.",
    "component-hung": "A part of the Spark process does nothing and cannot be woken.",
    "start-failed": "A process could not be started, or exits again and again.",
    "port-taken": "The port to serve on is taken or may not be used.",
    "no-answer": "A process did not answer, or not as it should.",
    # producers
    "buffer-full": "A producer's buffer stayed full: the log does not keep up, and the event was not taken.",
    "not-delivered": "Events handed to a producer were not appended, or not in time.",
    # dead letters
    "no-letter": "A dead letter is named that is not there.",
    "letters-locked": "Another process replays or drops the project's dead letters.",
    # files to send
    "bad-file": "A file to send cannot be read, or is not what its format says.",
    # imports
    "import-running": "Another process imports history into the same stream.",
    "imported-otherwise": "History was imported before with other options, and would be imported twice.",
    # training sets
    "bad-spine": "The rows that a training set is asked for lack a column, or have cells that cannot be used.",
    "training-set-there": "The folder for a training set exists and is not empty.",
    "changed-since": "A training set is to be made again, and its spine or its features have changed.",
    # models
    "bad-model": "A model's file or manifest cannot be read, is of another format, or has changed since.",
    "unknown-model": "No model of that name, or no version of it with that number, was added.",
    "wrong-columns": "The columns that a model takes are not those it is given.",
    "missing-value": "A model is given a null where it takes none.",
    "model-failed": "A model raised, or gave what is no score in its range.",
    "code-not-allowed": "A model is a pickle or a file of Python, which may run anything, and nobody allowed it.",
    "no-champion": "A model has no champion to score with, or none before to go back to.",
    "wrong-reference": "Statistics were counted against another reference than the model's, or it cannot be read.",
    "models-locked": "Another process changes the versions or roles of a model, and does not come to an end.",
    # the machine
    "disk-full": "A disk is full or its quota used up; what waits for it goes on when there is room.",
    "backfill-running": "Another process backfills the same project.",
    "lake-empty": "The lake has nothing of a stream.",
    "too-many-slots": "Real-time mode would need more task slots than one machine has.",
    "not-prepared": "Spark's classes could not be kept for a faster start.",
    "no-java": "No Java 17 or later was found.",
    "no-avro": "The Spark session has no reader for Avro.",
    "no-redis": "A Redis on this machine is wanted, and redis-server was not found.",
    "no-maven": "Maven is needed to fetch jars, and was not found.",
    "no-jars": "The jars that Kafka needs are not there, or cannot be fetched.",
    "bad-jar": "A fetched jar is not the one that Headrace was tested with.",
    "missing-package": "A Python package that an extra of Headrace brings is not installed.",
    "doctor-failed": "The machine lacks something Headrace needs.",
    "machine-exhausted": "The machine has no more memory or open files, or a device fails.",
    # the command line
    "file-unusable": "A file or folder of the command line, the settings or the project cannot be read or written.",
    "bad-usage": "A verb, option or argument on the command line cannot be used.",
}


class HeadraceError(Exception):
    """The root of every error Headrace raises.

    Parameters
    ----------
    code
        A key of `CODES`.
    message
        One sentence, with a full stop.
    got
        What came, already short enough to show (see `shown`).
    hint
        What to do about it.
    where
        File and line, or the name of the thing.
    excerpt
        The lines of what was written, with a line of carets under the place that is wrong.

    Examples
    --------
    >>> print(HeadraceError("not-found", "There is no view 'crads'.", got="'crads'", hint="Did you mean 'cards'?"))
    There is no view 'crads'.
      code: not-found
      got: 'crads'
      hint: Did you mean 'cards'?
    """

    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        code: str,
        message: str,
        *,
        got: str | None = None,
        hint: str | None = None,
        where: str | None = None,
        excerpt: str | None = None,
    ) -> None:
        if code not in CODES:
            raise ValueError(f"error code {code!r} is not in errors.CODES")
        self.code, self.message, self.got, self.hint, self.where = code, message, got, hint, where
        self.excerpt = excerpt
        super().__init__(message)

    def __str__(self) -> str:
        return "\n".join([self.message, *self.lines("code", "where", "got", "excerpt", "hint")])

    def lines(self, *names: str) -> list[str]:
        """Some of the fields for people, a line for each; those that are empty are left out.

        >>> HeadraceError("bad-expression", "It ends.", excerpt="a ; b\\n  ^").lines("code", "excerpt")
        ['  code: bad-expression', '  at: a ; b\\n        ^']
        """
        shown = {"excerpt": "at"}
        return [
            f"  {(label := shown.get(name, name))}: {text.replace(NEW_LINE, NEW_LINE + ' ' * (len(label) + 4))}"
            for name in names
            if (text := getattr(self, name))
        ]

    def inside(self, what: str, where: str | None = None) -> Self:
        """The same error, its place narrowed to a part of what the user wrote."""
        self.where = f"{where or self.where}, {what}"
        return self

    @property
    def brief(self) -> str:
        """What went wrong in one line, without a way out.

        >>> HeadraceError("no-answer", "It does not answer.", got="pid 7").brief
        'It does not answer. pid 7'
        """
        return self.message if self.got is None else f"{self.message} {self.got}"

    def as_json(self) -> dict[str, str | None]:
        """The one error shape of every `--json` output and HTTP answer."""
        told = {
            "code": self.code,
            "message": self.message,
            "where": self.where,
            "got": self.got,
            "hint": self.hint,
        }
        return told if self.excerpt is None else told | {"excerpt": self.excerpt}


class DefinitionError(HeadraceError):
    """A stream, view or feature that cannot mean anything; `where` is the user's file and line."""

    http_status = 400
    exit_code = 2

    def __init__(
        self,
        code: str,
        message: str,
        *,
        got: str | None = None,
        hint: str | None = None,
        where: str | None = None,
        excerpt: str | None = None,
    ) -> None:
        super().__init__(code, message, got=got, hint=hint, where=where or user_location(), excerpt=excerpt)


class ExpressionError(DefinitionError):
    """An SQL expression outside the shared set, or badly typed."""


class SchemaError(DefinitionError):
    """A type or a schema change that is not allowed."""


class UnknownNameError(DefinitionError, AttributeError):
    """A name that `headrace` does not have."""


class UnknownImportError(DefinitionError, ImportError):
    """A name that `headrace` does not have, in `from headrace import ...`."""


class ConfigError(HeadraceError):
    """A setting in headrace.toml or a HEADRACE_* variable that cannot be used."""

    exit_code = 2


class ProjectError(HeadraceError):
    """A project that cannot be found or loaded."""

    http_status = 404
    exit_code = 2


class DataError(HeadraceError):
    """Records, tables or request values handed in that cannot be used."""

    http_status = 400
    exit_code = 2


class MachineError(HeadraceError):
    """Something the machine lacks."""

    http_status = 503
    exit_code = 3


class DiskFullError(MachineError):
    """A disk is full or its quota used up: nothing was kept of what was to be written, and it can be tried again."""

    http_status = 507
    exit_code = 4


class UsageError(HeadraceError):
    """A command line that cannot be understood."""

    http_status = 400
    exit_code = 2


def shown(value: Any, limit: int = 80) -> str:
    """A value as an error shows it: its repr, never longer than `limit`.

    >>> shown("x" * 1000, limit=12)
    "'xxxxxxx... (1,002 characters)"
    """
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 4]}... ({show_count(len(text), 'character')})"


def did_you_mean(word: Any, known: Iterable[str]) -> str | None:
    """A hint that names the closest known word, or lists what is known.

    >>> did_you_mean("crad", ["card", "amount"])
    "Did you mean 'card'?"
    >>> did_you_mean("zzz", ["card", "amount"])
    "Known: 'amount', 'card'."
    """
    known = sorted(known)
    if not known:
        return None
    close = difflib.get_close_matches(str(word)[:200], known, n=1, cutoff=0.6)
    if close:
        return f"Did you mean {close[0]!r}?"
    listed = ", ".join(shown(name, 40) for name in known[:12])
    return f"Known: {listed}{' and more' if len(known) > 12 else ''}."


def user_location() -> str | None:
    """File and line of the innermost caller outside Headrace: where the user wrote it; None when no user calls."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if frame.f_globals.get("__name__", "").partition(".")[0] in CALLERS:
            return None
        if not file.startswith(PACKAGE) and not file.startswith(GENERATED):
            return f"{relative(file)}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def relative(file: str) -> str:
    """A file as errors name it: from the current folder when it lies below, else whole."""
    try:
        relative = os.path.relpath(file)
    except ValueError:
        return file
    return file if relative.startswith("..") else relative
