"""Reduces the rows of the metadata table `changes`, by Spark's window functions.

A carry-over is a row that a snapshot deleted and added again unchanged: copy-on-write does this
with the remaining rows of a rewritten file. No rows are collected: Spark sorts them, and spills to
disk.

Expressions by which Spark compares values that it cannot order, or that it treats as equal.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    NullType,
    StructField,
    StructType,
)

from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spec.metadata_columns import (
    CHANGE_COLUMNS,
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    COMMIT_SNAPSHOT_ID,
)
from iceberg_pyspark.sql_text.names import quoted

_UNORDERED_TYPES = ("variant", "geometry", "geography")
"""The first words of the types whose values Spark's window functions cannot compare."""


def compared_by(fields: Sequence[StructField]) -> list[Column]:
    """Return columns that are equal exactly if all fields are equal; null equals null.

    Maps are equal whatever the order of their entries; 0.0 and -0.0 differ, and all NaN values are
    equal. Raise `UnsupportedFeatureError` for a type that Spark cannot compare.
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
    match type_:
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


def _is_plain(type_: DataType, name: str) -> bool:
    """Return whether Spark can compare values of the type directly."""
    match type_:
        case StructType():
            return all(_is_plain(f.dataType, f"{name}.{f.name}") for f in type_.fields)
        case ArrayType():
            return _is_plain(type_.elementType, name)
        case MapType() | FloatType() | DoubleType():
            return False
    if isinstance(type_, NullType) or (
        isinstance(type_, AtomicType) and not type_.simpleString().startswith(_UNORDERED_TYPES)
    ):
        return True
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
