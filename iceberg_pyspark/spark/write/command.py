"""A write of Spark's carried out: the rows of an INSERT or a `writeTo` to files, one commit."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from iceberg_pyspark.arrow.write.cast_to_table_schema import check_write_schema
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.commits.apply import apply_updates
from iceberg_pyspark.commits.manifest_changes import RemoveAll
from iceberg_pyspark.commits.schema_changes import SchemaChanges
from iceberg_pyspark.commits.snapshot_changes import AppendFiles, DeleteFiles, SnapshotAction
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.predicates import AlwaysTrue
from iceberg_pyspark.spark.bridge.features import NATIVE_WRITE, WRITE_LAYOUT
from iceberg_pyspark.spark.bridge.filters import exact_predicate_of
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.bridge.protocol.values import Expression
from iceberg_pyspark.spark.bridge.protocol.writes import WriteEnvironment, WriteKind
from iceberg_pyspark.spark.native_read.location_settings import with_location_settings
from iceberg_pyspark.spark.rows.types import from_spark_schema, to_spark_schema
from iceberg_pyspark.spark.table_states import TableState
from iceberg_pyspark.spark.write.distribution import (
    WriteDistribution,
    distribute_and_sort,
    no_distribution,
    write_distribution,
)
from iceberg_pyspark.spark.write.local_rows import local_rows
from iceberg_pyspark.spark.write.native_writer import write_natively
from iceberg_pyspark.spark.write.python_writer import write_frame
from iceberg_pyspark.spark.write.settings import (
    WriteSettings,
    write_settings,
)
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.properties import ACCEPT_ANY_SCHEMA
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import UNSORTED, SortOrder
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.table.changes.commit import SYSTEM_CLOCK, MetadataStep
from iceberg_pyspark.table.changes.commit_files import (
    CommitOptions,
    OverwriteMode,
    commit_action,
    overwrite_action,
)
from iceberg_pyspark.table.changes.new_data import write_context_of
from iceberg_pyspark.table.changes.written_files import WrittenFiles
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from iceberg_pyspark.table.table_storage import table_io

_log = logging.getLogger(__name__)

_TXN_APP_ID = "txn-app-id"
_TXN_VERSION = "txn-version"


@dataclass(frozen=True, kw_only=True)
class WriteCommand:
    """What Spark analysed: the rows, what becomes of those there are, the options.

    `condition` is which rows an overwrite replaces, as the bridge describes conditions.
    """

    kind: WriteKind
    frame: DataFrame
    options: Mapping[str, str] = field(repr=False)
    condition: Expression | None
    environment: WriteEnvironment


def run_write(bridge: Bridge, catalog: Catalog, state: TableState, command: WriteCommand) -> None:
    """Write the rows and commit them as one snapshot."""
    loaded = state.loaded
    table = f"{catalog.name}.{loaded.identifier}"
    settings = write_settings(
        command.options,
        command.environment.session,
        loaded.metadata.properties,
        branch=_branch_of(state.selector, table),
    )
    _check_branch(settings, loaded.metadata, table)
    if _is_committed(settings, loaded.metadata):
        _log.info("%s has the write of %s already", table, settings.transaction)
        return
    mode = _overwrite_mode(command, settings, loaded.metadata)
    schema_change, metadata = _with_schema_of(command, settings, loaded.metadata, table)
    io = table_io(with_location_settings(loaded, command.environment.session), catalog)
    files = write_rows_of(bridge, command.frame, table, metadata, settings, io)
    with WrittenFiles(io, files) as written:
        if mode == "dynamic" and not files:
            return
        action: SnapshotAction = AppendFiles(data_files=tuple(files))
        if mode is not None:
            based_on = replace(loaded, metadata=metadata)
            action = overwrite_action(
                based_on,
                tuple(files),
                mode,
                settings.branch,
                settings.isolation,
                validates_from=settings.validates_from,
            )
        options = commit_options(command.environment, settings, metadata)
        commit_action(catalog, loaded, io, action, options, written=written, before=schema_change)


def run_truncate(catalog: Catalog, state: TableState, environment: WriteEnvironment) -> None:
    """Remove all rows of a table's branch."""
    loaded = state.loaded
    table = f"{catalog.name}.{loaded.identifier}"
    settings = write_settings(
        {},
        environment.session,
        loaded.metadata.properties,
        branch=_branch_of(state.selector, table),
    )
    _check_branch(settings, loaded.metadata, table)
    options = commit_options(environment, settings, loaded.metadata)
    io = table_io(with_location_settings(loaded, environment.session), catalog)
    commit_action(catalog, loaded, io, DeleteFiles(removal=RemoveAll()), options)


