"""One mutation: a place in a file, and the text that stands there instead."""

from __future__ import annotations

from dataclasses import dataclass


class MutationError(Exception):
    """A mutation cannot be applied, or its tests cannot be run: nothing was learned."""


@dataclass(frozen=True)
class Mutation:
    """A change of the code that the tests must notice.

    Parameters
    ----------
    file
        Path from the root of the tree.
    span
        The characters [low, high) of the file that are replaced.
    after
        What stands there instead.
    tests
        Test files or node ids that are run, in this order.
    """

    name: str
    file: str
    span: tuple[int, int]
    after: str
    tests: tuple[str, ...] = ()

    def apply(self, source: str) -> str:
        """The file's text with the mutation.

        >>> Mutation("swap", "a.py", (2, 3), ">").apply("a < b")
        'a > b'
        """
        low, high = self.span
        return source[:low] + self.after + source[high:]

    def line(self, source: str) -> int:
        """The number of the line that the mutation begins in."""
        return source.count("\n", 0, self.span[0]) + 1


def find_once(source: str, before: str, where: str) -> tuple[int, int]:
    """The span of a text that stands exactly once in a source; refused otherwise, so that nothing is broken silently.

    >>> find_once("a < b", "<", "a.py")
    (2, 3)
    """
    count = source.count(before)
    if count != 1:
        raise MutationError(f"{where}: the text to replace stands there {count} times, not once: {before!r}")
    low = source.index(before)
    return low, low + len(before)


def changed_lines(mutation: Mutation, source: str) -> tuple[str, str]:
    """The lines that a mutation touches, as they are and as they become."""
    low = source.rfind("\n", 0, mutation.span[0]) + 1
    end = source.find("\n", mutation.span[1])
    high = len(source) if end < 0 else end
    return source[low:high], source[low : mutation.span[0]] + mutation.after + source[mutation.span[1] : high]


def describe_change(mutation: Mutation, source: str) -> str:
    """Where a mutation is, and its lines before and after.

    >>> print(describe_change(Mutation("swap", "a.py", (2, 3), ">"), "a < b"))
    a.py:1
      - a < b
      + a > b
    """
    before, after = changed_lines(mutation, source)
    lines = [f"{mutation.file}:{mutation.line(source)}"]
    lines += [f"  - {line}" for line in before.split("\n")] + [f"  + {line}" for line in after.split("\n")]
    return "\n".join(lines)
