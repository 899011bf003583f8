"""Replaces one of Spark's own tables by an Iceberg table with the same files.

The source gets the name of the backup, and the Iceberg table gets the name of the source. Until the
new table is committed, any failure restores the name of the source. No file is moved or deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import SparkSession

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.errors import (
    CommitStateUnknownError,
    IcebergError,
    InvalidRequestError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.bridge.py4j_names import Py4JError
from iceberg_pyspark.spark.bridge.session_tables import (
    EXTERNAL,
    SESSION_CATALOG,
    SessionTable,
    check_can_be_dropped,
    current_namespace,
    drop_table,
    folder_exists,
    remove_empty_folder,
    rename_table,
    session_table_exists,
    set_table_type,
)
from iceberg_pyspark.spark.procedures.adoption import (
    MigratedTable,
    check_folders,
    import_of,
    plan_of,
    properties_of,
    table_source,
)
from iceberg_pyspark.spark.procedures.procedure_run import ProcedureRun, Run
from iceberg_pyspark.sql_text.names import parse_levels
from iceberg_pyspark.storage.files.places import is_below
from iceberg_pyspark.table.commits.add_files import AddedFiles
from iceberg_pyspark.table.commits.create_table import create_namespace_if_absent
from iceberg_pyspark.table.maintenance import procedures
from iceberg_pyspark.table.progress import Progress

_BACKUP = "_BACKUP_"
_LOCATION = "location"
_METADATA = "metadata"
_PROVIDER = "provider"
_log = get_logger(__name__)


def migrate(run: ProcedureRun) -> MigratedTable:
    """Replace a table by an Iceberg table with the same files."""
    spark, arguments = run.spark, run.given_arguments
    parallelism = run.arguments.get("parallelism")
    if parallelism is not None and parallelism < 1:
        raise InvalidRequestError("migrate: parallelism must be larger than 0")
    identifier = _identifier(run)
    catalog = _session_catalog(run)
    _check_is_no_iceberg_table(catalog, identifier)
    source, files = table_source(spark, identifier.levels)
    backup_name = arguments.get("backup_table_name", f"{source.name}{_BACKUP}")
    _check_backup(spark, catalog, source, backup_name)
    if arguments.get("drop_backup", False):
        check_can_be_dropped(source)
    properties = dict(arguments.get("properties", {}))
    _check_provider(properties)
    location = properties.pop(_LOCATION, source.location)
    if not run.is_dry:
        create_namespace_if_absent(catalog, identifier.namespace)
    if isinstance(catalog, FilesystemCatalog):
        _check_place(catalog.default_table_location(identifier), location)
    planned_table = plan_of(
        catalog,
        identifier,
        source,
        {**properties_of(source), **properties, "migrated": "true"},
        location,
        takes_folder=location == source.location,
    )
    _check_place(planned_table.metadata.location, location)
    ignores_missing = arguments.get("ignore_missing_files", False)
    if run.is_dry:
        creation = import_of(catalog, planned_table, files, run.progress)
        if not ignores_missing:
            check_folders(spark, source, creation.partitions_without_files)
        return MigratedTable(migrated_files_count=creation.plan_creation().added_files_count)
    with _set_aside(spark, source, backup_name) as backup:
        result = _take_over(spark, catalog, planned_table, backup, ignores_missing, run.progress)
    if arguments.get("drop_backup", False):
        _forget(spark, backup)
    return MigratedTable(migrated_files_count=result.added_files_count)


def _identifier(run: ProcedureRun) -> TableIdentifier:
    """Return the table's identifier in Spark's own catalog; raise `InvalidRequestError`."""
    name = run.arguments["table"]
    levels = parse_levels(name) if isinstance(name, str) and name.strip() else ()
    if not levels:
        raise InvalidRequestError("migrate: the argument table must name a table")
    if levels[0] == SESSION_CATALOG and len(levels) > 1:
        levels = levels[1:]
    elif SESSION_CATALOG not in (run.catalog.name, run.spark.catalog.currentCatalog()):
        raise InvalidRequestError(
            f"migrate: {name} would be a table of catalog {run.spark.catalog.currentCatalog()}, "
            f"and only those of Spark's own are migrated; name it {SESSION_CATALOG}.db.table"
        )
    if len(levels) == 1:
        levels = (current_namespace(run.spark), *levels)
    if len(levels) != 2:
        raise InvalidRequestError(
            f"migrate: {name}: tables of Spark's own catalog have names such as "
            f"{SESSION_CATALOG}.db.table"
        )
    return TableIdentifier(namespace=levels[:-1], name=levels[-1])


def _session_catalog(run: ProcedureRun) -> Catalog:
    """Return the catalog that replaces Spark's own catalog and gets the new table."""
    if run.catalog.name == SESSION_CATALOG:
        return run.catalog
    check_session_catalog(run.spark)
    return run.open_catalog(SESSION_CATALOG)


