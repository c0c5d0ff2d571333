"""What moved and what was renamed between two commits, as a table says it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping


class Table:
    """Which modules moved, and which names may have become which."""

    def __init__(self, modules: Mapping[str, str], names: Mapping[str, str | list[str]]) -> None:
        self.modules = dict(modules)
        self._names: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for old, given in names.items():
            module, _, name = old.rpartition(":")
            for new in [given] if isinstance(given, str) else given:
                self._names[name.rpartition(".")[2]].add((module, new))
        longest = sorted(map(re.escape, self.modules), key=len, reverse=True)
        either = "|".join(longest).replace(r"\.", "[./]") or "(?!)"
        self._in_text = re.compile(rf"(?<![\w.-])(?:{either})(?!\w)")

    def move(self, module: str) -> str:
        """Where a module of OLD is in NEW."""
        return re.sub(rf"^{self._in_text.pattern}", lambda found: self.modules[found[0]], module)

    def move_in_text(self, text: str) -> str:
        """A text with the new names of the modules in it, dotted or as paths."""

        def moved(found: re.Match[str]) -> str:
            slash = "/" in found[0]
            new = self.modules[found[0].replace("/", ".")]
            return new.replace(".", "/") if slash else new

        return self._in_text.sub(moved, text)

    def allows(self, old: str, new: str, module: str | None = None) -> bool:
        """Whether a name may have become another; without a module, wherever it is defined."""
        renamed = self._names.get(old, set())
        return old == new or any(new == to and (module is None or where in ("", module)) for where, to in renamed)
