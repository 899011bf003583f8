"""`create_changelog_view`: a temporary view of changes, with the JVM connector's arguments.

Reads the metadata table `changes` in a session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.types import LongType, StructField, StructType

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.changelog.net_changes import (
    net_changes,
    with_update_images,
    without_carry_overs,
)
from iceberg_pyspark.spark.options.option_values import BETWEEN_SNAPSHOTS, snapshot_bounds
from iceberg_pyspark.spec.metadata_columns import ROW_ID
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.sql_text.names import is_path, parse_levels, quoted, quoted_name
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector, snapshots_between

ReadChanges: TypeAlias = Callable[[Mapping[str, Any], bool], DataFrame]
"""A function that reads a table's changes by read options; with True, also the column `_row_id`."""

FORMAT = "iceberg-py"
"""The name of the data source."""

_CHANGES = "changes"


def changes_of_catalog(spark: SparkSession, levels: Sequence[str]) -> ReadChanges:
    """Return a reader of the changes of a table; `levels` begin with the session's catalog name."""

    def read(options: Mapping[str, Any], with_row_id: bool) -> DataFrame:
        changes = spark.read.options(**options).table(quoted_name((*levels, _CHANGES)))
        return changes.select("*", ROW_ID.name) if with_row_id else changes

    return read


def changes_of_source(spark: SparkSession, name: str, settings: Mapping[str, str]) -> ReadChanges:
    """Return a reader of the changes of a table that the data source finds by name or path."""
    place = f"{name}#{_CHANGES}" if is_path(name) else f"{name}.{_CHANGES}"

    def read(options: Mapping[str, Any], with_row_id: bool) -> DataFrame:
        reader = spark.read.format(FORMAT).options(**settings, **options)
        changes = reader.load(place)
        if not with_row_id:
            return changes
        schema = StructType([*changes.schema.fields, StructField(ROW_ID.name, LongType())])
        return reader.schema(schema).load(place)

    return read


PROCEDURE = "create_changelog_view"
_BRANCH = "branch"


@dataclass(frozen=True, kw_only=True)
class Changelog:
    """The request for a changelog.

    If `compute_updates` is None, updates are computed if identifier columns are given. Without
    identifier columns, rows are matched by the schema's identifier fields, or else by row lineage.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    """Read options between snapshots, such as `start-snapshot-id`, and `branch`."""

    compute_updates: bool | None = None
    identifier_columns: Sequence[str] | None = None
    net_changes: bool = False

    def of(
        self,
        table: str,
        metadata: TableMetadata,
        read_changes: ReadChanges,
        *,
        case_sensitive: bool | None,
    ) -> DataFrame:
        """Return the changelog rows of a table as of now; later snapshots do not show.

        Raise `InvalidRequestError` for arguments that contradict each other, and for ranges that a
        read between snapshots refuses.
        """
        with_images = self._with_images()
        snapshots = _snapshots(metadata, self.options)
        identifiers = self._identifiers(metadata, case_sensitive) if with_images else ()
        by_lineage = with_images and not identifiers
        if by_lineage:
            _check_lineage(table, metadata, snapshots)
        changes = read_changes(_bounds(snapshots), by_lineage)
        if not snapshots:
            changes = changes.limit(0)
        one_sided_operations = {"append", "delete", "replace"}
        if self.net_changes:
            changes = net_changes(changes)
        elif not {s.operation for s in snapshots} <= one_sided_operations:
            if by_lineage:
                changes = with_update_images(changes, [F.col(ROW_ID.name)], ROW_ID.name)
            elif with_images:
                names = ", ".join(map(".".join, identifiers))
                changes = with_update_images(changes, [_column(i) for i in identifiers], names)
            else:
                changes = without_carry_overs(changes)
        return changes.drop(ROW_ID.name) if by_lineage else changes

    def _with_images(self) -> bool:
        with_images = self.compute_updates
        if with_images is None:
            with_images = self.identifier_columns is not None
        if with_images and self.net_changes:
            raise InvalidRequestError(
                f"{PROCEDURE}: net_changes shows what all snapshots together changed, and updates "
                "are those of one snapshot; leave net_changes, or compute_updates and "
                "identifier_columns, out"
            )
        return with_images

    def _identifiers(
        self, metadata: TableMetadata, case_sensitive: bool | None
    ) -> tuple[tuple[str, ...], ...]:
        """Return the paths of the columns that identify rows."""
        schema = metadata.current_schema
        if not self.identifier_columns:
            ids = schema.identifier_field_ids
            return tuple(tuple(f.name for f in schema.path_to(i)) for i in ids)
        paths = []
        for name in self.identifier_columns:
            field = schema.find(name, case_sensitive=case_sensitive)
            if field.field_id in schema.parent_by_id:
                raise InvalidRequestError(
                    f"{PROCEDURE}: identifier column '{name}' of table {metadata.location} is a "
                    f"field inside a column; there are {', '.join(f.name for f in schema.fields)}"
                )
            paths.append((field.name,))
        return tuple(paths)


def view_name(requested_name: str | None, table: str) -> str:
    """Return the view's name as written in SQL; without a requested name, the default of Java."""
    if requested_name is None:
        return quoted(f"{table}_changes")
    if len(parse_levels(requested_name)) != 1:
        raise InvalidRequestError(
            f"{PROCEDURE}: changelog_view {requested_name} is a temporary view, whose name has "
            "one level; leave catalog and namespace out"
        )
    return requested_name


