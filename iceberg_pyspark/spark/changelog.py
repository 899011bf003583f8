"""`create_changelog_view`: a temporary view of changes, with the JVM connector's arguments.

The view reads the metadata table `changes`, and Spark's window functions reduce its rows. A
carry-over is a row that a snapshot deleted and added again unchanged: copy-on-write does this with
the remaining rows of a rewritten file. No rows are collected: Spark sorts them, and spills to disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    BinaryType,
    DataType,
    DoubleType,
    FloatType,
    LongType,
    MapType,
    NullType,
    StructField,
    StructType,
    VariantType,
    VariantVal,
)

from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.spark.options.option_values import BETWEEN_SNAPSHOTS, snapshot_bounds
from iceberg_pyspark.spec.metadata_columns import (
    CHANGE_COLUMNS,
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    COMMIT_SNAPSHOT_ID,
    ROW_ID,
)
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.variant_encoding import comparable_of
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


_VARIANT = "variant"
_SHAPES = ("geometry", "geography")
"""The first words of types whose values Spark's window functions cannot compare."""


def _comparable_variant(variant: VariantVal | None) -> bytes | None:
    if variant is None:
        return None
    # a worker may get bytearrays
    return comparable_of(bytes(variant.metadata), bytes(variant.value))


def compared_by(fields: Sequence[StructField]) -> list[Column]:
    """Return columns that are equal exactly if all fields are equal; null equals null.

    Maps are equal whatever the order of their entries; 0.0 and -0.0 differ, and all NaN values are
    equal. Python compares variants, as `comparable_of` says; geometries are equal if their bytes
    are. Raise `UnsupportedFeatureError` for a type that Spark cannot compare.
    """
    return [key for f in fields for key in _keys(F.col(quoted(f.name)), f.dataType, f.name)]


def _keys(column: Column, type_: DataType, name: str) -> list[Column]:
    if isinstance(type_, FloatType | DoubleType):
        # Spark treats -0.0 as 0.0 when it groups.
        is_negative_zero = F.when(column == 0, column.cast("string").startswith("-"))
        return [column, is_negative_zero]
    return [_key(column, type_, name)]


def _key(column: Column, type_: DataType, name: str) -> Column:
    if _is_plain(type_, name):
        return column
    if type_.simpleString().startswith(_SHAPES):
        return F.call_function("st_asbinary", column)
    match type_:
        case VariantType():
            return F.udf(_comparable_variant, BinaryType(), useArrow=False)(column)
        case StructType():
            keys = [
                key
                for f in type_.fields
                for key in _keys(column.getField(f.name), f.dataType, f"{name}.{f.name}")
            ]
            return F.when(column.isNotNull(), _struct(keys))
        case ArrayType():
            return F.transform(column, lambda e: _element(e, type_.elementType, name))
        case MapType():
            entries = F.transform(
                F.map_entries(column),
                lambda e: _struct(
                    [
                        _element(e.getField("key"), type_.keyType, name),
                        _element(e.getField("value"), type_.valueType, name),
                    ]
                ),
            )
            return F.array_sort(entries)
    raise AssertionError(f"{type_} is plain")


def _element(element: Column, type_: DataType, name: str) -> Column:
    keys = _keys(element, type_, name)
    return keys[0] if len(keys) == 1 else _struct(keys)


def _struct(keys: Sequence[Column]) -> Column:
    return F.struct(*(key.alias(f"_{i}") for i, key in enumerate(keys)))


def _is_plain(type_: DataType, name: str, *, in_list: bool = False) -> bool:
    """Return whether Spark can compare values of the type directly.

    Functions of the elements of a list or map cannot be Python's.
    """
    match type_:
        case StructType():
            plain = [
                _is_plain(f.dataType, f"{name}.{f.name}", in_list=in_list) for f in type_.fields
            ]
            return all(plain)
        case ArrayType():
            return _is_plain(type_.elementType, name, in_list=True)
        case MapType():
            for inner in (type_.keyType, type_.valueType):
                _is_plain(inner, name, in_list=True)
            return False
        case FloatType() | DoubleType():
            return False
        case VariantType() if not in_list:
            return False
    if isinstance(type_, NullType) or (
        isinstance(type_, AtomicType) and not type_.simpleString().startswith((_VARIANT, *_SHAPES))
    ):
        return True
    if type_.simpleString().startswith(_SHAPES):
        return False
    raise UnsupportedFeatureError(
        f"column {name} is of type {type_.simpleString()}, whose values Spark cannot compare, so "
        "copied rows cannot be told from changed rows; read the metadata table changes, which "
        "shows both"
    )


