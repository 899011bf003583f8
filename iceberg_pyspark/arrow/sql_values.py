"""Evaluates SQL expressions on the columns of record batches, by DataFusion."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from iceberg_pyspark.errors import InvalidRequestError

_ROW = "__ice_row"
"""A column that every frame has, as an expression may name none."""

_BATCH_ROWS = 1 << 20
_LITERALS = re.compile(r"'[^']*'")


class SqlEvaluation:
    """Evaluates expressions of DataFusion's SQL; names of columns are case-sensitive.

    Names with a prefix, as in `s.id`, are of that side; without a prefix a name must be a column of
    one side only.
    """

    def __init__(self) -> None:
        self._context = SessionContext(
            SessionConfig(
                {
                    "datafusion.sql_parser.dialect": "databricks",
                    "datafusion.sql_parser.enable_ident_normalization": "false",
                    "datafusion.execution.target_partitions": "1",
                    "datafusion.execution.batch_size": str(_BATCH_ROWS),
                }
            )
        )

    def values(
        self, texts: Sequence[str], sides: Mapping[str, pa.RecordBatch], rows: int
    ) -> list[pa.Array]:
        """Return the values of each expression for all rows, which are those of every side."""
        if not texts:
            return []
        frame = self._context.from_arrow(_frame(texts, sides, rows), name="rows")
        try:
            columns = []
            for i, text in enumerate(texts):
                try:
                    columns.append(frame.parse_sql_expr(text).alias(str(i)))
                    frame.select(columns[-1]).schema()
                except Exception as e:  # DataFusion raises no class of its own
                    raise _refusal(text, e) from e
            try:
                table = frame.select(*columns).to_arrow_table()
            except Exception as e:
                raise _refusal(", ".join(texts), e) from e
        finally:
            self._context.deregister_table("rows")
        return [_plain(column) for column in table.columns]


def _frame(texts: Sequence[str], sides: Mapping[str, pa.RecordBatch], rows: int) -> pa.RecordBatch:
    named = [
        (side, name, batch.column(i))
        for side, batch in sides.items()
        for i, name in enumerate(batch.schema.names)
        if any(name.replace("`", "``") in text for text in texts)
    ]
    names = [name for _, name, _ in named]
    for side in sides:
        if side in names:
            _check_qualified(texts, side)
    columns: dict[str, pa.Array] = {_ROW: pa.array(np.zeros(rows, np.int8))}
    columns |= {name: column for _, name, column in named if names.count(name) == 1}
    for side in sides:
        of_side = {name: column for s, name, column in named if s == side}
        if of_side:
            columns[side] = pa.StructArray.from_arrays(list(of_side.values()), list(of_side))
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _check_qualified(texts: Sequence[str], side: str) -> None:
    """Raise `InvalidRequestError` if an expression has the name of a side alone.

    It would be the side's row, which has the place of the column of this name, and is never null.
    """
    alone = re.compile(rf"(?<![\w.`])`?{side}`?(?![\w`]|\s*[.(])")
    for text in texts:
        if alone.search(_LITERALS.sub("''", text)):
            raise InvalidRequestError(
                f"the expression {text[:200]!r} has the name {side} of a column, which is the name "
                f"of a side too; write {side}.{side}"
            )


def _plain(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pa.types.is_binary_view(array.type) else array


def _refusal(text: str, error: Exception) -> InvalidRequestError:
    reason = str(error).removeprefix("DataFusion error: ").splitlines()[0][:300]
    return InvalidRequestError(
        f"the expression {text[:200]!r} cannot be evaluated: {reason}; it is SQL of DataFusion, "
        "with names of columns in their exact case"
    )
