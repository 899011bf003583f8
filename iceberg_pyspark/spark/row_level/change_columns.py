"""The columns of the DataFrame of changes that every row-level operation builds.

A row has an operation, the position of the target row that it changes (null if there is none), and
the values of the row to write, if any.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal, TypeAlias

OP = "__ice_op"
FILE = "__ice_file"
POS = "__ice_pos"


class Op(IntEnum):
    """The operation on a row."""

    DELETE = 0
    UPDATE = 1
    INSERT = 2
    COPY = 3
    """The row is written again unchanged, because its file is rewritten."""
    KEEP_UNCHANGED = 4
    """A source row matched the row without changing it; a second match is still an error."""


WRITE_OPS = (Op.UPDATE, Op.INSERT, Op.COPY)
REMOVE_OPS = (Op.DELETE, Op.UPDATE)

ClauseOp: TypeAlias = Literal[Op.UPDATE, Op.DELETE, Op.INSERT]
"""The operations that a clause of a MERGE may have."""
