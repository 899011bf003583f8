"""Files by the values of their partitions, for joins that need no shuffle.

Spark is told the partition fields that all specs of a table share, each by a transform whose
function the catalog has. Two tables are joined bucket by bucket where their keys are the same
functions of the columns they are joined on, so a key must be the very value of its function: where
that is not certain the files are not grouped.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import types as spark_types

from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spark.native_constants import CONSTANT_TYPES, value_cell
from iceberg_pyspark.spark.types import to_spark_schema
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    YearTransform,
)

_TIMES = (YearTransform, MonthTransform, DayTransform, HourTransform)
_GROUPED = (IdentityTransform, BucketTransform, *_TIMES)


def grouping_fields(metadata: TableMetadata) -> tuple[PartitionField, ...]:
    """The partition fields that Spark may group files by."""
    schema = metadata.current_schema.as_struct
    found = []
    for f in metadata.default_spec.fields:
        source = schema.field(f.source_id)
        if (
            len(f.source_ids) == 1
            and isinstance(f.transform, _GROUPED)
            and source is not None
            and isinstance(source.type, CONSTANT_TYPES)
            and all(_position(spec, f) is not None for spec in metadata.partition_specs)
        ):
            found.append(f)
    return tuple(found)


def key_schema(metadata: TableMetadata) -> spark_types.StructType:
    """The types of a key's values: those that the functions give."""
    schema = metadata.current_schema
    made = spark_types.StructType()
    for f in grouping_fields(metadata):
        source = schema.field_by_id[f.source_id]
        (own,) = to_spark_schema(Schema(fields=(source,))).fields
        match f.transform:
            case IdentityTransform():
                type_ = own.dataType
            case DayTransform():
                type_ = spark_types.DateType()
            case _:
                type_ = spark_types.IntegerType()
        made.add(f"k{len(made)}", type_)
    return made


def key_cells(metadata: TableMetadata, tasks: Sequence[ScanTask]) -> list[list[str]] | None:
    """The key of each file as the bridge takes values; None where one is not certain.

    Old writers cut times before 1970 towards zero (conformance line 55): up to the value 0 a stored
    one may be one too high.
    """
    fields = grouping_fields(metadata)
    positions = {
        spec_id: [_position(spec, f) for f in fields]
        for spec_id, spec in metadata.spec_by_id.items()
    }
    found = []
    for task in tasks:
        values = [task.partition[i] for i in positions[task.spec_id] if i is not None]
        for f, value in zip(fields, values, strict=True):
            if isinstance(f.transform, _TIMES) and value is not None and value <= 0:
                return None
        found.append([value_cell(v) for v in values])
    return found


def _position(spec: PartitionSpec, like: PartitionField) -> int | None:
    """Where a spec has the same field of the same column."""
    for i, f in enumerate(spec.fields):
        if f.source_ids == like.source_ids and f.transform == like.transform:
            return i
    return None
