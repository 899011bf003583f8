"""Writes to tables of a session's catalogs: INSERT, `writeTo`, TRUNCATE; each is one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from iceberg_pyspark.arrow.write.cast_to_table_schema import check_write_schema
from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.changes.manifest_changes import RemoveAll
from iceberg_pyspark.changes.schema_changes import SchemaChanges
from iceberg_pyspark.changes.snapshot_changes import DeleteFiles
from iceberg_pyspark.expressions.predicates import AlwaysTrue
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.bridge.protocol.value_messages import Expression
from iceberg_pyspark.spark.bridge.protocol.write_messages import WriteEnvironment, WriteKind
from iceberg_pyspark.spark.bridge.spark_conditions import exact_predicate_of
from iceberg_pyspark.spark.options.option_values import is_case_sensitive
from iceberg_pyspark.spark.rows.spark_types import from_spark_schema, to_spark_schema
from iceberg_pyspark.spark.table_states import TableState
from iceberg_pyspark.spark.write.context import context_and_distribution
from iceberg_pyspark.spark.write.frame_writer import write_files
from iceberg_pyspark.spark.write.resolved_write import ResolvedWrite, resolve_write
from iceberg_pyspark.spark.write.settings import write_settings
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import ACCEPT_ANY_SCHEMA
from iceberg_pyspark.table.commits.commit import MetadataStep, with_changes
from iceberg_pyspark.table.commits.commit_files import OverwriteMode, write_action
from iceberg_pyspark.table.commits.written_files import WrittenFiles

_log = get_logger(__name__)


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
