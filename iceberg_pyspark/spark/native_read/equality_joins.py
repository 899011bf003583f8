"""Equality deletes as Spark's own anti-joins with the deleted keys, which are broadcast.

Specification, "Equality Delete Files" and "Scan Planning". The planner has already decided which
delete file applies to which data file. A delete file that applies to one partition is compared
within that partition; a delete file that applies to several partitions is global. Either way it
deletes only rows older than itself. Of equal keys only the youngest delete is kept. Null equals
null (docs/conformance.md 28); that comparison prevents a fast join, so it is used only if the keys
contain a null.

Types that Spark may compare differently from the specification have no plan here and are read
portably.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from iceberg_pyspark.arrow.read.equality_deletes import read_equality_keys
from iceberg_pyspark.planning.scan_tasks import DeleteFileRef, ScanTask
from iceberg_pyspark.spark.bridge.type_agreement import COMPARED_TYPES
from iceberg_pyspark.spark.native_read.columns import further_columns
from iceberg_pyspark.spark.rows.spark_types import to_spark_schema
from iceberg_pyspark.spec.manifests import FileContent
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import BinaryType
from iceberg_pyspark.table.reading.table_scan import TableScan

PARTITION_ORDINAL = "__ice_partition_ordinal"
DATA_SEQUENCE_NUMBER = "__ice_data_sequence_number"
MAX_KEY_BYTES = 64 * 1024 * 1024
"""Above this size, keys are not broadcast and their files are read portably."""

_COMPARED_TYPES = (*COMPARED_TYPES, BinaryType)
"""Bytes are included: only their order differs in Spark, and here only equality matters."""

_DELETED_PARTITION = "__ice_deleted_scope"
_DELETED_SEQUENCE_NUMBER = "__ice_deleted_age"


@dataclass(frozen=True, kw_only=True)
class DeletedKeys:
    """The keys of all deletes that compare the same columns, either partition by partition or
    globally.

    `keys` has a column `__ice_deleted_<field id>` for each compared column, the sequence number of
    the youngest delete, and the partition's ordinal if the deletes are scoped.
    `is_newer_than_all_rows` means that each delete is newer than all rows.
    """

    keys: pa.Table
    schema: Schema
    scoped: bool
    is_newer_than_all_rows: bool


@dataclass(kw_only=True)
class PartitionOrdinals:
    """A numbering of the partitions of all specs."""

    ordinals: dict[tuple[int, str], int] = field(default_factory=dict)

    def of(self, spec_id: int, partition: tuple[Any, ...]) -> int:
        """Return the number of a partition."""
        # Values are compared by their text: so 0.0 differs from -0.0, and NaN equals NaN.
        key = (spec_id, repr(partition))
        return self.ordinals.setdefault(key, len(self.ordinals))


def equality_deletes(task: ScanTask) -> list[DeleteFileRef]:
    """Return the equality deletes of a task."""
    return [d for d in task.deletes if d.content is FileContent.EQUALITY_DELETES]


def key_ids(tasks: Sequence[ScanTask]) -> tuple[int, ...]:
    """Return the field ids that the tasks' equality deletes compare."""
    return tuple(sorted({i for t in tasks for d in equality_deletes(t) for i in d.equality_ids}))


def read_deleted_keys(
    scan: TableScan, tasks: Sequence[ScanTask], scopes: PartitionOrdinals
) -> list[DeletedKeys] | None:
    """Return the keys of the tasks' equality deletes, or None if the plan cannot include them."""
    fields = further_columns(scan, key_ids(tasks))
    if fields is None or not all(isinstance(f.type, _COMPARED_TYPES) for f in fields.values()):
        return None
    refs: dict[str, DeleteFileRef] = {}
    scopes_of: dict[str, set[int]] = {}
    for task in tasks:
        for ref in equality_deletes(task):
            refs[ref.file_path] = ref
            scopes_of.setdefault(ref.file_path, set()).add(scopes.of(task.spec_id, task.partition))
    if sum(r.file_size_in_bytes for r in refs.values()) > MAX_KEY_BYTES:
        return None
    youngest_rows = max(t.data_sequence_number for t in tasks)
    groups: dict[tuple[tuple[int, ...], bool], list[tuple[DeleteFileRef, int]]] = {}
    for path, ref in refs.items():
        ids = tuple(sorted(set(ref.equality_ids)))
        (first, *others) = scopes_of[path]
        # A delete file planned for a single partition cannot match rows of another partition:
        # either it belongs to that partition, or the bounds of its keys exclude the other
        # partitions.
        groups.setdefault((ids, not others), []).append((ref, first))
    deleted_keys = []
    size = 0
    for (ids, scoped), members in groups.items():
        keys = _keys_of(scan, ids, members, scoped=scoped)
        if keys is None:
            continue
        size += keys.nbytes
        if size > MAX_KEY_BYTES:
            return None
        deleted_keys.append(
            DeletedKeys(
                keys=keys,
                schema=Schema(fields=tuple(fields[i] for i in ids)),
                scoped=scoped and len(scopes.ordinals) > 1,
                is_newer_than_all_rows=all(
                    youngest_rows < ref.data_sequence_number for ref, _ in members
                ),
            )
        )
    return deleted_keys