def check_session_catalog(spark: SparkSession) -> None:
    """Raise `InvalidRequestError` if Spark's own catalog cannot have Iceberg tables."""
    key = f"spark.sql.catalog.{SESSION_CATALOG}"
    if spark.conf.get(key, None) != "iceberg_pyspark":
        raise InvalidRequestError(
            f"migrate: {SESSION_CATALOG} has no Iceberg tables in this session: set {key} to "
            "iceberg_pyspark, with a type and a warehouse, or make a table in another catalog with "
            "snapshot"
        )


def _check_is_no_iceberg_table(catalog: Catalog, identifier: TableIdentifier) -> None:
    if catalog.table_exists(identifier):
        raise InvalidRequestError(
            f"migrate: {SESSION_CATALOG}.{identifier} is already an Iceberg table; name a table of "
            "another format"
        )


def _check_backup(spark: SparkSession, catalog: Catalog, source: SessionTable, name: str) -> None:
    """Raise `TableAlreadyExistsError` if the backup's name is taken."""
    backup_identifier = TableIdentifier(namespace=(source.namespace,), name=name)
    if session_table_exists(spark, source.namespace, name) or catalog.table_exists(
        backup_identifier
    ):
        raise TableAlreadyExistsError(
            f"migrate: {source} cannot be renamed to {name}, since "
            f"{SESSION_CATALOG}.{backup_identifier} already exists; give another "
            "backup_table_name, or drop that one"
        )


def _check_provider(properties: dict[str, str]) -> None:
    provider = properties.pop(_PROVIDER, "iceberg")
    if provider.lower() not in ("iceberg", "iceberg-py"):
        raise InvalidRequestError(
            f"migrate: the new table is an Iceberg table, not one of the format {provider}; leave "
            f"the property {_PROVIDER} out"
        )


def _check_place(place: str, location: str) -> None:
    """Raise `UnsupportedFeatureError` if the catalog puts the table at another location."""
    if not (is_below(place, location) and is_below(location, place)):
        raise UnsupportedFeatureError(
            f"migrate: the new table would be at {location}, but catalog {SESSION_CATALOG} puts it "
            f"at {place}; give {SESSION_CATALOG} another catalog type"
        )


@contextmanager
def _set_aside(spark: SparkSession, source: SessionTable, name: str) -> Iterator[SessionTable]:
    """Rename the source while the block runs, and restore its name if the block fails.

    If it is unknown whether the block's commit took place, the source keeps the new name: otherwise
    two tables of one name could share their files.
    """
    backup = replace(source, name=name)
    is_renamed = False
    try:
        if source.type != EXTERNAL:
            # Spark would move a MANAGED table's files on the rename, and delete them with the
            # backup.
            set_table_type(spark, source, EXTERNAL)
        rename_table(spark, source, name)
        is_renamed = True
        yield backup
    except CommitStateUnknownError as e:
        raise CommitStateUnknownError(
            f"{e}; {source} is named {backup} now: if there is no Iceberg table {source}, rename "
            "it back with ALTER TABLE ... RENAME TO"
        ) from e
    except BaseException as e:
        _restore(spark, source, backup, e, is_renamed=is_renamed)
        raise


def _restore(
    spark: SparkSession,
    source: SessionTable,
    backup: SessionTable,
    cause: BaseException,
    *,
    is_renamed: bool,
) -> None:
    try:
        # A rename that raised an error may still have taken place.
        if is_renamed or not session_table_exists(spark, source.namespace, source.name):
            rename_table(spark, backup, source.name)
        if source.type != EXTERNAL:
            set_table_type(spark, source, source.type)
    except (IcebergError, Py4JError) as e:
        raise InvalidRequestError(
            f"{source} was not migrated ({cause}), and could not be restored ({e}): it "
            f"may be named {backup} now, as a table of type {EXTERNAL}; no file was moved or "
            "deleted"
        ) from cause


def _take_over(
    spark: SparkSession,
    catalog: Catalog,
    planned_table: LoadedTable,
    backup: SessionTable,
    ignores_missing: bool,
    progress: Progress,
) -> AddedFiles:
    """Create the table with the source's current files; after the rename nobody writes to the
    source.
    """
    source, files = table_source(spark, (backup.namespace, backup.name))
    if source.schema != backup.schema:
        raise InvalidRequestError(
            f"{backup}: its columns have changed in the meantime; migrate it again"
        )
    creation = import_of(catalog, planned_table, files, progress)
    if not ignores_missing:
        check_folders(spark, source, creation.partitions_without_files)
    folder = f"{planned_table.metadata.location}/{_METADATA}"
    is_there = folder_exists(spark, folder)
    try:
        return creation.create()[1]
    except CommitStateUnknownError:
        raise
    except BaseException:
        # Some readers of Hive tables refuse a table that has a folder in it.
        if not is_there:
            remove_empty_folder(spark, folder)
        raise


def _forget(spark: SparkSession, backup: SessionTable) -> None:
    """Drop the backup; the migration is done, so a failure is only logged."""
    try:
        drop_table(spark, backup)
    except IcebergError as e:
        _log.warning("migrated, but the backup %s could not be dropped: %s", backup, e)


RUNS: Mapping[str, Run] = {procedures.MIGRATE.name: migrate}