def write_rows_of(
    bridge: Bridge,
    frame: DataFrame,
    table: str,
    metadata: TableMetadata,
    settings: WriteSettings,
    io: FileIO,
) -> list[DataFile]:
    """The rows as data files, in the layout that table and settings ask for."""
    context, layout = context_and_layout(table, metadata, settings)
    check_write_schema(
        from_spark_schema(frame.schema), metadata.current_schema, table=table, case_sensitive=False
    )
    return write_laid_out(bridge, frame, context, layout, io)


def write_laid_out(
    bridge: Bridge, frame: DataFrame, context: WriteContext, layout: WriteDistribution, io: FileIO
) -> list[DataFile]:
    """The rows as data files; where columns that `layout` needs are left out, as they come."""
    present = {name.lower() for name in frame.columns}
    schema = layout.schema
    needed = {f.source_id for f in layout.ordering} | {f.source_id for f in layout.spec.fields}
    while enclosing := {schema.parent_by_id.get(i, i) for i in needed} - needed:
        needed |= enclosing
    top = {f.field_id: f.name.lower() for f in schema.fields}
    if not (bridge.has(WRITE_LAYOUT) and {top[i] for i in needed if i in top} <= present):
        # columns that are left out are null in every row
        layout = no_distribution(schema, layout.spec)
        context = replace(context, sort_order_id=UNSORTED.order_id)
    if not layout.sorts_rows and (rows := local_rows(bridge, frame)) is not None:
        return write_data_files(context, rows.to_batches(), io, partition_id=0, task_id=0)
    files = None
    if bridge.has(NATIVE_WRITE):
        files = write_natively(bridge, frame, context, layout, io)
    return (
        write_frame(distribute_and_sort(bridge, frame, layout), context, io)
        if files is None
        else files
    )


def context_and_layout(
    table: str, metadata: TableMetadata, settings: WriteSettings
) -> tuple[WriteContext, WriteDistribution]:
    """What the tasks of a write need, and how rows come to them."""
    spec = metadata.default_spec
    if settings.spec_id is not None:
        known = metadata.spec_by_id.get(settings.spec_id)
        if known is None:
            raise InvalidRequestError(
                f"table {table} has no partition spec {settings.spec_id} (output-spec-id); it has "
                f"{', '.join(str(i) for i in sorted(metadata.spec_by_id))}"
            )
        spec = known
    order = metadata.default_sort_order
    if settings.sort_order_id is not None:
        order = _sort_order(table, metadata, settings.sort_order_id)
    layout = no_distribution(metadata.current_schema, spec)
    if settings.uses_layout:
        layout = write_distribution(metadata.current_schema, spec, order, settings.properties)
    context = write_context_of(
        table,
        metadata,
        write_id=str(uuid.uuid4()),
        overrides=settings.properties,
        case_sensitive=False,
    )
    return replace(context, spec=spec, sort_order_id=layout.sort_order.order_id), layout


def _sort_order(table: str, metadata: TableMetadata, order_id: int) -> SortOrder:
    found = {o.order_id: o for o in (UNSORTED, *metadata.sort_orders)}.get(order_id)
    if found is None:
        raise InvalidRequestError(
            f"table {table} has no sort order {order_id} (output-sort-order-id); it has "
            f"{', '.join(str(o.order_id) for o in metadata.sort_orders)}"
        )
    return found


