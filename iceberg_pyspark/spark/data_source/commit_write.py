"""The end of a write job on the driver: all files in one snapshot, or none of them."""

from __future__ import annotations

from collections.abc import Sequence

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable
from iceberg_pyspark.errors import ConcurrentChangeError, TableAlreadyExistsError
from iceberg_pyspark.spark.data_source.prepared_write import PreparedWrite
from iceberg_pyspark.spark.data_source.table_access import find_table, load_table
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.table.changes.commit_files import (
    CommitOptions,
    commit_append,
    commit_overwrite,
)
from iceberg_pyspark.table.changes.create_table import create_namespace_if_absent
from iceberg_pyspark.table.changes.written_files import WrittenFiles


def commit_write(prepared: PreparedWrite, files: Sequence[DataFile]) -> None:
    """Commit the files of all tasks; a refused commit leaves none of them."""
    io = prepared.io
    options = CommitOptions(
        branch=prepared.options.branch or MAIN,
        snapshot_properties=prepared.options.snapshot_properties,
        write_id=prepared.context.write_id,
    )
    # their names carry this job's id alone
    with WrittenFiles(io, files) as written:
        catalog, loaded = _table_to_commit_to(prepared)
        if prepared.overwrite is None:
            commit_append(catalog, loaded, io, files, options, written=written)
        else:
            mode = prepared.overwrite
            commit_overwrite(catalog, loaded, io, files, mode, options, written=written)


def _table_to_commit_to(prepared: PreparedWrite) -> tuple[Catalog, LoadedTable]:
    """The table the files were written for, created now if this job is its first."""
    catalog, identifier = find_table(prepared.table)
    if prepared.new_table is None:
        loaded = load_table(catalog, identifier, prepared.table)
        # a table of version 1 may have had none yet
        if prepared.table_uuid not in (None, loaded.metadata.table_uuid):
            raise ConcurrentChangeError(
                f"table {prepared.table.table} was dropped and created anew while this job "
                "ran; run the job again to write into the new table"
            )
        return catalog, loaded
    try:
        create_namespace_if_absent(catalog, identifier.namespace)
        return catalog, catalog.create_table(identifier, prepared.new_table)
    except TableAlreadyExistsError:
        loaded = load_table(catalog, identifier, prepared.table)
    _check_same_layout(loaded.metadata, prepared.new_table, prepared.table.table)
    return catalog, loaded


def _check_same_layout(found: TableMetadata, expected: TableMetadata, table: str) -> None:
    """Files written for a table to be created fit one created meanwhile only if its ids are the
    same.
    """
    same = (
        found.current_schema.fields == expected.current_schema.fields
        and found.default_spec.same_fields(expected.default_spec)
        and found.location == expected.location
    )
    if not same:
        raise ConcurrentChangeError(
            f"table {table} was created by another writer while this job ran, with another schema, "
            "partitioning or location; run the job again to write into that table"
        )