def _keys_of(
    scan: TableScan,
    ids: tuple[int, ...],
    members: Sequence[tuple[DeleteFileRef, int]],
    *,
    scoped: bool,
) -> pa.Table | None:
    """Return the distinct keys, each with its youngest delete's sequence number, or None."""
    names = [deleted_name(i) for i in ids]
    tables = []
    for ref, scope in members:
        columns = read_equality_keys(scan.io, scan.context, ids, [ref])
        if columns and len(columns[0]):
            rows = len(columns[0])
            sequence_numbers = pa.repeat(pa.scalar(ref.data_sequence_number, pa.int64()), rows)
            within = pa.repeat(pa.scalar(scope, pa.int32()), rows)
            tables.append(
                pa.table(
                    [*columns, within, sequence_numbers],
                    [*names, _DELETED_PARTITION, _DELETED_SEQUENCE_NUMBER],
                )
            )
    if not tables:
        return None
    by = [*names, _DELETED_PARTITION] if scoped else names
    newest = pa.concat_tables(tables).group_by(by).aggregate([(_DELETED_SEQUENCE_NUMBER, "max")])
    return newest.rename_columns(
        [
            _DELETED_SEQUENCE_NUMBER if n == f"{_DELETED_SEQUENCE_NUMBER}_max" else n
            for n in newest.column_names
        ]
    )


def deleted_name(field_id: int) -> str:
    """Return the name of the column that holds a field's deleted keys."""
    return f"__ice_deleted_{field_id}"


def kept_name(field_id: int) -> str:
    """Return the name of the data column that is compared with deleted keys."""
    return f"__ice_key_{field_id}"


def anti_join(spark: SparkSession, rows: DataFrame, keys: DeletedKeys) -> DataFrame:
    """Return the anti-join of rows with deleted keys; the rows have `kept_name` columns."""
    table = keys.keys
    key_fields = [spark_types.StructField(_DELETED_SEQUENCE_NUMBER, spark_types.LongType())]
    if _DELETED_PARTITION in table.column_names:
        key_fields.append(spark_types.StructField(_DELETED_PARTITION, spark_types.IntegerType()))
    ids = [f.field_id for f in keys.schema.fields]
    types = to_spark_schema(keys.schema)
    key_fields += [
        spark_types.StructField(deleted_name(i), f.dataType)
        for i, f in zip(ids, types.fields, strict=True)
    ]
    schema = spark_types.StructType(key_fields)
    frame = spark.createDataFrame(table.select([f.name for f in key_fields]), schema)
    condition = reduce(Column.__and__, _match_conditions(keys, ids))
    return rows.join(frame, condition, "left_anti")


def _match_conditions(keys: DeletedKeys, ids: Sequence[int]) -> Iterator[Column]:
    nulls: Mapping[str, int] = {name: keys.keys[name].null_count for name in keys.keys.column_names}
    for i in ids:
        row_value, deleted_value = sql.col(kept_name(i)), sql.col(deleted_name(i))
        yield (
            row_value.eqNullSafe(deleted_value)
            if nulls[deleted_name(i)]
            else row_value == deleted_value
        )
    if keys.scoped:
        yield sql.col(PARTITION_ORDINAL) == sql.col(_DELETED_PARTITION)
    if not keys.is_newer_than_all_rows:
        yield sql.col(DATA_SEQUENCE_NUMBER) < sql.col(_DELETED_SEQUENCE_NUMBER)
