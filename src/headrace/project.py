"""A project: headrace.toml and features.py, loaded and planned.

Loading runs the user's Python. It may raise, print or hang; each of these ends in an error that says where.
"""

from __future__ import annotations

import builtins
import contextlib
import difflib
import io
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from headrace.clock import SECOND, show_duration
from headrace.codec.registry.files import FOLDER, SchemaFiles, Version
from headrace.config.config import Config, names
from headrace.config.config import load as load_config
from headrace.config.row import FILE
from headrace.define.dimension import Dimension
from headrace.define.feature_set import FeatureSet
from headrace.define.label import Label
from headrace.define.model import Model
from headrace.define.on_demand import OnDemand
from headrace.define.stream import Stream
from headrace.define.view import View
from headrace.errors import HeadraceError, ProjectError, SchemaError, did_you_mean, relative, shown
from headrace.plan.build import Definitions, build, gather
from headrace.plan.model import Plan

MODULE = "headrace_features"
Definition = Stream | View | Dimension | OnDemand | FeatureSet | Model | Label


@dataclass(frozen=True)
class Project:
    """What a project's files say."""

    config: Config
    definitions: Definitions

    def loader(self) -> Callable[[], Project]:
        """What loads the same project in another process."""
        return partial(load, self.config.root, self.config.env)

    def files(self) -> list[Path]:
        """The files that definitions may come from: the settings, the features file and what it imports beside it."""
        folder = self.config.features.parent
        imported = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        beside = {Path(file) for file in imported if file and Path(file).is_relative_to(folder)}
        own = {self.config.root / FILE, self.config.features, *folder.glob("*.py")}
        return sorted(own | {file for file in beside if ".venv" not in file.parts})

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Every stream, by order of definition."""
        return self.definitions.streams

    @property
    def views(self) -> tuple[View, ...]:
        """Every view, by order of definition."""
        return self.definitions.views

    @property
    def on_demands(self) -> tuple[OnDemand, ...]:
        """Every on-demand feature, by order of definition."""
        return self.definitions.on_demands

    @property
    def feature_sets(self) -> tuple[FeatureSet, ...]:
        """Every feature set, by order of definition."""
        return self.definitions.feature_sets

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """Every dimension, by order of definition."""
        return self.definitions.dimensions

    @property
    def models(self) -> tuple[Model, ...]:
        """Every model, by order of definition."""
        return self.definitions.models

    @property
    def labels(self) -> tuple[Label, ...]:
        """Every label, by order of definition."""
        return self.definitions.labels

    @cached_property
    def _plan(self) -> Plan:
        made = self.definitions
        parts = (
            made.streams,
            made.views,
            made.dimensions,
            made.on_demands,
            made.feature_sets,
            made.models,
            made.labels,
        )
        every = [thing for part in parts for thing in part]
        return build(every, self.config.pipeline.mode, self.config.log.kind)

    def plan(self) -> Plan:
        """The plan for the configured mode."""
        return self._plan

    @property
    def registry(self) -> SchemaFiles:
        """The versions of the streams' schemas, kept beside headrace.toml."""
        return SchemaFiles(self.config.root / FOLDER)

    def check_schemas(self) -> tuple[Version, ...]:
        """The version each stream's schema has or would get; a change that breaks the compatibility is refused.

        So is a stream that cannot read what a registry on a server has for its topic.
        """
        self._check_server()
        return tuple(map(self._proposed, self.streams))

    def _proposed(self, stream: Stream) -> Version:
        try:
            return self.registry.propose(stream.name, stream.schema, self.config.schema.compatibility)
        except SchemaError as error:
            if error.code == "incompatible-schema":
                error.where = stream.location
            raise

    def _check_server(self) -> None:
        avro = [stream for stream in self.streams if stream.format == "confluent-avro"]
        if not avro or not self.config.registry.address:
            return
        from headrace.codec.registry.ids import check_subject, server_of

        server, named = server_of(self.config), names(self.config)
        for stream in avro:
            check_subject(server, stream, named.topic(stream.name))

    def register_schemas(self) -> None:
        """Let the streams' schemas in as their newest versions: what is started is what is promised."""
        for version in self.check_schemas():
            self.registry.register(version.stream, version.schema, version.compatibility)

    def find(self, name: str) -> Definition:
        """A definition by name; a feature by its view's name is found with `view.feature`."""
        every: dict[str, Definition] = {}
        for kind in (
            self.streams,
            self.labels,
            self.models,
            self.on_demands,
            self.feature_sets,
            self.dimensions,
            self.views,
        ):
            every |= {thing.name: thing for thing in kind}
        if name in every:
            return every[name]
        raise ProjectError("not-found", "Nothing has that name.", got=shown(name), hint=did_you_mean(name, every))