def commit_options(
    environment: WriteEnvironment, settings: WriteSettings, metadata: TableMetadata
) -> CommitOptions:
    """What the snapshot of a write says, and where it goes."""
    said = {**environment.application, **settings.snapshot_properties}
    write_id = None
    if settings.transaction is not None:
        app, version = settings.transaction
        said |= {_TXN_APP_ID: app, _TXN_VERSION: str(version)}
        # the same for both of two writes racing: the second finds the first in the table
        write_id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{metadata.table_uuid}/{app}/{version}"))
    if settings.wap_id is not None:
        said["wap.id"] = settings.wap_id
    return CommitOptions(
        branch=settings.branch,
        snapshot_properties=said,
        write_id=write_id,
        creates_branch=settings.creates_branch,
        stages_only=settings.wap_id is not None,
    )


def _branch_of(selector: SnapshotSelector, table: str) -> str | None:
    if selector != SnapshotSelector(branch=selector.branch):
        raise InvalidRequestError(
            f"writes go to a branch of {table}, not to a tag or a snapshot; name one as "
            f"{table}.branch_<name>"
        )
    return selector.branch


def _check_branch(settings: WriteSettings, metadata: TableMetadata, table: str) -> None:
    ref = metadata.refs.get(settings.branch)
    if ref is not None and ref.type == "tag":
        raise InvalidRequestError(f"'{settings.branch}' of {table} is a tag; write to a branch")
    if ref is None and settings.branch != "main" and not settings.creates_branch:
        metadata.ref_snapshot(settings.branch)


def _is_committed(settings: WriteSettings, metadata: TableMetadata) -> bool:
    """Whether the table has a snapshot of this application with this version or a later one."""
    if settings.transaction is None:
        return False
    app, version = settings.transaction
    of_app = (s for s in metadata.snapshots if s.summary.get(_TXN_APP_ID) == app)
    versions = (s.number(_TXN_VERSION) for s in of_app)
    return any(v is not None and v >= version for v in versions)


def _overwrite_mode(
    command: WriteCommand, settings: WriteSettings, metadata: TableMetadata
) -> OverwriteMode | None:
    """What the write replaces; None if it appends."""
    if command.kind == "append":
        return None
    if command.kind == "overwrite_partitions":
        return "dynamic"
    assert command.condition is not None, "the bridge describes the condition of an overwrite"
    condition = exact_predicate_of(command.condition, metadata.current_schema)
    if isinstance(condition, AlwaysTrue):
        return "dynamic" if settings.overwrites_dynamically else "static"
    return condition


def _as_the_table_has(frame: StructType, schema: Schema) -> Schema:
    """The frame's columns; those that read like one of the table, a uuid as text, are that one."""
    known = {f.name.lower(): f for f in schema.fields}
    fields = []
    for f in from_spark_schema(frame).fields:
        ours = known.get(f.name.lower())
        if ours is not None and to_spark_schema(Schema(fields=(ours,))) == to_spark_schema(
            Schema(fields=(replace(f, name=ours.name, required=ours.required, doc=ours.doc),))
        ):
            fields.append(replace(ours, required=f.required))
        else:
            fields.append(f if ours is None else replace(f, name=ours.name))
    return Schema(fields=tuple(fields))


def _with_schema_of(
    command: WriteCommand, settings: WriteSettings, metadata: TableMetadata, table: str
) -> tuple[Sequence[MetadataStep], TableMetadata]:
    """The change that gives the table the frame's new columns, and the metadata with it."""
    if not settings.merges_schema:
        return (), metadata
    if not ACCEPT_ANY_SCHEMA.of(metadata.properties):
        raise InvalidRequestError(
            f"option merge-schema: Spark lets other columns through only where table {table} says "
            f"so; set its property {ACCEPT_ANY_SCHEMA.name} to true"
        )
    changes = SchemaChanges(metadata)
    changes.union_by_name(_as_the_table_has(command.frame.schema, metadata.current_schema))
    updates = changes.changes(metadata).updates
    if not updates:
        return (), metadata
    evolved = apply_updates(
        metadata, updates, now_ms=SYSTEM_CLOCK.now_ms(), previous_metadata_location=None
    )
    return (MetadataStep(changes.changes),), evolved
