"""Adds metadata columns to a batch, from the file, the row position or the manifest entry.

Specification, "Reserved Field IDs" and "Row Lineage". A file may store `_row_id` and
`_last_updated_sequence_number`; their nulls are replaced by inherited values. A file without
`first_row_id` belongs to a snapshot from before row lineage: both columns are null then, whatever
the file stores (docs/conformance.md 15).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.scalars import constant_array, scalar_of
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.planning.scan_tasks import ScanContext, ScanTask
from iceberg_pyspark.spec.metadata_columns import (
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    COMMIT_SNAPSHOT_ID,
    DELETED,
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    PARTITION_ID,
    POS,
    ROW_ID,
    SPEC_ID,
)
from iceberg_pyspark.spec.schema import MAX_USER_FIELD_ID
from iceberg_pyspark.spec.transforms import untyped_text
from iceberg_pyspark.spec.types import NestedField, StringType, StructType, Type, UnknownType

STORED_METADATA_COLUMNS = {f.field_id: f for f in (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)}
"""Metadata columns that a data file may store itself."""


def is_metadata_column(field: NestedField) -> bool:
    """Return whether a projected field is a metadata column."""
    return field.field_id > MAX_USER_FIELD_ID


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowFacts:
    """The rows of a batch: file positions, stored lineage by field id, and deletion mask."""

    positions: pa.Array
    lineage: Mapping[int, pa.Array]
    is_deleted: npt.NDArray[np.bool_] | None


class MetadataColumns:
    """The metadata columns of one task's batches."""

    def __init__(self, context: ScanContext, task: ScanTask) -> None:
        self._task = task
        self._constants: dict[int, pa.Scalar] = {
            FILE.field_id: scalar_of(FILE.type, task.file_path),
            SPEC_ID.field_id: scalar_of(SPEC_ID.type, task.spec_id),
        }
        if task.change is not None:
            self._constants |= {
                CHANGE_TYPE.field_id: scalar_of(CHANGE_TYPE.type, task.change.type),
                CHANGE_ORDINAL.field_id: scalar_of(CHANGE_ORDINAL.type, task.change.ordinal),
                COMMIT_SNAPSHOT_ID.field_id: scalar_of(
                    COMMIT_SNAPSHOT_ID.type, task.change.snapshot_id
                ),
            }
        for field in context.projection.fields:
            if field.field_id == PARTITION_ID:
                self._constants[PARTITION_ID] = _partition_scalar(field, context, task)

    def array(self, field: NestedField, facts: RowFacts) -> pa.Array:
        """Return one metadata column of the rows."""
        length = len(facts.positions)
        if field.field_id in self._constants:
            return constant_array(self._constants[field.field_id], length)
        match field.field_id:
            case POS.field_id:
                return facts.positions
            case DELETED.field_id:
                is_deleted = facts.is_deleted
                return pa.array(
                    np.zeros(length, dtype=np.bool_) if is_deleted is None else is_deleted
                )
            case ROW_ID.field_id | LAST_UPDATED_SEQUENCE_NUMBER.field_id:
                return self._lineage(field.field_id, facts)
            case _:
                raise InvalidRequestError(
                    f"column '{field.name}' has the reserved field id {field.field_id}, which is "
                    "no metadata column that can be read"
                )

    def _lineage(self, field_id: int, facts: RowFacts) -> pa.Array:
        task = self._task
        if task.first_row_id is None:
            return pa.nulls(len(facts.positions), pa.int64())
        inherited_values: pa.Array | pa.Scalar
        if field_id == ROW_ID.field_id:
            inherited_values = pc.add(facts.positions, task.first_row_id)
        else:
            inherited_values = pa.scalar(task.data_sequence_number, pa.int64())
        file_values = facts.lineage.get(field_id)
        if file_values is not None:
            return pc.coalesce(file_values, inherited_values)
        if isinstance(inherited_values, pa.Scalar):
            return constant_array(inherited_values, len(facts.positions))
        return inherited_values


def _partition_scalar(field: NestedField, context: ScanContext, task: ScanTask) -> pa.Scalar:
    """Return the task's partition tuple as a struct over all specs; missing fields are null."""
    values: dict[int, Any] = {
        f.field_id: value
        for f, value in zip(context.specs[task.spec_id].fields, task.partition, strict=True)
    }
    assert isinstance(field.type, StructType)
    return scalar_of(
        field.type,
        {f.field_id: _display_value(f.type, values.get(f.field_id)) for f in field.type.fields},
    )


def _display_value(type_: Type, value: Any) -> Any:
    """Return a partition value as the metadata column shows it, where its type may be unknown."""
    match type_:
        case UnknownType():
            return None
        case StringType():
            return None if value is None else untyped_text(value)
        case _:
            return value
