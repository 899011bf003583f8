"""Finds single columns, also nested ones, by field id, for predicates and equality deletes.

A column below a struct is null where the struct is null.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.file_fields import FileFields
from iceberg_pyspark.arrow.read.file_projection import ConstantField, FileProjection, Match
from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec.schema import Schema, prune_fields
from iceberg_pyspark.spec.types import NestedField, StructType


class ColumnsById:
    """The columns of one file by field id, typed by the first schema in `schemas` with the id.

    Columns that exist only in older schemas take the type of the newest of them: types only widen.
    """

    def __init__(
        self,
        field_ids: Iterable[int],
        schemas: Sequence[Schema],
        file_fields: FileFields,
        *,
        partition_values: Mapping[int, Any],
        location: str,
    ) -> None:
        self.field_ids = tuple(dict.fromkeys(field_ids))
        self._projection = FileProjection(
            [_only(i, schemas, location) for i in self.field_ids],
            file_fields,
            partition_values=partition_values,
            location=location,
        )
        self.leaves = self._projection.leaves
        self.exact_leaves = self._projection.exact_leaves

    def missing_ids(self) -> list[int]:
        """Return the ids of columns that the file does not hold."""
        return [
            i
            for i, match in zip(self.field_ids, self._projection.matches, strict=True)
            if _is_missing(match)
        ]

    def compile(
        self, selected_ids: Collection[int]
    ) -> Callable[[pa.RecordBatch], dict[int, pa.Array]]:
        """Return a function from a batch of the selected leaves to the columns by field id."""
        convert = self._projection.compile(selected_ids)
        return lambda batch: {
            i: _innermost(array)
            for i, array in zip(self.field_ids, convert(batch.columns, batch.num_rows), strict=True)
        }


def _only(field_id: int, schemas: Sequence[Schema], location: str) -> NestedField:
    """Return the top-level field around the id, with no other children and nothing required."""
    older = sorted(schemas[1:], key=lambda s: s.schema_id, reverse=True)
    for schema in (*schemas[:1], *older):
        if field_id in schema.field_by_id:
            top = field_id
            while (parent := schema.parent_by_id.get(top)) is not None:
                top = parent
            column = StructType((schema.field_by_id[top],))
            return _optional(prune_fields(column, {field_id}).fields[0])
    raise InvalidMetadataError(f"{location}: no schema of the table has field id {field_id}")


def _optional(field: NestedField) -> NestedField:
    if not isinstance(field.type, StructType):
        return replace(field, required=False)
    return replace(
        field, required=False, type=StructType(tuple(_optional(f) for f in field.type.fields))
    )


def _is_missing(match: Match) -> bool:
    if isinstance(match, ConstantField):
        return True
    return any(_is_missing(child) for child in match.children)


def _innermost(array: pa.Array) -> pa.Array:
    # a struct that was selected by its own id has no fields left, and a variant has two
    while pa.types.is_struct(array.type) and array.type.num_fields == 1:
        array = pc.struct_field(array, 0)
    return array
