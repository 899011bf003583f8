"""Writes equality deletes, which delete rows by column values without reading the table.

Specification, "Equality Delete Files". Equality deletes apply only to rows of earlier commits, so
rows with the same keys that are appended afterwards stay: an upsert for streams that cannot read
the table. In a partitioned table an equality delete applies to its own partition of its own spec,
so the key columns must determine the partition, and each spec in use gets its own delete files.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from iceberg_pyspark.arrow.write.position_delete_writer import delete_properties
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.snapshot_changes import RowDelta
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.spark.bridge.call_arguments import (
    AssignedColumns,
    AssignedValues,
    ChangeCondition,
    ChangedColumn,
    ChangedRows,
    Sql,
)
from iceberg_pyspark.spark.options.option_values import is_case_sensitive
from iceberg_pyspark.spark.row_level.execution import RowLevelRequest
from iceberg_pyspark.spark.rows.spark_types import to_spark_schema
from iceberg_pyspark.spark.write.distribution import distribute_and_sort, write_distribution
from iceberg_pyspark.spark.write.file_job import write_frame
from iceberg_pyspark.spark.write.resolved_write import ResolvedWrite
from iceberg_pyspark.spec.manifests import DataFile, FileContent, ManifestContent
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import UNSORTED
from iceberg_pyspark.spec.transforms import VoidTransform
from iceberg_pyspark.spec.types import (
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    NestedField,
    PrimitiveType,
    UnknownType,
)
from iceberg_pyspark.sql_text.names import quoted
from iceberg_pyspark.table.commits.new_data import delete_format
from iceberg_pyspark.table.commits.written_files import WrittenFiles

if TYPE_CHECKING:
    from iceberg_pyspark.spark.bridge.jvm import Bridge

# The columns of identifier fields, and so of equality deletes, exclude float and double.
_NOT_COMPARED_EXACTLY = (FloatType, DoubleType, GeometryType, GeographyType, UnknownType)


def write_equality_deletes(
    request: RowLevelRequest, frame: DataFrame, columns: Sequence[str]
) -> LoadedTable:
    """Delete the table's rows whose columns equal those of a row of the frame; null equals null."""
    loaded_table = request.load()
    write = request.resolve(loaded_table)
    specs = _specs_to_delete_from(write)
    case_sensitive = is_case_sensitive(request.session.spark)
    keys = _keys(write, columns, specs, case_sensitive=case_sensitive)
    schema = Schema(fields=keys)
    bridge = request.session.bridge
    rows = _rows(bridge, frame, write.table, schema).distinct()
    files: list[DataFile] = []
    with WrittenFiles(write.io) as written_files:
        with ExitStack() as after:
            if len(specs) > 1:
                after.callback(rows.persist().unpersist)
            for spec in specs:
                context = _context(write, schema, spec)
                distribution = write_distribution(schema, spec, UNSORTED, write.settings.properties)
                ready = distribute_and_sort(bridge, rows, distribution)
                new = write_frame(ready, context, write.io)
                written_files.add(new)
                files += new
        if not files:
            return loaded_table
        ids = tuple(sorted(f.field_id for f in keys))
        deletes = tuple(
            replace(f, content=FileContent.EQUALITY_DELETES, equality_ids=ids, sort_order_id=None)
            for f in files
        )
        base = None if write.base is None else write.base.snapshot_id
        checks = ConflictChecks(base_snapshot_id=base)
        return write.commit(RowDelta(delete_files=deletes, checks=checks), written_files)


def _context(write: ResolvedWrite, schema: Schema, spec: PartitionSpec) -> WriteContext:
    """Return the context for writing a spec's delete files, which have only the key columns."""
    context = write.context(spec=spec)
    return replace(
        context,
        # Each spec has its own job, whose tasks have the same numbers as those of other jobs.
        write_id=str(uuid.uuid4()),
        schema=schema,
        file_format=delete_format(context.properties),
        properties=delete_properties(context.properties),
    )


def _rows(bridge: Bridge, frame: DataFrame, table: str, schema: Schema) -> DataFrame:
    """Return the columns of the schema from the rows of a frame, as Spark would store them."""
    # No row of the table equals a null in a required column: it deletes nothing.
    columns = [StructField(f.name, f.dataType) for f in to_spark_schema(schema).fields]
    assigned = AssignedValues(
        paths=tuple((f.name,) for f in columns),
        values=tuple(Sql(quoted(f.name)) for f in columns),
        side=None,
    )
    [values] = bridge.row_changes.assign(
        frame,
        frame,
        None,
        AssignedColumns(table=table, schema=StructType(columns).json(), changes=(assigned,)),
    )
    description = ChangedRows(
        changes=(ChangeCondition(where="any", condition=None, side=None),),
        columns=tuple(
            ChangedColumn(name=f.name, type=f.dataType.json(), cases=(values[f.name],))
            for f in columns
        ),
    )
    return bridge.row_changes.changed_rows(frame, frame, None, description)


def _specs_to_delete_from(write: ResolvedWrite) -> tuple[PartitionSpec, ...]:
    """Return the specs to delete from: an unpartitioned spec alone, as it covers all
    files, or all.
    """
    manifests = [] if write.base is None else read_snapshot_manifests(write.io, write.base)
    with_rows = {
        m.partition_spec_id
        for m in manifests
        if m.content is ManifestContent.DATA and m.has_live_files
    }
    metadata = write.metadata
    ids = sorted(with_rows or {metadata.default_spec_id})
    specs = tuple(metadata.spec_by_id[i] for i in ids)
    unpartitioned = [s for s in specs if s.is_unpartitioned]
    return (unpartitioned[0],) if unpartitioned else specs


def _keys(
    write: ResolvedWrite,
    columns: Sequence[str],
    specs: Sequence[PartitionSpec],
    *,
    case_sensitive: bool,
) -> tuple[NestedField, ...]:
    metadata, table = write.metadata, write.table
    if metadata.format_version < 2:
        raise InvalidRequestError(
            f"table {table} is of version 1, which has no delete files: upgrade the table"
        )
    schema = metadata.current_schema
    keys = [schema.find(c, case_sensitive=case_sensitive) for c in dict.fromkeys(columns)]
    unknown = [
        schema.name_by_id[f.field_id]
        for f in keys
        if f.field_id in schema.parent_by_id
        or not isinstance(f.type, PrimitiveType)
        or isinstance(f.type, _NOT_COMPARED_EXACTLY)
    ]
    if unknown or not columns:
        raise InvalidRequestError(
            f"equality deletes of table {table} need one or more top-level columns of primitive "
            f"types, except float, double, geometry, geography and unknown, not "
            f"{', '.join(unknown) or 'none'}; name such columns"
        )
    ids = {f.field_id for f in keys}
    names = schema.name_by_id
    required_ids = (
        i
        for spec in specs
        for f in spec.fields
        if not isinstance(f.transform, VoidTransform)
        for i in f.source_ids
    )
    absent = [names.get(i, str(i)) for i in dict.fromkeys(required_ids) if i not in ids]
    if absent:
        raise InvalidRequestError(
            f"files of table {table} are partitioned by {', '.join(absent)}, and an equality "
            "delete applies to its own partition: name these columns too"
        )
    return tuple({f.field_id: f for f in keys}.values())
