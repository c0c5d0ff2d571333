"""Models in a folder: every version in a folder of its own that never changes, and one small file with their roles.

    <folder>/<model>/<version>/manifest.json, and the model's file
    <folder>/<model>/roles.json

A version appears in one step, after it was loaded and has scored a plain row. Whoever reads sees the old or the new
roles. Processes on one machine take turns by a lock; how a server follows the roles is `models.lineup`'s business.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict, Unpack

from msgspec.structs import replace

from headrace.clock import Clock
from headrace.errors import DataError, ProjectError, did_you_mean, shown
from headrace.faults import NO_FAULTS, FaultPoints
from headrace.models import formats, manifest
from headrace.models.columns import ModelColumn
from headrace.models.manifest import Manifest, Output
from headrace.models.probe import probe
from headrace.models.roles_file import RolesFile, locked
from headrace.models.scorer import Scorer
from headrace.version import VERSION

_NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")
_VERSION = re.compile(r"[1-9][0-9]{0,8}")


Check = Callable[[Path, Manifest], None]


def score_plain_rows(folder: Path, made: Manifest) -> None:
    """Load a version in this process, and refuse it if it has no score for plain values."""
    probe(Scorer(made, formats.load(folder, made)))


class Details(TypedDict, total=False):
    """What else may be said of a version; see `Manifest` for what each means."""

    missing: str | dict[str, float]
    categories: dict[str, tuple[str, ...]]
    output: Output
    threshold: float | None
    training_set: dict[str, Any] | None
    reference: dict[str, Any]
    metrics: dict[str, float]
    description: str | None
    trusted: tuple[str, ...]


class ModelRegistry(RolesFile):
    """The models of a folder, which need not be there yet; roles and their changes are `RolesFile`'s.

    Parameters
    ----------
    folder
        Where models are kept.
    clock
        What says when a version was added and a role changed.
    faults
        Hears of every file that is written; for tests.
    check
        Refuses a version that cannot score. `trial.try_out` does it in a process of its own: what comes from outside
        may hang or crash.
    """

    def __init__(
        self, folder: Path, clock: Clock, faults: FaultPoints = NO_FAULTS, check: Check = score_plain_rows
    ) -> None:
        super().__init__(folder, clock, faults)
        self._check = check

    def add(
        self,
        model: str,
        source: Any,
        *,
        features: str,
        columns: tuple[ModelColumn, ...],
        format: str | None = None,
        allow_code: bool = False,
        **details: Unpack[Details],
    ) -> Manifest:
        """Keep a model as the next version. It gets no role by that.

        Parameters
        ----------
        source
            The model itself, a file with it, or for plain Python a function or `module:function`.
        features, columns
            The feature set it takes, and its columns in order.
        format
            One of `formats.FORMATS`; found out when it is not said.
        allow_code
            Whether it may be a pickle or a file of Python, which may run anything when they are opened.
        details
            The other fields of a `Manifest`.
        """
        name_of(model)
        form = formats.guess(source) if format is None else format
        if formats.is_code(form, source) and not allow_code:
            raise formats.not_allowed(form)
        # Beside the versions, so that it becomes one by a new name; its own name is nobody else's at this moment.
        folder = self._folder / model / f".adding-{os.getpid()}-{threading.get_ident()}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            file = formats.save(form, source, folder)
            self._faults.reach("models.file.after")
            made = _first(model, form, file, features, columns, details)
            made = replace(
                made, sha256=digest(folder / file), created_at=self._clock.now(), pickle=form == formats.PICKLE
            )
            manifest.write(folder, manifest.checked(made))
            self._check(folder, made)
            with locked(self._folder / model):
                made = replace(made, version=self._next(model))
                manifest.write(folder, made)
                self._faults.reach("models.manifest.after")
                folder.rename(self.place(model, made.version))
                self._faults.reach("models.version.after")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return made

    def _next(self, model: str) -> int:
        """A number that no version has, and none that was taken away had when it played a role."""
        played = [change.version for change in self.roles(model).history]
        return max([*self._numbers(model), *played], default=0) + 1

    def models(self) -> list[str]:
        """The names of all models that have a version."""
        if not self._folder.is_dir():
            return []
        return sorted(each.name for each in self._folder.iterdir() if _NAME.fullmatch(each.name) and self._has(each))

    def _has(self, folder: Path) -> bool:
        return folder.is_dir() and bool(self._numbers(folder.name))

    def versions(self, model: str) -> list[int]:
        """The numbers of a model's versions, the oldest first."""
        found = self._numbers(model) if _NAME.fullmatch(model) else []
        if not found:
            hint = did_you_mean(model, self.models()) or "Add a version first."
            raise ProjectError("unknown-model", "There is no such model.", got=shown(model), hint=hint)
        return found

    def _numbers(self, model: str) -> list[int]:
        folder = self._folder / model
        if not folder.is_dir():
            return []
        return sorted(int(each.name) for each in folder.iterdir() if _VERSION.fullmatch(each.name))

    def manifest(self, model: str, version: int) -> Manifest:
        """What a version is."""
        known = self.versions(model)
        if version not in known:
            there = "version" if len(known) == 1 else "versions"
            hint = f"It has {there} {', '.join(map(str, known[-12:]))}."
            raise ProjectError("unknown-model", f"Model {model!r} has no such version.", got=shown(version), hint=hint)
        return manifest.read(self.place(model, version))

    def load(self, model: str, version: int) -> Scorer:
        """A version, ready to score; a file that is not the one that was added is refused."""
        made = self.sound(model, version)
        return Scorer(made, formats.load(self.place(model, version), made))

    def try_out(self, model: str, version: int) -> None:
        """Refuse a version that cannot be loaded and score, before it gets a role."""
        self._check(self.place(model, version), self.sound(model, version))

    def sound(self, model: str, version: int) -> Manifest:
        """What a version is, if its file is still the one that was added."""
        made = self.manifest(model, version)
        file = self.place(model, version) / made.file
        found = digest(file) if file.is_file() else None
        if found != made.sha256:
            message = f"The file of {made.title} is not the one that was added."
            got = "no file" if found is None else f"sha256 {found[:12]}, not {made.sha256[:12]}"
            raise DataError("bad-model", message, got=got, hint="Bring the file back, or add the model again.")
        return made

    def place(self, model: str, version: int) -> Path:
        """The folder of a version."""
        return self._folder / model / str(version)


def name_of(model: Any) -> str:
    """A name that a model can have, or an error.

    >>> name_of("fraud")
    'fraud'
    """
    if isinstance(model, str) and _NAME.fullmatch(model):
        return model
    hint = "Use lower-case letters, digits and underscores, at most 100, starting with a letter."
    raise DataError("bad-name", "The name of a model cannot be used.", got=shown(model), hint=hint)


def digest(file: Path) -> str:
    """The SHA-256 of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _first(
    model: str, form: str, file: str, features: str, columns: tuple[ModelColumn, ...], details: Details
) -> Manifest:
    if "categories" in details:
        details["categories"] = {name: tuple(known) for name, known in details["categories"].items()}
    return Manifest(
        model=model,
        version=0,
        created_at=0,
        headrace=VERSION,
        format=form,
        file=file,
        sha256="",
        features=features,
        columns=tuple(columns),
        **details,
    )
