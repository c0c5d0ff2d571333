"""Two files side by side: every place in which their code differs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from scripts.same_code.code import (
    COMPREHENSIONS,
    FUNCTIONS,
    Code,
    Module,
    Scope,
    does_something,
    imported,
    parameters,
    read_scope,
)
from scripts.same_code.table import Table

BY_ATTRIBUTE_NAME = {"getattr", "setattr", "hasattr", "delattr"}
"""Functions whose second argument is the name of an attribute."""
LISTED_NAMES = {"__all__", "__slots__", "__match_args__"}
DOTTED = re.compile(r"\w+(?:\.\w+)+")
WIDEST = 80
OLD, NEW = 0, 1


@dataclass
class ScopePair:
    """A scope of OLD and its counterpart, and what names of the one are called in the other."""

    old: Scope
    new: Scope
    renamed: dict[str, str] = field(default_factory=dict)
    back: dict[str, str] = field(default_factory=dict)

    def rename(self, old: str, new: str) -> bool:
        """Note that a name has become another; false when one of them already has another partner."""
        return self.renamed.setdefault(old, new) == new and self.back.setdefault(new, old) == old


class Comparison:
    """Two versions of one module, walked side by side."""

    def __init__(self, table: Table, old_code: Code, new_code: Code, old: Module, new: Module) -> None:
        self.table, self.old_code, self.new_code, self.old, self.new = table, old_code, new_code, old, new
        self.scopes = [ScopePair(old.scope, new.scope)]
        self.differences: list[str] = []
        self.attribute_texts: set[int] = set()
        self.lines = (1, 1)
        self.compare_statements(old.tree.body, new.tree.body)

    def report(self, sentence: str) -> None:
        old, new = self.lines
        self.differences.append(f"{self.old.path}:{old} -> {self.new.path}:{new}: {sentence}")

    def compare(self, old: object, new: object) -> None:
        """Compare two nodes, two lists, or two plain values of nodes."""
        match old, new:
            case ([ast.stmt(), *_], [*_]) | ([*_], [ast.stmt(), *_]):
                self.compare_statements(old, new)
            case [*_], [*_]:
                if len(old) != len(new):
                    self.report(f"{len(old)} parts have become {len(new)}")
                for one, other in zip(old, new, strict=False):
                    self.compare(one, other)
            case str(), str():
                self.compare_names(old, new)
            case ast.AST(), ast.AST() if type(old) is type(new):
                before = self.lines
                self.lines = (getattr(old, "lineno", before[0]), getattr(new, "lineno", before[1]))
                self.compare_nodes(old, new)
                self.lines = before
            case _ if (type(old), repr(old)) != (type(new), repr(new)):
                self.report(f"{show(old)} has become {show(new)}")

    def compare_nodes(self, old: Any, new: Any) -> None:
        """Compare two nodes of one type."""
        match old:
            case ast.Name():
                self.compare_names(old.id, new.id)
            case ast.Attribute():
                paths = self.find_path(old, OLD), self.find_path(new, NEW)
                if None in paths or not self.is_same_path(*map(str, paths)):
                    self.compare_attributes(old.attr, new.attr)
                    self.compare(old.value, new.value)
            case ast.Constant(str()) if isinstance(new.value, str):
                self.compare_texts(old, new)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                self.compare_functions(old, new)
            case ast.ClassDef():
                self.compare_names(old.name, new.name)
                self.compare_fields(old, new, ("bases", "keywords", "decorator_list"))
                self.compare_within(old, new, ("body",))
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self.compare_within(old, new, old._fields)
            case ast.keyword(str(name)) if new.arg is not None:
                self.compare_attributes(name, new.arg)
                self.compare(old.value, new.value)
            case ast.MatchClass():
                self.compare_attributes(" ".join(old.kwd_attrs), " ".join(new.kwd_attrs))
                self.compare_fields(old, new, ("cls", "patterns", "kwd_patterns"))
            case _:
                self.attribute_texts |= set(find_attribute_texts(old))
                self.compare_fields(old, new, old._fields)

    def compare_fields(self, old: ast.AST, new: ast.AST, fields: Sequence[str]) -> None:
        for name in fields:
            self.compare(getattr(old, name, None), getattr(new, name, None))

    def compare_within(self, old: ast.AST, new: ast.AST, fields: Sequence[str]) -> None:
        """Compare fields of two nodes whose names are of a scope of their own."""
        self.scopes.append(ScopePair(read_scope(old), read_scope(new)))
        for name, other in zip(self.scopes[-1].old.parameters, self.scopes[-1].new.parameters, strict=False):
            self.compare_names(name, other)
        self.compare_fields(old, new, fields)
        self.scopes.pop()

    def compare_functions(self, old: Any, new: Any) -> None:
        if not isinstance(old, ast.Lambda):
            self.compare_names(old.name, new.name)
            self.compare_fields(old, new, ("decorator_list", "returns"))
        if shape(old.args) != shape(new.args):
            self.report(f"the parameters ({ast.unparse(old.args)}) have become ({ast.unparse(new.args)})")
        self.compare_fields(old.args, new.args, ("defaults", "kw_defaults"))
        annotations = [[each.annotation for each in parameters(one.args)] for one in (old, new)]
        self.compare(*annotations)
        self.compare_within(old, new, ("body",))

    def compare_statements(self, old: Any, new: Any) -> None:
        """Compare two blocks: their imports as sets, everything else in order."""
        paths = [[path for each in block for _, _, path in imported(each)] for block in (old, new)]
        for path in paths[0]:
            if not any(self.is_same_path(path, other) for other in paths[1]):
                self.report(f"{path} is imported no more")
        for other in paths[1]:
            if not any(self.is_same_path(path, other) for path in paths[0]):
                self.report(f"{other} was not imported")
        left, right = ([each for each in block if does_something(each)] for block in (old, new))
        if len(left) != len(right):
            self.report(f"{len(left)} statements have become {len(right)}")
        for one, other in zip(left, right, strict=False):
            before = len(self.differences)
            self.compare(one, other)
            if len(left) != len(right) and len(self.differences) > before:
                break  # from here on each would be held against another's counterpart

    def compare_names(self, old: str, new: str) -> None:
        places = [self.find_scope(old, OLD), self.find_scope(new, NEW)]
        same = places[0] == places[1]
        if not same or places[0] is None:
            same = same and old == new
        else:
            pair = self.scopes[places[0]]
            if old in pair.old.imports or new in pair.new.imports:
                same = self.is_same_path(pair.old.imports.get(old, ""), pair.new.imports.get(new, ""))
            else:
                is_local = isinstance(pair.old.node, (*FUNCTIONS, *COMPREHENSIONS)) and old not in pair.old.parameters
                same = pair.rename(old, new) and (is_local or self.table.allows(old, new, self.old.name))
        if not same:
            self.report(f"the name {old} has become {new}")

    def compare_attributes(self, old: str, new: str) -> None:
        pairs = list(zip(old.split(), new.split(), strict=False))
        if len(old.split()) != len(new.split()) or not all(self.table.allows(*pair) for pair in pairs):
            self.report(f"the attribute or keyword {old} has become {new}")

    def compare_texts(self, old: ast.Constant, new: ast.Constant) -> None:
        text, other = str(old.value), str(new.value)
        is_name = id(old) in self.attribute_texts and self.table.allows(text, other)
        is_path = DOTTED.fullmatch(text) and self.old_code.locate(text)[0] and self.is_same_path(text, other)
        if not (text == other or self.table.move_in_text(text) == other or is_name or is_path):
            self.report(f"the text {show(old)} has become {show(new)}")

    def is_same_path(self, old: str, new: str) -> bool:
        """Whether two dotted names stand for the same thing."""
        (module, names), (other, others) = self.old_code.locate(old), self.new_code.locate(new)
        if self.table.move(module) != other or len(names) != len(others):
            return False
        if not module:
            return names == others
        wheres = [module, *[None] * len(names)]
        return all(self.table.allows(*each) for each in zip(names, others, wheres, strict=False))

    def find_scope(self, name: str, side: int) -> int | None:
        """Which of the scopes around this place binds a name; a class binds none for the functions in it."""
        for place in range(len(self.scopes) - 1, -1, -1):
            scope = (self.scopes[place].old, self.scopes[place].new)[side]
            is_hidden = isinstance(scope.node, ast.ClassDef) and place < len(self.scopes) - 1
            if not is_hidden and (name in scope.names or name in scope.imports):
                return place
        return None

    def find_path(self, node: ast.expr, side: int) -> str | None:
        """The dotted name of what a name or an attribute stands for, where that was imported."""
        match node:
            case ast.Name(name):
                place = self.find_scope(name, side)
                scope = None if place is None else (self.scopes[place].old, self.scopes[place].new)[side]
                return None if scope is None else scope.imports.get(name)
            case ast.Attribute(value, name):
                path = self.find_path(value, side)
                return None if path is None else f"{path}.{name}"
        return None


def shape(given: ast.arguments) -> tuple[int | bool, ...]:
    """How many parameters of each kind there are."""
    lists = (given.posonlyargs, given.args, given.kwonlyargs)
    return *map(len, lists), given.vararg is not None, given.kwarg is not None


def find_attribute_texts(node: ast.AST) -> Iterator[int]:
    """The texts in a node that name attributes: of `setattr(thing, "name", ...)`, and in `__all__` and `__slots__`."""
    match node:
        case ast.Call(ast.Name(called) | ast.Attribute(_, called), [_, name, *_]) if called in BY_ATTRIBUTE_NAME:
            yield id(name)
        case ast.Assign([ast.Name(listed)], value) if listed in LISTED_NAMES:
            yield from map(id, ast.walk(value))


def show(value: object) -> str:
    """A node or a value as source on one line, cut short; an operator by its name."""
    text = ast.unparse(value) or type(value).__name__ if isinstance(value, ast.AST) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= WIDEST else f"{text[:WIDEST]}..."