def load(path: Path | None = None, env: str | None = None) -> Project:
    """Load the project at or above a folder.

    Parameters
    ----------
    path
        Where to look for headrace.toml, then in the folders above; the current folder by default.
    env
        The environment whose overlay applies.
    """
    config = load_config(path, env=env)
    module = _execute(config.features, config.load_timeout)
    made = [value for name, value in vars(module).items() if not name.startswith("_")]
    definitions = gather(value for value in made if isinstance(value, Definition))
    if not definitions.views:
        hint = "Define one with hr.view(...) and bind it to a module-level name."
        place = relative(str(config.features))
        raise ProjectError("no-definitions", "The features file defines no view.", where=place, hint=hint)
    return Project(config, definitions)


def _execute(file: Path, limit: int) -> ModuleType:
    """Run the features file as a fresh module, silenced and timed."""
    place = relative(str(file))
    try:
        code = compile(file.read_text("utf-8"), str(file), "exec", dont_inherit=True)
    except OSError as cause:
        hint = 'Create it, or name another in headrace.toml: features = "...".'
        raise ProjectError("broken-features", "The features file cannot be read.", where=place, hint=hint) from cause
    except (SyntaxError, ValueError) as cause:
        line = getattr(cause, "lineno", None)
        message = f"The features file is not valid Python: {getattr(cause, 'msg', cause)}."
        hint = "Mend the line that is named."
        raise ProjectError("broken-features", message, where=f"{place}:{line}" if line else place, hint=hint) from None
    module = ModuleType(MODULE)
    module.__file__ = str(file)
    sys.modules[MODULE] = module
    printed = io.StringIO()
    with _importable(file.parent), contextlib.redirect_stdout(printed), _deadline(limit, place):
        _run_code(code, module, file)
    if printed.getvalue():
        hint = "Remove the print: commands that load this file have data on stdout."
        message = "The features file printed while it was loaded."
        raise ProjectError("noisy-features", message, where=place, got=shown(printed.getvalue()), hint=hint)
    return module


def _run_code(code: Any, module: ModuleType, file: Path) -> None:
    try:
        exec(code, module.__dict__)
    except (HeadraceError, _TooSlowError):
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as cause:
        lines = [frame.lineno for frame in traceback.extract_tb(cause.__traceback__) if frame.filename == str(file)]
        where = f"{relative(str(file))}:{lines[-1]}" if lines else relative(str(file))
        message = "The features file raised while it was loaded."
        got = shown(f"{type(cause).__name__}: {cause}", 200)
        raise ProjectError("broken-features", message, where=where, got=got, hint=_close(cause, module)) from cause


def _close(cause: BaseException, module: ModuleType) -> str | None:
    """The name that was probably meant, where a name is what is wrong."""
    if isinstance(cause, AttributeError) and isinstance(cause.name, str):
        known = [each for each in dir(cause.obj) if not each.startswith("_")]
    elif isinstance(cause, NameError) and isinstance(cause.name, str):
        known = [each for each in (*vars(module), *dir(builtins)) if not each.startswith("_")]
    else:
        return None
    close = difflib.get_close_matches(cause.name, known, n=1, cutoff=0.6)
    return f"Did you mean {close[0]!r}?" if close else None


class _TooSlowError(Exception):
    """Raised inside the user's code when its time is over."""


@contextlib.contextmanager
def _deadline(limit: int, place: str) -> Iterator[None]:
    """Stop the user's code when its time is over. Only the main thread can be interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(_signal: int, frame: FrameType | None) -> None:
        line = frame.f_lineno if frame else "?"
        raise _TooSlowError(f"{place}:{line}")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit / SECOND)
    try:
        yield
    except _TooSlowError:
        hint = "Definitions only declare: move loading and computing elsewhere, or raise `load_timeout`."
        message = f"The features file took longer than {show_duration(limit)} to load."
        raise ProjectError("slow-features", message, where=place, hint=hint) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let the features file import its neighbours, as a script would."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
