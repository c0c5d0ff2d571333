"""A stand-in for a Spark DataFrame and for `pyspark.sql.functions`: it writes calls down, and calls nothing."""

from __future__ import annotations

from typing import Any

WIDEST = 110
"""A call that is longer has a line for each argument."""


class Recorder:
    """An expression as text; every call on it is a longer expression.

    >>> rows = Recorder("rows")
    >>> rows.where("n > 0").select(Recorder("F").col("n"))
    rows
      .where('n > 0')
      .select(F.col('n'))
    """

    def __init__(self, text: str, *, is_streaming: bool = False, is_chain: bool | None = None) -> None:
        self._text, self.isStreaming = text, is_streaming
        self._is_chain = text == "rows" if is_chain is None else is_chain

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Recorder:
            arguments = [*map(repr, given), *(f"{key}={value!r}" for key, value in named.items())]
            line = f".{name}({', '.join(arguments)})"
            if self._is_chain:
                if len(line) > WIDEST:
                    line = "\n    ".join([f".{name}(", *(f"{argument}," for argument in arguments)]) + "\n  )"
                line = f"\n  {line}"
            return Recorder(self._text + line, is_streaming=self.isStreaming, is_chain=self._is_chain)

        return call

    def __repr__(self) -> str:
        return self._text
