"""Writes to tables of a session's catalogs: INSERT, `writeTo`, TRUNCATE; each is one commit.

This process writes the few rows of a local relation, without a job. Spark's own Parquet writer
writes other rows if its files are correct for the table; otherwise Python writes them in Spark's
tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as spark_types
from pyspark.sql.types import StructType

from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.arrow.write.cast_to_table_schema import check_write_schema
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.changes.removals import RemoveAll
from iceberg_pyspark.changes.schema_changes import SchemaChanges
from iceberg_pyspark.changes.snapshot_changes import DeleteFiles
from iceberg_pyspark.errors import CommitConflictError, InvalidRequestError
from iceberg_pyspark.expressions.predicates import AlwaysTrue
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.bridge.features import NATIVE_WRITE, WRITE_LAYOUT
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.bridge.protocol.messages import Expression
from iceberg_pyspark.spark.bridge.protocol.write_messages import WriteEnvironment, WriteKind
from iceberg_pyspark.spark.bridge.spark_conditions import exact_predicate_of
from iceberg_pyspark.spark.options.option_values import is_case_sensitive
from iceberg_pyspark.spark.rows.spark_types import from_spark_schema, to_spark_schema
from iceberg_pyspark.spark.table_states import TableState
from iceberg_pyspark.spark.write.distribution import (
    WriteDistribution,
    context_and_distribution,
    distribute_and_sort,
    no_distribution,
)
from iceberg_pyspark.spark.write.file_job import write_frame
from iceberg_pyspark.spark.write.native_writer import write_natively
from iceberg_pyspark.spark.write.resolved_write import ResolvedWrite, resolve_write, write_settings
from iceberg_pyspark.spark.write.write_options import UPSERT_KEYS
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import UNSORTED
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import ACCEPT_ANY_SCHEMA
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.commit import MetadataStep, with_changes
from iceberg_pyspark.table.commits.commit_files import OverwriteMode, write_action
from iceberg_pyspark.table.commits.stream_epochs import StreamEpoch
from iceberg_pyspark.table.commits.written_files import WrittenFiles

_log = get_logger(__name__)


def write_files(
    bridge: Bridge,
    frame: DataFrame,
    context: WriteContext,
    distribution: WriteDistribution,
    io: FileIO,
) -> list[DataFile]:
    """Write the rows; without a distribution if the frame lacks columns that the distribution
    needs.
    """
    if not (bridge.has(WRITE_LAYOUT) and _has_columns_of(frame, distribution)):
        # Columns that the frame leaves out are null in every row.
        distribution = no_distribution(distribution.schema, distribution.spec)
        context = replace(context, sort_order_id=UNSORTED.order_id)
    if not distribution.sorts_rows and (rows := _local_rows(bridge, frame)) is not None:
        return write_data_files(context, rows.to_batches(), io, partition_id=0, task_id=0)
    files = None
    if bridge.has(NATIVE_WRITE):
        files = write_natively(bridge, frame, context, distribution, io)
    if files is None:
        files = write_frame(distribute_and_sort(bridge, frame, distribution), context, io)
    return files


def _has_columns_of(frame: DataFrame, distribution: WriteDistribution) -> bool:
    """Return whether the frame has the columns by which rows are distributed and sorted."""
    schema = distribution.schema
    sort_source_ids = {f.source_id for f in distribution.ordering}
    sort_source_ids |= {f.source_id for f in distribution.spec.fields}
    while enclosing := {schema.parent_by_id.get(i, i) for i in sort_source_ids} - sort_source_ids:
        sort_source_ids |= enclosing
    names = {f.name.lower() for f in schema.fields if f.field_id in sort_source_ids}
    return names <= {name.lower() for name in frame.columns}


_MAX_ROWS = 1000
# Types whose Python values equal Arrow's; not timestamps, which Python shows in a time zone.
_TYPES_EQUAL_IN_ARROW = (
    spark_types.BooleanType,
    spark_types.IntegerType,
    spark_types.LongType,
    spark_types.FloatType,
    spark_types.DoubleType,
    spark_types.DecimalType,
    spark_types.DateType,
    spark_types.StringType,
    spark_types.BinaryType,
)


def _local_rows(bridge: Bridge, frame: DataFrame) -> pa.Table | None:
    """Return the rows that the plan contains, as in `VALUES (...)`, or None if a job must compute
    them.
    """
    if not all(isinstance(f.dataType, _TYPES_EQUAL_IN_ARROW) for f in frame.schema.fields):
        return None
    if not bridge.holds_rows(frame, _MAX_ROWS):
        return None
    rows = frame.collect()
    schema = to_arrow_schema(from_spark_schema(frame.schema))
    columns = [pa.array([r[i] for r in rows], f.type) for i, f in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


@dataclass(frozen=True, kw_only=True)
class WriteCommand:
    """A write that Spark has analysed: the rows, how they replace existing rows, the options.

    `condition` describes which rows an overwrite replaces, in the bridge's form.
    """

    kind: WriteKind
    frame: DataFrame
    options: Mapping[str, str] = field(repr=False)
    condition: Expression | None
    environment: WriteEnvironment


def run_write(bridge: Bridge, catalog: Catalog, state: TableState, command: WriteCommand) -> None:
    """Write the rows and commit them as one snapshot."""
    write = _resolve(catalog, state, command.options, command.environment)
    if write.is_committed:
        _log.info("%s already has the write of %s", write.table, write.settings.options.transaction)
        return
    mode = _overwrite_mode(command, write)
    schema_change, metadata = _with_schema_of(bridge, command, write)
    files = write_rows(bridge, command.frame, write, metadata)
    with WrittenFiles(write.io, files) as written_files:
        if mode == "dynamic" and not files:
            return
        action = write_action(
            replace(state.loaded_table, metadata=metadata),
            files,
            mode,
            branch=write.settings.branch,
            isolation=write.settings.options.isolation,
            validates_from=write.settings.options.validates_from,
        )
        write.commit(action, written_files, before=schema_change)


def write_epoch(
    bridge: Bridge,
    catalog: Catalog,
    state: TableState,
    command: WriteCommand,
    epoch: StreamEpoch,
    *,
    is_stateful: bool,
) -> int:
    """Write a batch of a stream as one snapshot, and return the number of its rows; an overwrite
    replaces all rows.

    Nothing is written if the branch has the batch. The rows of a stateful batch are computed in
    any case, because Spark needs the state after them.
    """
    application = {**command.environment.application, **epoch.summary()}
    environment = msgspec.structs.replace(command.environment, application=application)
    write = _resolve(catalog, state, command.options, environment)
    branch = write.settings.branch
    if epoch.is_in(write.metadata, branch):
        _log.info("%s already has batch %s of query %s", write.table, epoch.epoch, epoch.query_id)
        if is_stateful:
            command.frame.write.format("noop").mode("overwrite").save()
        return 0
    files = write_rows(bridge, command.frame, write)
    with WrittenFiles(write.io, files) as written_files:
        action = write_action(
            state.loaded_table,
            files,
            None if command.kind == "append" else "static",
            branch=branch,
            isolation=write.settings.options.isolation,
        )
        unless_committed = MetadataStep(lambda metadata: epoch.check_absent(metadata, branch))
        try:
            write.commit(action, written_files, before=(unless_committed,))
        except CommitConflictError as e:
            newest = catalog.load_table(state.loaded_table.identifier)
            if not epoch.is_in(newest.metadata, branch):
                raise
            _log.warning("%s", e)
            return 0
    return sum(file.record_count for file in files)


def run_truncate(catalog: Catalog, state: TableState, environment: WriteEnvironment) -> None:
    """Remove all rows of a table's branch."""
    write = _resolve(catalog, state, {}, environment)
    write.commit(DeleteFiles(removal=RemoveAll()))


