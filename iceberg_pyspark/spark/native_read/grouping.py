"""Groups files by partition values, for joins without a shuffle.

Spark gets the partition fields that all specs of a table share, each as a transform for which the
catalog has a function. Spark joins two tables bucket by bucket if their keys are the same functions
of the join columns. So a key must equal its function's value exactly; otherwise the files are not
grouped.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import arrow_type
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spark.native_read.columns import CONSTANT_TYPES
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
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
from iceberg_pyspark.spec.types import BinaryType, NestedField

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