def _snapshots(metadata: TableMetadata, options: Mapping[str, Any]) -> Sequence[Snapshot]:
    """Return the snapshots of a range, newest first."""
    values = {name.lower(): str(value) for name, value in options.items()}
    unknown = sorted(values.keys() - BETWEEN_SNAPSHOTS - {_BRANCH})
    if unknown:
        raise InvalidRequestError(
            f"{PROCEDURE}: unknown option '{unknown[0]}'; there are "
            f"{', '.join(sorted(BETWEEN_SNAPSHOTS | {_BRANCH}))}"
        )
    bounds, branch = snapshot_bounds(values), values.get(_BRANCH)
    return snapshots_between(metadata, SnapshotSelector(branch=branch, **bounds))


def _bounds(snapshots: Sequence[Snapshot]) -> dict[str, int]:
    """Return read options for exactly these snapshots, whatever is committed later."""
    if not snapshots:
        return {}
    start_id = snapshots[-1].parent_snapshot_id
    start = {"start-timestamp": 0} if start_id is None else {"start-snapshot-id": start_id}
    return {**start, "end-snapshot-id": snapshots[0].snapshot_id}


def _check_lineage(table: str, metadata: TableMetadata, snapshots: Sequence[Snapshot]) -> None:
    """Raise `InvalidRequestError` if updates need row lineage but rows have none."""
    if metadata.format_version < 3:
        raise InvalidRequestError(
            f"{PROCEDURE}: table {table} has no identifier columns to match updated rows by; "
            "give identifier_columns, set identifier fields of the table, or upgrade it to "
            "format version 3, which has row lineage"
        )
    for snapshot in snapshots:
        parent = metadata.snapshot_by_id.get(snapshot.parent_snapshot_id or -1)
        if snapshot.operation in ("append", "replace") or parent is None:
            continue
        if snapshot.first_row_id is None or parent.first_row_id is None:
            raise InvalidRequestError(
                f"{PROCEDURE}: snapshot {snapshot.snapshot_id} changed rows of table {table} that "
                "had no row lineage yet, so updated rows cannot be matched"
                "; give identifier_columns, "
                f"or start-snapshot-id {snapshot.snapshot_id} or a later one"
            )


def _column(path: Sequence[str]) -> Column:
    column = F.col(quoted(path[0]))
    for name in path[1:]:
        column = column.getField(name)
    return column
