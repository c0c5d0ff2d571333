"""What an expression needs to know of a column: its type, and whether it may be null.

A light value so that streams and views can describe their columns without loading a parser.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.types.field_types import Type


@dataclass(frozen=True)
class ColumnType:
    """The type of a column, and whether it may be null.

    >>> from headrace.types.field_types import Integer
    >>> ColumnType(Integer(), nullable=True)
    ColumnType(type=Integer(), nullable=True)
    """

    type: Type
    nullable: bool = False
