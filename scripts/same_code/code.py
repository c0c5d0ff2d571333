"""The Python files of one commit: their trees, the names that each scope binds, and what imported names stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass
class Scope:
    """The names that a module, class, function or comprehension binds; imports with what they import."""

    node: ast.AST
    names: set[str] = field(default_factory=set)
    imports: dict[str, str] = field(default_factory=dict)
    parameters: list[str] = field(default_factory=list)


@dataclass
class Module:
    """One file of a commit."""

    name: str
    path: str
    tree: ast.Module
    scope: Scope

    @property
    def has_code(self) -> bool:
        """Whether there is more in it than a docstring."""
        imports = [path for path in self.scope.imports.values() if not path.startswith("__future__.")]
        return bool(imports) or any(map(does_something, self.tree.body))


class Code:
    """All Python files of one commit, by module."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.modules: dict[str, Module] = {}
        for path, text in files.items():
            name = path.removeprefix("src/").removesuffix(".py").replace("/", ".").removesuffix(".__init__")
            tree = ast.parse(text, path)
            self.modules[name] = Module(name, path, tree, read_scope(tree))
        # A folder is a package, whether or not it has an __init__.py.
        self._places = {
            ".".join(name.split(".")[:end]) for name in self.modules for end in range(1, name.count(".") + 2)
        }

    def locate(self, dotted: str) -> tuple[str, list[str]]:
        """The module that defines a dotted name, and the names in it; no module when it is of another package."""
        for _ in range(10):
            parts = dotted.split(".")
            ends = (end for end in range(len(parts), 0, -1) if ".".join(parts[:end]) in self._places)
            end = next(ends, 0)
            module, rest = ".".join(parts[:end]), parts[end:]
            known = self.modules[module].scope.imports if module in self.modules else {}
            if not rest or rest[0] not in known:
                break
            dotted = ".".join([known[rest[0]], *rest[1:]])
        return module, rest


def imported(statement: ast.AST) -> Iterator[tuple[str, str, str]]:
    """Each name that an import binds, what the name stands for, and the full path of what is imported."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            first = alias.name.partition(".")[0]
            yield alias.asname or first, alias.name if alias.asname else first, alias.name
    elif isinstance(statement, ast.ImportFrom):
        for alias in statement.names:
            path = f"{'.' * statement.level}{statement.module or ''}.{alias.name}"
            yield alias.asname or alias.name, path, path


def read_scope(node: ast.AST) -> Scope:
    """The names that a node binds for the code within it."""
    scope, outer = Scope(node), set[str]()
    if isinstance(node, FUNCTIONS):
        scope.parameters = [each.arg for each in parameters(node.args)]
    todo: list[ast.AST] = [each.target for each in node.generators] if isinstance(node, COMPREHENSIONS) else []
    todo += getattr(node, "body", []) if isinstance(getattr(node, "body", None), list) else []
    while todo:
        each = todo.pop()
        match each:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                scope.names.add(name)
                continue
            case ast.Import() | ast.ImportFrom():
                scope.imports |= {name: path for name, path, _ in imported(each)}
            case ast.Name(name, ast.Store() | ast.Del()) | ast.ExceptHandler(name=str(name)):
                scope.names.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                scope.names.add(name)
            case ast.Global(names) | ast.Nonlocal(names):
                outer.update(names)
            case ast.Lambda():
                continue
        if isinstance(each, COMPREHENSIONS):  # only what := binds is of the scope around it
            todo += [inner.target for inner in ast.walk(each) if isinstance(inner, ast.NamedExpr)]
        else:
            todo += ast.iter_child_nodes(each)
    scope.names = (scope.names | set(scope.parameters)) - outer
    return scope


def parameters(given: ast.arguments) -> list[ast.arg]:
    """The parameters of a function in the order in which they are written."""
    last = [each for each in (given.vararg, *given.kwonlyargs, given.kwarg) if each is not None]
    return [*given.posonlyargs, *given.args, *last]


def does_something(statement: ast.stmt) -> bool:
    """Whether a statement is neither an import nor `pass` nor a text that only people read."""
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return not is_text and not isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass)
