"""The grouping and the order of data files, as far as Spark agrees with Iceberg on them.

Spark gets the partition fields that all specs of a table share, each as a transform for which the
catalog has a function. Spark joins two tables bucket by bucket if their keys are the same functions
of the join columns. So a key must equal its function's value exactly; otherwise the files are not
grouped.

Each file has the id of its sort order. The leading fields that all files share are an ordering for
Spark. The ordering ends before a field with a transform, and before floats, which Spark and Iceberg
order differently: -0.0 is less than 0.0 in Iceberg.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import arrow_type
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spark.bridge.type_agreement import COMPARED_TYPES
from iceberg_pyspark.spark.native_read.columns import CONSTANT_TYPES
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.sorting import SortField
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)
from iceberg_pyspark.spec.types import BinaryType, BooleanType, NestedField

_TIMES = (YearTransform, MonthTransform, DayTransform, HourTransform)
_KEY_TYPES = (*CONSTANT_TYPES, BinaryType)
_GROUPING_TRANSFORMS = (IdentityTransform, BucketTransform, TruncateTransform, *_TIMES)


def grouping_fields(metadata: TableMetadata) -> tuple[PartitionField, ...]:
    """Return the partition fields by which Spark may group files."""
    schema = metadata.current_schema.as_struct
    fields = []
    for f in metadata.default_spec.fields:
        source = schema.field(f.source_id)
        if (
            len(f.source_ids) == 1
            and isinstance(f.transform, _GROUPING_TRANSFORMS)
            and source is not None
            and isinstance(source.type, _KEY_TYPES)
            and all(_position(spec, f) is not None for spec in metadata.partition_specs)
        ):
            fields.append(f)
    return tuple(fields)


def key_columns(metadata: TableMetadata, tasks: Sequence[ScanTask]) -> dict[str, pa.Array] | None:
    """Return the files' keys, one column for each grouping field, or None if a key is uncertain.

    The values have the types that the functions return. Old writers rounded times before 1970
    towards zero (docs/conformance.md 55), so a stored value of 0 or less may be one too high.
    """
    source_of = metadata.current_schema.field_by_id
    columns: dict[str, pa.Array] = {}
    for f in grouping_fields(metadata):
        spec_positions = ((i, _position(spec, f)) for i, spec in metadata.spec_by_id.items())
        positions = {i: position for i, position in spec_positions if position is not None}
        values = [t.partition[positions[t.spec_id]] for t in tasks]
        if isinstance(f.transform, _TIMES) and any(v is not None and v <= 0 for v in values):
            return None
        columns[f"k{len(columns)}"] = pa.array(values, _key_type(f, source_of[f.source_id]))
    return columns


def _key_type(f: PartitionField, source: NestedField) -> pa.DataType:
    match f.transform:
        case IdentityTransform() | TruncateTransform():
            return arrow_type(source.type)
        case DayTransform():
            return pa.date32()
        case _:
            return pa.int32()


def _position(spec: PartitionSpec, field: PartitionField) -> int | None:
    """Return the position of the same field of the same column in a spec, or None."""
    for i, f in enumerate(spec.fields):
        if f.source_ids == field.source_ids and f.transform == field.transform:
            return i
    return None


_ORDERED_TYPES = tuple(t for t in COMPARED_TYPES if t is not BooleanType)


def sort_fields(
    metadata: TableMetadata, order_ids: Collection[int | None]
) -> tuple[SortField, ...]:
    """Return the leading sort fields of all files; `order_ids` are the files' sort order ids."""
    if len(order_ids) != 1:
        return ()
    (order_id,) = order_ids
    order = None if order_id is None else metadata.sort_order_by_id.get(order_id)
    fields: list[SortField] = []
    columns = metadata.current_schema.as_struct
    for f in () if order is None else order.fields:
        column = columns.field(f.source_id) if len(f.source_ids) == 1 else None
        alike = column is not None and isinstance(column.type, _ORDERED_TYPES)
        if not alike or not isinstance(f.transform, IdentityTransform):
            break
        fields.append(f)
    return tuple(fields)


def sorted_by(fields: Collection[SortField], names: Mapping[int, str]) -> list[list[str]]:
    """Return name, direction and null order of each field, up to a field without a name here."""
    out = []
    for f in fields:
        if f.source_id not in names:
            break
        out.append([names[f.source_id], f.direction, f.null_order])
    return out