def write_rows(
    bridge: Bridge, frame: DataFrame, write: ResolvedWrite, metadata: TableMetadata | None = None
) -> list[DataFile]:
    """Return the rows as data files, not committed yet.

    `metadata` is the table's metadata after the commit, by default its metadata as it was loaded.
    """
    context, distribution = context_and_distribution(write, metadata)
    columns = from_spark_schema(frame.schema)
    case_sensitive = is_case_sensitive(bridge.spark)
    check_write_schema(columns, context.schema, table=write.table, case_sensitive=case_sensitive)
    return write_files(bridge, frame, context, distribution, write.io)


def _resolve(
    catalog: Catalog,
    state: TableState,
    options: Mapping[str, str],
    environment: WriteEnvironment,
) -> ResolvedWrite:
    settings = write_settings(
        options,
        environment.session,
        state.loaded_table.metadata.properties,
        branch=state.branch_to_write(),
    )
    if settings.options.upsert_keys:
        raise InvalidRequestError(
            f"option {UPSERT_KEYS} is for streams with outputMode('update'); leave it out, or "
            "use MERGE"
        )
    name_in_spark = f"{catalog.name}.{state.loaded_table.identifier}"
    return resolve_write(name_in_spark, catalog, state.loaded_table, settings, environment)


def _overwrite_mode(command: WriteCommand, write: ResolvedWrite) -> OverwriteMode | None:
    """Return the overwrite mode of the write; None for an append."""
    if command.kind == "append":
        return None
    if command.kind == "overwrite_partitions":
        return "dynamic"
    assert command.condition is not None, "the bridge describes the condition of an overwrite"
    condition = exact_predicate_of(command.condition, write.metadata.current_schema)
    if isinstance(condition, AlwaysTrue):
        return "dynamic" if write.settings.options.overwrite_mode == "dynamic" else "static"
    return condition


def _as_the_table_has(frame: StructType, schema: Schema, *, case_sensitive: bool) -> Schema:
    """Return the frame's columns; a column that reads like a table's column gets that column's
    type.

    An example is a uuid, which a frame has as a string.
    """
    by_name = {f.name: f for f in schema.fields}
    by_lower_name = {} if case_sensitive else {f.name.lower(): f for f in schema.fields}
    fields = []
    for f in from_spark_schema(frame).fields:
        column = by_name.get(f.name) or by_lower_name.get(f.name.lower())
        if column is not None and to_spark_schema(Schema(fields=(column,))) == to_spark_schema(
            Schema(fields=(replace(f, name=column.name, required=column.required, doc=column.doc),))
        ):
            fields.append(replace(column, required=f.required))
        else:
            fields.append(f if column is None else replace(f, name=column.name))
    return Schema(fields=tuple(fields))


def _with_schema_of(
    bridge: Bridge, command: WriteCommand, write: ResolvedWrite
) -> tuple[Sequence[MetadataStep], TableMetadata]:
    """Return the schema change that adds the frame's new columns, and the changed metadata.

    Without `write.spark.accept-any-schema`, Spark refuses new columns before, and casts the others.
    """
    metadata = write.metadata
    merges_schema = write.settings.options.merges_schema
    if not merges_schema or not ACCEPT_ANY_SCHEMA.of(metadata.properties):
        return (), metadata
    changes = SchemaChanges(metadata)
    case_sensitive = is_case_sensitive(bridge.spark)
    columns = _as_the_table_has(
        command.frame.schema, metadata.current_schema, case_sensitive=case_sensitive
    )
    changes.union_by_name(columns, case_sensitive=case_sensitive)
    evolution = changes.changes(metadata)
    if not evolution.updates:
        return (), metadata
    return (MetadataStep(changes.changes),), with_changes(metadata, evolution)