_TYPE = CHANGE_TYPE.name
_ORDINAL = CHANGE_ORDINAL.name
_CHANGE_COLUMN_NAMES = frozenset(f.name for f in CHANGE_COLUMNS)


def without_carry_overs(changes: DataFrame) -> DataFrame:
    """Return the changes without pairs of equal rows that one snapshot deleted and added again.

    Rows are equal if all columns are equal except the columns that describe the change.
    """
    in_order = Window.partitionBy(*_row_key(changes), _ORDINAL).orderBy(_TYPE)
    deletes, inserts = (
        F.count(kind).over(_whole(in_order)) for kind in (_delete_marker(), _insert_marker())
    )
    # Deletes come first, because DELETE sorts before INSERT.
    place = F.row_number().over(in_order) - F.when(F.col(_TYPE) == "INSERT", deletes).otherwise(0)
    helper = _helper(changes)
    with_pairs = changes.withColumn(helper, place <= F.least(deletes, inserts))
    return with_pairs.where(~F.col(helper)).drop(helper)


def with_update_images(
    changes: DataFrame, identifiers: Sequence[Column], identified_by: str
) -> DataFrame:
    """Return the changes without carry-overs; a row that a snapshot replaced becomes two images.

    The images are the deleted and the added row of one key. Spark raises an error if a snapshot
    deleted and added rows of a key, but not one of each; `identified_by` names the key columns in
    that error.
    """
    # So Spark shuffles the rows once: equal rows also have equal keys.
    changes = without_carry_overs(changes.repartition(*identifiers, F.col(_ORDINAL)))
    of_key = Window.partitionBy(*identifiers, _ORDINAL)
    deletes, inserts = (F.count(kind).over(of_key) for kind in (_delete_marker(), _insert_marker()))
    helper = _helper(changes)
    with_counts = changes.withColumn(
        helper, F.struct(deletes.alias("deletes"), inserts.alias("inserts"))
    )
    deletes, inserts = (F.col(helper).getField(name) for name in ("deletes", "inserts"))
    ambiguous = F.concat(
        F.lit("create_changelog_view: snapshot "),
        F.col(COMMIT_SNAPSHOT_ID.name).cast("string"),
        F.lit(
            f" deleted and added several rows with the same {identified_by}, so that updates "
            "cannot be told; give identifier_columns whose values are unique, or leave updates out"
        ),
    )
    image = (
        F.when((deletes == 0) | (inserts == 0), F.col(_TYPE))
        .when((deletes > 1) | (inserts > 1), F.raise_error(ambiguous).cast("string"))
        .when(F.col(_TYPE) == "DELETE", "UPDATE_BEFORE")
        .otherwise("UPDATE_AFTER")
    )
    return with_counts.withColumn(_TYPE, image).drop(helper)


def net_changes(changes: DataFrame) -> DataFrame:
    """Return the net changes of all snapshots together; each row occurs as often as it remains.

    A row that was added and deleted again, or deleted and added again, is left out. If several
    snapshots added equal rows, a later delete removes the newest of them.
    """
    key = _row_key(changes)
    in_order = Window.partitionBy(*key).orderBy(_ORDINAL, _TYPE)
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    sign = F.when(F.col(_TYPE) == "INSERT", 1).otherwise(-1)
    helper = _helper(changes)
    with_counts = changes.withColumn(
        helper,
        F.struct(
            F.sum(sign).over(so_far).alias("count"),
            F.sum(sign).over(_whole(in_order)).alias("total"),
            F.row_number().over(in_order).alias("place"),
        ),
    )
    count, total, place = (F.col(helper).getField(n) for n in ("count", "total", "place"))
    # A change remains if it was the last to bring the count to a number on the way to the total.
    with_counts = with_counts.where((sign * count).between(1, sign * total))
    last = helper + "_last"
    with_counts = with_counts.withColumn(last, F.max(place).over(Window.partitionBy(*key, count)))
    return with_counts.where(place == F.col(last)).drop(helper, last)


def _insert_marker() -> Column:
    """Return an expression that is not null for added rows."""
    return F.when(F.col(_TYPE) == "INSERT", 1)


def _delete_marker() -> Column:
    return F.when(F.col(_TYPE) == "DELETE", 1)


def _whole(window: WindowSpec) -> WindowSpec:
    """Return a window over the whole partition in the same order, so that one sort serves both."""
    return window.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)


def _row_key(changes: DataFrame) -> list[Column]:
    return compared_by([f for f in changes.schema.fields if f.name not in _CHANGE_COLUMN_NAMES])


def _helper(changes: DataFrame) -> str:
    """Return a column name that no column has."""
    return "_" * max(len(name) + 1 for name in changes.columns)
