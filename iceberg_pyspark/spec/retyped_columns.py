"""Columns whose values in older files have a type that cannot be read as the type of today.

Only the replacement of a table gives a column such a type: the table keeps its history, and a
column keeps the field id of the former column of the same name, whatever its new type is. Snapshots
from before are read with the columns that they had. A branch has the columns of the table, so what
is in its files from before may be unreadable.

Type promotions: to which types a column may change.

Specification, "Schema Evolution".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.manifests import ManifestFile
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import (
    DayTransform,
    MonthTransform,
    VoidTransform,
    YearTransform,
)
from iceberg_pyspark.spec.types import DateType, PrimitiveType, Type

_EQUAL_FOR_DATES_AND_TIMES = (YearTransform, MonthTransform, DayTransform, VoidTransform)
"""The transforms that have equal values for a date and for the timestamp that it becomes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetypedColumn:
    """A column with its types before and after a replacement."""

    name: str
    before: Type
    after: Type

    @property
    def has_readable_rows(self) -> bool:
        """Whether rows and bounds can be read, although partition tuples cannot: dates as
        timestamps.
        """
        return is_readable_as(self.before, self.after)


def retyped_columns(before: Schema, after: Schema) -> Mapping[int, RetypedColumn]:
    """Return the columns, by field id, whose values in partition tuples mean something else now."""
    if before is after:
        return {}
    return {
        field_id: RetypedColumn(name=after.name_by_id[field_id], before=old.type, after=f.type)
        for field_id, f in after.field_by_id.items()
        if (old := before.field_by_id.get(field_id)) is not None
        and not _has_equal_values(old.type, f.type)
    }


def _has_equal_values(old: Type, new: Type) -> bool:
    # the number of a day is not a number of microseconds
    return is_readable_as(old, new) and (old == new or not isinstance(old, DateType))


def has_retyped_columns(schemas: Iterable[Schema]) -> bool:
    """Return whether a column had a type that is not its type in the first schema that has it.

    Promotions do not count.
    """
    types_by_id: dict[int, dict[object, Type]] = {}
    for schema in schemas:
        for field_id, f in schema.field_by_id.items():
            kind = f.type if isinstance(f.type, PrimitiveType) else type(f.type)
            types_by_id.setdefault(field_id, {}).setdefault(kind, f.type)
    return any(
        not _has_equal_values(old, newest)
        for newest, *others in (types.values() for types in types_by_id.values())
        for old in others
    )


class SchemasOfManifests:
    """The schemas with which manifests were written, and the columns retyped since then."""

    def __init__(
        self, metadata: TableMetadata, schema: Schema, snapshot: Snapshot | None = None
    ) -> None:
        """Compare with `schema`.

        `snapshot` has the manifests: its schema stands for that of a snapshot that has expired.
        """
        self._metadata = metadata
        self._schema = schema
        self._snapshot = snapshot
        self._columns_by_schema_id: dict[int, Mapping[int, RetypedColumn]] = {}

    @cached_property
    def _may_be_retyped(self) -> bool:
        # the snapshots of a table may be loaded on first use, by a request of their own
        return any(retyped_columns(before, self._schema) for before in self._metadata.schemas)

    def schema_of(self, manifest: ManifestFile) -> Schema | None:
        """Return the schema with which a manifest was written, or None if it is unknown."""
        added_by = manifest.added_snapshot_id
        snapshot = None if added_by is None else self._metadata.snapshot_by_id.get(added_by)
        snapshot = snapshot or self._snapshot
        schema_id = None if snapshot is None else snapshot.schema_id
        return None if schema_id is None else self._metadata.schema_by_id.get(schema_id)

    def retyped_since(self, manifest: ManifestFile) -> Mapping[int, RetypedColumn]:
        """Return the columns, by field id, that got another type after the manifest was written."""
        if not self._may_be_retyped:
            return {}
        before = self.schema_of(manifest)
        if before is None or before.schema_id == self._schema.schema_id:
            return {}
        if before.schema_id not in self._columns_by_schema_id:
            self._columns_by_schema_id[before.schema_id] = retyped_columns(before, self._schema)
        return self._columns_by_schema_id[before.schema_id]

    def check_columns(
        self, manifest: ManifestFile, spec: PartitionSpec | None, field_ids: Collection[int]
    ) -> None:
        """Refuse a use of columns that had unreadable types when the manifest was written."""
        retyped_by_id = self.retyped_since(manifest)
        sources = frozenset(
            i
            for f in (spec.fields if spec else ())
            for i in f.source_ids
            if not isinstance(f.transform, _EQUAL_FOR_DATES_AND_TIMES)
        )
        for field_id in sorted(retyped_by_id.keys() & frozenset(field_ids)):
            if field_id in sources or not retyped_by_id[field_id].has_readable_rows:
                raise _unreadable(manifest, retyped_by_id[field_id])

    def check_partitions(self, manifest: ManifestFile, spec: PartitionSpec) -> None:
        """Refuse a use of a manifest's partition tuples that mean something else in the schema."""
        self.check_columns(manifest, spec, [i for f in spec.fields for i in f.source_ids])


def _unreadable(manifest: ManifestFile, column: RetypedColumn) -> InvalidRequestError:
    return InvalidRequestError(
        f"{manifest.manifest_path} is from before the table was replaced: column '{column.name}' "
        f"was {column.before} then and is {column.after} now, so its values there cannot be read "
        f"or compared as {column.after}; read a snapshot of that time by its id or by a tag, which "
        "have the columns of that time"
    )


_NEWEST_RULES = 3


def can_promote(old: types.Type, new: types.Type, format_version: int) -> bool:
    """Return whether the specification allows a column to change from one type to the other."""
    match old, new:
        case types.IntegerType(), types.LongType():
            return True
        case types.FloatType(), types.DoubleType():
            return True
        case types.DecimalType(), types.DecimalType():
            return new.scale == old.scale and new.precision >= old.precision
        case types.DateType(), types.TimestampType() | types.TimestampNsType():
            return format_version >= 3
        case types.UnknownType(), types.PrimitiveType():
            return format_version >= 3
        case _:
            return False


def is_readable_as(old: types.Type, new: types.Type, format_version: int = _NEWEST_RULES) -> bool:
    """Return whether rows of the old type can be read as the new type.

    Nested fields do not count: they have types of their own.
    """
    if isinstance(old, types.PrimitiveType):
        return old == new or can_promote(old, new, format_version)
    return type(old) is type(new)
