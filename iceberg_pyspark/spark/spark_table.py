"""A table in a Spark session: a `Table` whose rows are a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.registry import resolve_table
from iceberg_pyspark.display import quoted
from iceberg_pyspark.errors import (
    ConcurrentChangeError,
    InvalidRequestError,
    NotAuthorizedError,
    StorageError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spark.bridge.jvm import recache_table
from iceberg_pyspark.spark.bridge.plain_sessions import has_alias
from iceberg_pyspark.spark.changelog import (
    FORMAT,
    Changelog,
    ReadChanges,
    changes_of_catalog,
    changes_of_source,
    view_name,
)
from iceberg_pyspark.spark.data_source.read_options import parse_table_options
from iceberg_pyspark.spark.data_source.table_access import find_table
from iceberg_pyspark.spark.options.option_values import is_case_sensitive
from iceberg_pyspark.spark.portable.format_table import FormatTable
from iceberg_pyspark.spark.portable.portable_rows import PortableRows
from iceberg_pyspark.spark.portable.remote_table import (
    RemoteChange,
    RemoteMaintenance,
    remote_catalog,
)
from iceberg_pyspark.spark.row_changes.batch_changes import change_of_batch
from iceberg_pyspark.spark.row_level.change_frame import as_column, parse_assignments
from iceberg_pyspark.spark.row_level.change_where import Delete, Update
from iceberg_pyspark.spark.row_level.equality_writes import write_equality_deletes
from iceberg_pyspark.spark.row_level.execution import RowLevelRequest, run
from iceberg_pyspark.spark.row_level.merge import SOURCE_ALIAS, Merge, MergeBuilder, MergeTable
from iceberg_pyspark.spark.row_level.operation import Operation
from iceberg_pyspark.spark.row_level.target import RowLevelSession, state_read
from iceberg_pyspark.spark.rows.spark_types import from_spark_schema
from iceberg_pyspark.spark.session_catalogs import catalog_and_levels, catalog_options, is_remote
from iceberg_pyspark.spark.write.write_options import SNAPSHOT_PROPERTY
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.sql_text.names import is_path, quoted_name
from iceberg_pyspark.table.commits.pending_changes import (
    ManageSnapshots,
    ReplaceSortOrder,
    UpdateLocation,
    UpdateProperties,
    UpdateSchema,
    UpdateSpec,
)
from iceberg_pyspark.table.maintenance.table_maintenance import TableMaintenance
from iceberg_pyspark.table.progress import Progress, no_progress
from iceberg_pyspark.table.row_level.keyed_merge import check_upsert_columns
from iceberg_pyspark.table.row_level.touched_rows import RowChanges
from iceberg_pyspark.table.table import Table

_NO_SECRETS = (
    "a Spark Connect server sends clients no secrets of the session's configuration: set them in "
    ".pyiceberg.yaml or in the environment of client and server, or read by "
    "spark.read.format('iceberg-py') with options catalog.<key>"
)


@checked_methods
class SparkTable(Table):
    """A table of `IcebergSession.table`, with the methods of `Table` and rows as DataFrames."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        identifier: TableIdentifier,
        *,
        name: str,
        read: Callable[[], DataFrame],
        read_changes: ReadChanges,
        session: RowLevelSession | None,
        levels: tuple[str, ...] | None = None,
        by_format: FormatTable | None = None,
    ) -> None:
        """`read` returns the DataFrame of `to_df`, `read_changes` the DataFrame of the changes.

        Without a `session`, rows are changed by the format. `levels` are those of the full name in
        Spark.
        """
        super().__init__(catalog, catalog.load_table(identifier))
        self._spark = spark
        self._name = name
        self._read = read
        self._read_changes = read_changes
        self._session = session
        self._levels = levels
        self._by_format = by_format

    @property
    def name(self) -> str:
        """The table's full name, or its path."""
        return self._name

    @property
    def case_sensitive(self) -> bool:
        """Whether names of columns in texts are case-sensitive: `spark.sql.caseSensitive`."""
        return is_case_sensitive(self._spark)

    def to_df(
        self, *, columns: Sequence[str] | None = None, filter: str | None = None
    ) -> DataFrame:
        """Return the table's current rows; where the session has a bridge, it stays at them.

        `columns` and `filter` limit what is read, where Spark tells the format nothing of a query's
        columns and filters (Spark Connect). The filter is as in the option `filter` of reads.
        """
        if self._by_format is None:
            frame = self._read()
            frame = frame if filter is None else frame.where(filter)
            return frame if columns is None else frame.select(*map(quoted, columns))
        options = {}
        if columns is not None:
            options["columns"] = ", ".join(map(quoted, columns))
        if filter is not None:
            options["filter"] = filter
        return self._by_format.read(options)

    def create_changelog_view(
        self,
        changelog_view: str | None = None,
        options: Mapping[str, Any] | None = None,
        compute_updates: bool | None = None,
        identifier_columns: Sequence[str] | None = None,
        net_changes: bool = False,
    ) -> DataFrame:
        """Create a temporary view of how rows changed between snapshots.

        Returns the rows of the view. The arguments are those of the procedure of this name. The
        rows have the columns of the table, `_change_type` (INSERT, DELETE, UPDATE_BEFORE,
        UPDATE_AFTER), `_change_ordinal` and `_commit_snapshot_id`.
        """
        self.refresh()
        name = view_name(changelog_view, self.identifier.name)
        changelog = Changelog(
            options=options or {},
            compute_updates=compute_updates,
            identifier_columns=identifier_columns,
            net_changes=net_changes,
        ).of(self.name, self.metadata, self._read_changes, case_sensitive=self.case_sensitive)
        changelog.createOrReplaceTempView(name)
        return changelog

    def delete(  # type: ignore[override]  # a condition of Spark, which may have subqueries
        self,
        condition: str | Column,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        transaction: tuple[str, int] | None = None,
    ) -> RowChanges:
        """Delete the rows that fulfil the condition.

        A `transaction` is an application and its version: if the table has this version or a later
        one of the application, nothing is done.
        """
        if self._by_format is not None:
            rows = self._rows(self._by_format, branch, snapshot_properties, transaction)
            return self._after(rows.delete(condition))
        deletion = Delete(condition=as_column(condition))
        return self._change(deletion, branch, snapshot_properties, transaction)

    def update(  # type: ignore[override]  # values and a condition of Spark
        self,
        set: Mapping[str, str | Column],  # the keyword of the statement
        condition: str | Column = "true",
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        transaction: tuple[str, int] | None = None,
    ) -> RowChanges:
        """Assign values (Spark SQL expressions or columns) in rows that fulfil the condition.

        A `transaction` is as in `delete`.
        """
        if not set:
            raise InvalidRequestError(f"update of {self.name}: name a column to set")
        if self._by_format is not None:
            rows = self._rows(self._by_format, branch, snapshot_properties, transaction)
            return self._after(rows.update(set, condition))
        update = Update(assignments=parse_assignments(set), condition=as_column(condition))
        return self._change(update, branch, snapshot_properties, transaction)

    def merge_into(
        self,
        source: DataFrame,
        condition: str | Column,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        transaction: tuple[str, int] | None = None,
    ) -> MergeBuilder:
        """Begin to merge a source; its rows match the table's rows that fulfil the condition.

        The condition names the table `t`, and the source `s` unless it has an alias:
        `table.merge_into(df, "t.id = s.id").whenMatched().updateAll().merge()`. A `transaction` is
        as in `delete`.
        """
        by_format = self._by_format

        def run_merge(merge: Merge) -> RowChanges:
            if by_format is not None:
                rows = self._rows(by_format, branch, snapshot_properties, transaction)
                return self._after(rows.merge(merge))
            return self._merge(merge, branch, snapshot_properties, transaction)

        steps = MergeTable(
            columns=lambda: tuple(f.name for f in self.schema.fields),
            case_sensitive=self.case_sensitive,
            has_alias=self._row_level().bridge.has_alias if by_format is None else has_alias,
            evolve=self._add_columns_of,
            run=run_merge,
        )
        return MergeBuilder(steps, source, condition)

    def upsert(  # type: ignore[override]  # rows of Spark
        self,
        source: DataFrame,
        keys: Sequence[str],
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        transaction: tuple[str, int] | None = None,
    ) -> RowChanges:
        """Update the rows that have the keys of a row of the source, and insert the others.

        Columns are matched by name. A null in a key equals nothing. Raises `InvalidRequestError` if
        two rows of the source have the keys of one row of the table, or the source has a column
        that the table does not have.
        """
        if not keys:
            raise InvalidRequestError("upsert: keys: name at least one column")
        check_upsert_columns(
            source.columns, self.name, self.schema, case_sensitive=self.case_sensitive
        )
        condition = " AND ".join(f"t.{quoted(k)} = s.{quoted(k)}" for k in keys)
        merge = self.merge_into(
            source.alias(SOURCE_ALIAS),
            condition,
            branch=branch,
            snapshot_properties=snapshot_properties,
            transaction=transaction,
        )
        return merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()

    def _rows(
        self,
        by_format: FormatTable,
        branch: str | None,
        snapshot_properties: Mapping[str, str] | None,
        transaction: tuple[str, int] | None,
    ) -> PortableRows:
        return PortableRows(
            table=by_format,
            loaded=self.loaded,
            branch=branch,
            snapshot_properties=snapshot_properties or {},
            transaction=transaction,
        )

    def _after(self, result: tuple[LoadedTable, RowChanges]) -> RowChanges:
        now, changes = result
        # The catalog's own knowledge, such as the store's credentials, stays.
        self._loaded_table = replace(
            self.loaded, metadata=now.metadata, metadata_location=now.metadata_location
        )
        return changes

    def _merge(
        self,
        merge: Merge,
        branch: str | None,
        snapshot_properties: Mapping[str, str] | None,
        transaction: tuple[str, int] | None,
    ) -> RowChanges:
        session = self._row_level()
        row_changes = session.bridge.row_changes
        if not row_changes.reads_iceberg(merge.source):
            return self._change(merge, branch, snapshot_properties, transaction)
        # The source is pinned: a newer snapshot of this table would mix two states.
        source = row_changes.pin(merge.source)
        states = [session.state_of(h) for h in row_changes.referenced_tables(source)]
        own = state_read(self.loaded, states)
        if own is not None:
            own = state_read(self.refresh().loaded, states)
        if own is not None and own.metadata.current_schema_id != self.metadata.current_schema_id:
            raise ConcurrentChangeError(
                f"the schema of table {self.identifier} was changed after the source of the merge "
                "had read it; create the source DataFrame again and run the merge again"
            )
        merge = replace(merge, source=source, may_run_again=False)
        return self._change(merge, branch, snapshot_properties, transaction, own)

    def write_equality_deletes(
        self,
        df: DataFrame,
        columns: Sequence[str],
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        """Delete the rows whose columns equal those of a row of `df`, without reading the table.

        Rows that are appended afterwards stay. Such deletes make reads slower: prefer `merge_into`
        if the table can be read.
        """
        request = self._request(branch, snapshot_properties)
        self._loaded_table = write_equality_deletes(request, df, columns)
        self._recache_table(branch)

    def _add_columns_of(self, source: DataFrame) -> None:
        columns = from_spark_schema(source.schema, all_optional=True)
        changes = self.refresh().update_schema()
        changes.union_by_name(columns, case_sensitive=self.case_sensitive).commit()

    def _change(
        self,
        operation: Operation,
        branch: str | None,
        snapshot_properties: Mapping[str, str] | None,
        transaction: tuple[str, int] | None,
        analysed_table: LoadedTable | None = None,
    ) -> RowChanges:
        request = self._request(branch, snapshot_properties)
        request = replace(request, analysed_table=analysed_table, transaction=transaction)
        try:
            with change_of_batch(
                self._spark, self.metadata, branch, operation.name, transaction
            ) as epoch:
                self._loaded_table, changes = run(replace(request, epoch=epoch), operation)
        finally:
            # Also after a conflict with rows that Spark has cached: the user runs it again.
            self._recache_table(branch)
        return changes

    def _recache_table(self, branch: str | None) -> None:
        if self._levels is not None and self._session is not None:
            recache_table(self._session.bridge, self._levels, branch)

    def _request(
        self, branch: str | None, snapshot_properties: Mapping[str, str] | None
    ) -> RowLevelRequest:
        return RowLevelRequest(
            session=self._row_level(),
            catalog=self.catalog,
            table=self.loaded,
            branch=branch,
            options={f"{SNAPSHOT_PROPERTY}{k}": v for k, v in (snapshot_properties or {}).items()},
        )

    def _row_level(self) -> RowLevelSession:
        if self._session is None:
            raise UnsupportedFeatureError(
                f"equality deletes of {self.name} are written in a classic Spark session only, in "
                "which iceberg_pyspark is installed natively; delete the rows with merge_into"
            )
        self._session.check()
        return self._session


class RemoteTable(SparkTable):
    """A table of a Spark Connect session: the server changes its definition, and maintains it."""

    def _remote(self, name: str, **named: Any) -> Any:
        assert self._by_format is not None, "a remote table is one of the format"
        return RemoteChange(self._by_format, name, named, self._reload)

    def _reload(self) -> None:
        self.refresh()

    def update_schema(self, *, allow_incompatible_changes: bool = False) -> UpdateSchema:
        """See `Table`."""
        named = {"allow_incompatible_changes": allow_incompatible_changes}
        return cast("UpdateSchema", self._remote("update_schema", **named))

    def update_spec(self) -> UpdateSpec:
        """See `Table`."""
        return cast("UpdateSpec", self._remote("update_spec"))

    def replace_sort_order(self) -> ReplaceSortOrder:
        """See `Table`."""
        return cast("ReplaceSortOrder", self._remote("replace_sort_order"))

    def update_properties(self) -> UpdateProperties:
        """See `Table`."""
        return cast("UpdateProperties", self._remote("update_properties"))

    def update_location(self) -> UpdateLocation:
        """See `Table`."""
        return cast("UpdateLocation", self._remote("update_location"))

    def manage_snapshots(self) -> ManageSnapshots:
        """See `Table`."""
        return cast("ManageSnapshots", self._remote("manage_snapshots"))

    def maintenance(self, *, progress: Progress = no_progress) -> TableMaintenance:
        """See `Table`; the server does the work: tasks rewrite data files, one process the rest."""
        del progress
        assert self._by_format is not None, "a remote table is one of the format"
        return cast("TableMaintenance", RemoteMaintenance(self._by_format, self._reload))


def spark_table(
    spark: SparkSession,
    name: str,
    open_catalog: Callable[[str], Catalog] | None,
    session: RowLevelSession | None,
) -> SparkTable:
    """Return the table of a name as SQL writes it, or of a path; raise `NoSuchTableError`.

    The name begins with a catalog of the session, or is in the current catalog; otherwise the table
    is found as the data source `iceberg-py` finds it. If `open_catalog` is None, Spark itself knows
    no such catalogs, and the data source reads the table.
    """
    catalog_table = None if is_path(name) else catalog_and_levels(spark, name)
    if catalog_table is None and session is None:
        return _by_format(FormatTable(spark=spark, name=name), name)
    if catalog_table is None:
        catalog, identifier = resolve_table(name)
        return SparkTable(
            spark,
            catalog,
            identifier,
            name=name,
            read=lambda: spark.read.format(FORMAT).load(name),
            read_changes=changes_of_source(spark, name, {}),
            session=session,
        )
    catalog_name, levels = catalog_table
    identifier = TableIdentifier(namespace=levels[:-1], name=levels[-1])
    full_name = f"{catalog_name}.{identifier}"
    if open_catalog is None:
        options = catalog_options(spark, catalog_name)
        settings = {"catalog": catalog_name, **{f"catalog.{k}": v for k, v in options.items()}}
        table = FormatTable(spark=spark, name=quoted_name(levels), options=settings)
        try:
            return _by_format(table, full_name)
        except (NotAuthorizedError, StorageError) as e:
            if not is_remote(spark):
                raise
            raise type(e)(f"{e}; {_NO_SECRETS}") from None
    text = quoted_name((catalog_name, *levels))
    return SparkTable(
        spark,
        open_catalog(catalog_name),
        identifier,
        name=full_name,
        read=lambda: spark.table(text),
        read_changes=changes_of_catalog(spark, (catalog_name, *levels)),
        session=session,
        levels=(catalog_name, *levels),
    )


def portable_table(
    spark: SparkSession, name: str, *, catalog: str | None = None, **options: str
) -> SparkTable:
    """Return the table of a name or path, read and changed by the format `iceberg-py` alone.

    `catalog` and `options` are those of the format: `catalog.<key>`, and settings of the store.
    Without them, a catalog of the session's configuration counts. Raises `NoSuchTableError`.
    """
    if catalog is None and not options:
        return spark_table(spark, name, None, None)
    if catalog is not None:
        own = {f"catalog.{k}": v for k, v in catalog_options(spark, catalog).items()}
        options = {"catalog": catalog, **own, **options}
    return _by_format(FormatTable(spark=spark, name=name, options=options), name)


def _by_format(table: FormatTable, name: str) -> SparkTable:
    """Return a table of the format; under Spark Connect, its catalog is the server's."""
    spark, options = table.spark, table.options
    kind: type[SparkTable] = SparkTable
    if is_remote(spark):
        kind = RemoteTable
        catalog, identifier = remote_catalog(table), TableIdentifier(namespace=(), name=name)
    else:
        catalog, identifier = find_table(parse_table_options({**options, "path": table.name}))
    return kind(
        spark,
        catalog,
        identifier,
        name=name,
        read=table.read,
        read_changes=changes_of_source(spark, table.name, options),
        session=None,
        by_format=table,
    )
