"""The driver's part of a write job: checks it before its tasks run, and commits after them.

One snapshot gets all files, or none. The tasks' part is in `spark/data_source/writer.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql.types import StructType

from iceberg_pyspark.arrow.write.cast_to_table_schema import check_write_schema
from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable
from iceberg_pyspark.changes.new_table import NewTable
from iceberg_pyspark.errors import (
    ConcurrentChangeError,
    InvalidRequestError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.spark.data_source.pinned_table import PreparedWrite
from iceberg_pyspark.spark.data_source.read_options import parse_table_options, parse_write_options
from iceberg_pyspark.spark.data_source.table_access import find_table, load_table
from iceberg_pyspark.spark.rows.spark_types import from_spark_schema
from iceberg_pyspark.spark.write.resolved_write import resolve_settings, resolve_write
from iceberg_pyspark.spark.write.write_options import WriteOptions
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import FORMAT_VERSION
from iceberg_pyspark.sql_text.ddl import parse_partitioning
from iceberg_pyspark.sql_text.lazy_parser import as_predicate
from iceberg_pyspark.storage.credentials.server_endpoints import with_users_properties
from iceberg_pyspark.storage.encryption.encrypted_io import with_key_management
from iceberg_pyspark.table.commits.commit import CommitStep
from iceberg_pyspark.table.commits.commit_files import OverwriteMode, commit_action, write_action
from iceberg_pyspark.table.commits.create_table import (
    create_namespace_if_absent,
    new_table_properties,
    planned_table,
    takes_files_of,
)
from iceberg_pyspark.table.commits.written_files import WrittenFiles


def prepare_write(
    values: Mapping[str, str], frame: StructType, *, overwrite: bool
) -> PreparedWrite:
    """Check the options and the frame's schema, and determine everything that the tasks need."""
    table, options = parse_table_options(values), parse_write_options(values)
    catalog, identifier = find_table(table)
    new_table = None
    try:
        loaded_table = load_table(catalog, identifier, table)
        _check_layout_asked_for(options, loaded_table.metadata, table.table)
    except NoSuchTableError:
        columns = from_spark_schema(frame, all_optional=True)
        new = NewTable(
            schema=columns,
            spec=parse_partitioning(options.partitioned_by, columns),
            location=options.location,
            properties=new_table_properties(catalog.properties, options.table_properties),
        )
        planned = planned_table(catalog, identifier, new)
        new_table = planned.metadata
        config = with_users_properties(planned.config, table.storage_properties)
        loaded_table = replace(planned, config=config)
    metadata = loaded_table.metadata
    settings = resolve_settings(options, {}, metadata.properties)
    write = resolve_write(table.table, catalog, loaded_table, settings)
    schema = metadata.current_schema
    check_write_schema(from_spark_schema(frame), schema, table=table.table, case_sensitive=False)
    return PreparedWrite(
        table=table,
        options=write.options,
        context=write.context(),
        io=write.io,
        overwrite=_overwrite_mode(options, schema) if overwrite else None,
        table_uuid=metadata.table_uuid,
        new_table=new_table,
        sort_order=metadata.default_sort_order,
    )


def commit_write(
    prepared_write: PreparedWrite, files: Sequence[DataFile], *, before: Sequence[CommitStep] = ()
) -> None:
    """Commit the files of all tasks and the steps `before`; remove the files if it is refused."""
    # The files can be removed safely: their names have this job's id, so no other job has them.
    with WrittenFiles(prepared_write.io, files) as written_files:
        catalog, loaded_table = _table_to_commit_to(prepared_write)
        action = write_action(
            loaded_table, files, prepared_write.overwrite, branch=prepared_write.options.branch
        )
        of_user = prepared_write.table.storage_properties
        io = with_key_management(
            prepared_write.io, with_users_properties(loaded_table.config, of_user)
        )
        commit_action(
            catalog,
            loaded_table,
            io,
            action,
            prepared_write.options,
            written_files=written_files,
            before=before,
            schema=prepared_write.context.schema,
        )


def _table_to_commit_to(prepared_write: PreparedWrite) -> tuple[Catalog, LoadedTable]:
    """Return the table that the files were written for; create it if this job is its first."""
    catalog, identifier = find_table(prepared_write.table)
    if prepared_write.new_table is None:
        loaded_table = load_table(catalog, identifier, prepared_write.table)
        # A table of format version 1 may have had no UUID yet.
        if prepared_write.table_uuid not in (None, loaded_table.metadata.table_uuid):
            raise ConcurrentChangeError(
                f"table {prepared_write.table.table} was dropped and created again while this job "
                "ran; run the job again to write to the new table"
            )
        return catalog, loaded_table
    try:
        create_namespace_if_absent(catalog, identifier.namespace)
        return catalog, catalog.create_table(identifier, prepared_write.new_table)
    except TableAlreadyExistsError:
        loaded_table = load_table(catalog, identifier, prepared_write.table)
    if not takes_files_of(loaded_table.metadata, prepared_write.new_table):
        raise ConcurrentChangeError(
            f"table {prepared_write.table.table} was created by another writer while this job "
            "ran, with another schema, partitioning or location; run the job again to write to "
            "that table"
        )
    return catalog, loaded_table


def _overwrite_mode(options: WriteOptions, schema: Schema) -> OverwriteMode:
    if options.overwrite_filter is not None:
        # Bound now: an error in the filter must not appear only after the rows are written.
        return bind(as_predicate(options.overwrite_filter), schema, case_sensitive=False)
    return "dynamic" if options.overwrite_mode == "dynamic" else "static"


def _check_layout_asked_for(options: WriteOptions, metadata: TableMetadata, table: str) -> None:
    """Raise `InvalidRequestError` if an option for new tables differs from the existing table."""
    version = options.table_properties.get(FORMAT_VERSION)
    if version is not None and version != str(metadata.format_version):
        raise InvalidRequestError(
            f"table {table} exists and has format version {metadata.format_version}, not "
            f"{version}; leave the option format-version out"
        )
    if not options.partitioned_by:
        return
    spec = parse_partitioning(options.partitioned_by, metadata.current_schema)
    has = metadata.default_spec
    if [(f.source_ids, str(f.transform)) for f in spec.fields] != [
        (f.source_ids, str(f.transform)) for f in has.fields
    ]:
        partitioning = ", ".join(f"{f.transform} of {f.name}" for f in has.fields) or "nothing"
        raise InvalidRequestError(
            f"table {table} exists and is partitioned by {partitioning}, not by "
            f"{', '.join(options.partitioned_by)}; leave the option partitioned-by out"
        )
