"""Files and folders that the machine does not let anybody use: an OSError of one becomes an error that names it.

What the user named is the user's to mend: a file on the command line, a folder in the settings, and the project itself.
What the machine has no more of is the machine's; a full disk has an error of its own (`disk`). Any other OSError is a
defect, and stays one.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from headrace.config.config import SETTINGS, Config, load
from headrace.config.row import FILE
from headrace.errors import ConfigError, HeadraceError, MachineError, ProjectError, UsageError, shown

EXHAUSTED = {errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""What the machine has no more of, whichever file it was."""
UNUSABLE = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.ENODEV,
    errno.ENXIO,
    errno.EBUSY,
    errno.ETXTBSY,
}
"""What is wrong with a file for whoever asks."""
LINE, PROJECT = "the command line", "the project"


class NamedPath(NamedTuple):
    """A path that the user named, where it was named, and the setting it is the value of."""

    path: Path
    where: str
    setting: str | None = None


def as_refusal(error: Exception, arguments: Sequence[str]) -> HeadraceError | None:
    """The error that a failed call to the machine is, or None when it is a defect.

    >>> lost = FileNotFoundError(errno.ENOENT, "No such file or directory", "rows.csv")
    >>> refusal = as_refusal(lost, ["send", "payments", "rows.csv"])
    >>> refusal.message, refusal.where, refusal.got
    ('A file or folder cannot be used: No such file or directory.', 'the command line', "'rows.csv'")
    >>> as_refusal(lost, ["check"]) is None
    True
    """
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        message = "A path or value has bytes that are no UTF-8."
        return UsageError("file-unusable", message, got=shown(error.object), hint="Give it another name.")
    if not isinstance(error, OSError) or error.errno is None:
        return None
    if error.errno in EXHAUSTED:
        hint = "Free space or files on this machine, or raise the limit, and try again."
        got = None if error.filename is None else shown(_text(error))
        return MachineError("machine-exhausted", f"The machine has no more: {error.strerror}.", got=got, hint=hint)
    if not _is_here():
        hint = "Go to a folder that exists, such as the project's."
        return UsageError("file-unusable", "The folder you are in is no longer there.", hint=hint)
    if error.filename is None:
        return None
    concerned = [named for named in _named(arguments) if _concerns(error, named.path)]
    return _unusable(error, max(concerned, key=lambda named: _nearness(error, named.path))) if concerned else None


def _unusable(error: OSError, named: NamedPath) -> HeadraceError:
    message, got = f"A file or folder cannot be used: {error.strerror}.", shown(_text(error), 200)
    if named.setting is not None:
        variable = SETTINGS[named.setting].variable
        hint = f"Make it usable, or name another with `{named.setting}` in {FILE} or with {variable}."
        return ConfigError("file-unusable", message, got=got, hint=hint, where=f"{named.setting}, from {named.where}")
    kind = ProjectError if named.where == PROJECT else UsageError
    hint = "Look at its name, its permissions and those of the folders above it, or name another."
    return kind("file-unusable", message, got=got, hint=hint, where=named.where)


def _is_here() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _concerns(error: OSError, named: Path) -> bool:
    """Whether the failure is about what was named: a place on the way there, itself, or something in it.

    What is missing below a folder is missed by Headrace, and only Headrace knows why.
    """
    file = _absolute(Path(_text(error)))
    on_the_way = file == named or file in named.parents
    if error.errno == errno.ENOENT:
        return on_the_way
    if error.errno == errno.EEXIST:
        return (on_the_way or named in file.parents) and not file.is_dir()
    return error.errno in UNUSABLE and (on_the_way or named in file.parents)


def _nearness(error: OSError, named: Path) -> tuple[bool, int]:
    """The deepest name that the file is in; else the first that it is on the way to."""
    file, depth = _absolute(Path(_text(error))), len(named.parts)
    return (True, depth) if named in (file, *file.parents) else (False, -depth)


def _named(arguments: Sequence[str]) -> Iterator[NamedPath]:
    for argument in arguments:
        for text in (argument, argument.partition("=")[2]):
            if text and "\0" not in text:
                yield NamedPath(_absolute(Path(text)), LINE)
    config = _config(arguments)
    if config is None:
        return
    for name, path in _folders(config).items():
        yield NamedPath(_absolute(path), config.origin[name], name)
    yield NamedPath(_absolute(config.root), PROJECT)


def _folders(config: Config) -> dict[str, Path]:
    """The files and folders of this machine that settings name."""
    named = {"data": config.data, "features": config.features}
    for name, text in (("lake.path", config.lake.path), ("models.path", config.models.path)):
        if text and "://" not in text:
            named[name] = Path(text)
    return named


def _config(arguments: Sequence[str]) -> Config | None:
    """The settings of the project that the command was about, if they can be read."""
    try:
        return load(_option(arguments, "--project"), env=str(_option(arguments, "--env") or "") or None)
    except (HeadraceError, OSError):
        return None


def _option(arguments: Sequence[str], name: str) -> Path | None:
    for at, argument in enumerate(arguments):
        if argument == name and at + 1 < len(arguments):
            return Path(arguments[at + 1])
        if argument.startswith(f"{name}="):
            return Path(argument.partition("=")[2])
    return None


def _text(error: OSError) -> str:
    return os.fsdecode(error.filename) if isinstance(error.filename, str | bytes | os.PathLike) else str(error.filename)


def _absolute(path: Path) -> Path:
    """Without following links, and without `..`."""
    return Path(os.path.abspath(path))
