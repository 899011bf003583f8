"""Equality deletes: rows deleted by the values of some columns, without reading the table.

Specification, "Equality Delete Files". They delete from what was committed before, so rows of the
same keys appended afterwards stay: an upsert for streams that cannot read. In a partitioned table
a delete holds in its own partition of its own spec, so the columns must tell which that is, and
each spec that files are of gets deletes of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from pyspark.sql import DataFrame

from iceberg_pyspark.arrow.write.position_delete_files import delete_properties
from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.commits.conflicts import ConflictChecks
from iceberg_pyspark.commits.snapshot_changes import RowDelta
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge.calls import ChangedColumn, ChangedRows, ChangedWhen
from iceberg_pyspark.spark.bridge.values import Sql, Value
from iceberg_pyspark.spark.native_read.location_settings import (
    location_settings,
    with_location_settings,
)
from iceberg_pyspark.spark.row_level.run import Request, settings_of
from iceberg_pyspark.spark.row_level.store_assignment import Rows, ToStore, stored_values
from iceberg_pyspark.spark.rows.types import to_spark_schema
from iceberg_pyspark.spark.write.command import context_and_layout
from iceberg_pyspark.spark.write.distribution import distribute_and_sort, write_distribution
from iceberg_pyspark.spark.write.python_writer import write_frame
from iceberg_pyspark.spark.write.settings import WriteSettings
from iceberg_pyspark.spec.manifests import DataFile, FileContent, ManifestContent
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot
from iceberg_pyspark.spec.sorting import UNSORTED
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import VoidTransform
from iceberg_pyspark.spec.types import NestedField, PrimitiveType
from iceberg_pyspark.sql_text.names import quoted
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.table.changes.commit_files import commit_action
from iceberg_pyspark.table.changes.new_data import delete_format
from iceberg_pyspark.table.changes.written_files import WrittenFiles
from iceberg_pyspark.table.table_storage import table_io


def write_equality_deletes(
    request: Request, frame: DataFrame, columns: Sequence[str]
) -> LoadedTable:
    """Delete the rows whose columns equal those of a row of the frame, nulls equal to nulls."""
    loaded = request.load()
    metadata, table = loaded.metadata, str(request.identifier)
    settings, options = settings_of(request, loaded)
    snapshot = _snapshot(metadata, settings)
    session = location_settings(request.session.spark)
    io = table_io(with_location_settings(loaded, session), request.catalog)
    specs = _specs_to_delete_from(metadata, snapshot, settings, io)
    keys = _keys(metadata, columns, specs, table)
    schema = Schema(fields=keys)
    bridge = request.session.bridge
    to_store = [
        ToStore(path=(f.name,), value=Sql(quoted(f.name)), type=f.dataType)
        for f in to_spark_schema(schema).fields
    ]
    values = stored_values(bridge, Rows(frame=frame, target=frame), to_store, table)
    rows = bridge.row_changes.changed_rows(
        frame, frame, None, _selected(to_store, values)
    ).distinct()
    files: list[DataFile] = []
    with WrittenFiles(io) as written:
        with ExitStack() as after:
            if len(specs) > 1:
                after.callback(rows.persist().unpersist)
            for spec in specs:
                context, _ = context_and_layout(
                    table, metadata, replace(settings, spec_id=spec.spec_id, sort_order_id=None)
                )
                context = replace(
                    context,
                    schema=schema,
                    sort_order_id=UNSORTED.order_id,
                    file_format=delete_format(context.properties),
                    properties=delete_properties(context.properties),
                )
                layout = write_distribution(schema, spec, UNSORTED, settings.properties)
                new = write_frame(distribute_and_sort(bridge, rows, layout), context, io)
                written.add(new)
                files += new
        if not files:
            return loaded
        ids = tuple(sorted(f.field_id for f in keys))
        deletes = tuple(
            replace(f, content=FileContent.EQUALITY_DELETES, equality_ids=ids, sort_order_id=None)
            for f in files
        )
        base = None if snapshot is None else snapshot.snapshot_id
        checks = ConflictChecks(base_snapshot_id=base)
        action = RowDelta(delete_files=deletes, checks=checks)
        return commit_action(request.catalog, loaded, io, action, options, written=written)


def _selected(to_store: Sequence[ToStore], values: Sequence[Value]) -> ChangedRows:
    """Of every row the values, each by the name of its column."""
    return ChangedRows(
        changes=(ChangedWhen(where="any", condition=None, side=None),),
        columns=tuple(
            ChangedColumn(name=one.path[0], type=one.type.json(), cases=(value,))
            for one, value in zip(to_store, values, strict=True)
        ),
    )


def _snapshot(metadata: TableMetadata, settings: WriteSettings) -> Snapshot | None:
    """What rows there are to delete from."""
    branch = settings.branch
    if branch == MAIN or (settings.creates_branch and branch not in metadata.refs):
        return metadata.current_snapshot
    return metadata.ref_snapshot(branch)


def _specs_to_delete_from(
    metadata: TableMetadata, snapshot: Snapshot | None, settings: WriteSettings, io: FileIO
) -> tuple[PartitionSpec, ...]:
    """A delete holds for files of its own spec; one of an unpartitioned spec for all there are."""
    default = metadata.default_spec_id if settings.spec_id is None else settings.spec_id
    live = {
        m.partition_spec_id
        for m in ([] if snapshot is None else read_snapshot_manifests(io, snapshot))
        if m.content is ManifestContent.DATA and m.has_live_files
    }
    specs = tuple(metadata.spec_by_id[i] for i in sorted(live or {default}))
    unpartitioned = [s for s in specs if s.is_unpartitioned]
    return (unpartitioned[0],) if unpartitioned else specs


def _keys(
    metadata: TableMetadata, columns: Sequence[str], specs: Sequence[PartitionSpec], table: str
) -> tuple[NestedField, ...]:
    if metadata.format_version < 2:
        raise InvalidRequestError(
            f"table {table} is of version 1, which has no delete files: upgrade the table"
        )
    found = {f.name: f for f in metadata.current_schema.fields}
    unknown = [
        c for c in columns if not isinstance(found[c].type if c in found else None, PrimitiveType)
    ]
    if unknown or not columns:
        raise InvalidRequestError(
            f"equality deletes of table {table} need one or more columns of a simple type; "
            f"{', '.join(unknown) or 'none'} given"
        )
    ids = {found[c].field_id for c in columns}
    names = metadata.current_schema.name_by_id
    needed = (
        i
        for spec in specs
        for f in spec.fields
        if not isinstance(f.transform, VoidTransform)
        for i in f.source_ids
    )
    missing = [names.get(i, str(i)) for i in dict.fromkeys(needed) if i not in ids]
    if missing:
        raise InvalidRequestError(
            f"files of table {table} are partitioned by {', '.join(missing)}, and an equality "
            "delete holds in its own partition: name these columns too"
        )
    return tuple(found[c] for c in dict.fromkeys(columns))
