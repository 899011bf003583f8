"""Changes a table's partitioning: add, remove and rename partition fields.

Specification, "Partition Evolution": version 1 replaces a removed field by `void` and keeps its id,
later versions drop the field; field ids are used again only for the same source and transform.
Existing files keep the spec they were written with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from iceberg_pyspark.changes.changes import (
    LAST_ADDED,
    AddPartitionSpec,
    AssertDefaultSpecId,
    AssertLastAssignedPartitionId,
    Changes,
    SetDefaultSpec,
    same_table,
)
from iceberg_pyspark.changes.compatibility import check_spec
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    GivenTransform,
    IdentityTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    parse_transform,
)

Self = TypeVar("Self", bound="SpecChanges")


def _field_name(source: str, transform: Transform) -> str:
    match transform:
        case IdentityTransform():
            return source
        case BucketTransform(num_buckets=n):
            return f"{source}_bucket_{n}"
        case TruncateTransform(width=width):
            return f"{source}_trunc_{width}"
        case VoidTransform():
            return f"{source}_null"
        case _:
            return f"{source}_{transform}"


def _transform(transform: GivenTransform) -> Transform:
    result = parse_transform(transform) if isinstance(transform, str) else transform
    if isinstance(result, UnknownTransform):
        raise InvalidRequestError(f"unknown partition transform '{result}'")
    return result


@checked_methods
class SpecChanges:
    """Changes of the default spec of `metadata`; each method refuses an invalid change."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata
        self._fields = list(metadata.default_spec.fields)
        self._removed_fields: list[PartitionField] = []
        self._last_id = metadata.last_partition_id

    @property
    def spec(self) -> PartitionSpec:
        """The spec with the changes made so far."""
        return replace(self._metadata.default_spec, fields=tuple(self._fields))

    def add_field(
        self: Self, source: str, transform: GivenTransform = "identity", name: str | None = None
    ) -> Self:
        """Add a partition field for a transform of a column.

        A field that was removed by these changes is restored, and renamed if `name` is given.
        """
        new_transform = _transform(transform)
        source_ids = (self._metadata.current_schema.find(source).field_id,)
        back = next(
            (
                f
                for f in self._removed_fields
                if f.source_ids == source_ids and f.transform == new_transform
            ),
            None,
        )
        if back is not None:
            self._restore(back)
            return self if name is None else self.rename_field(back.name, name)
        field = self._field_for(source, source_ids, new_transform, name)
        self._give_way(field.name)
        self._fields.append(field)
        check_spec(self.spec, self._metadata.current_schema, self._metadata.format_version)
        return self

    def remove_field(self: Self, name: str) -> Self:
        """Remove a partition field by its name."""
        field = self._find(name)
        self._removed_fields.append(field)
        at = self._fields.index(field)
        if self._metadata.format_version == 1:
            self._fields[at] = replace(field, transform=VoidTransform())
        else:
            del self._fields[at]
        return self

    def remove_source(self: Self, source: str, transform: GivenTransform) -> Self:
        """Remove the partition field with this transform of a column."""
        source_ids = (self._metadata.current_schema.find(source).field_id,)
        source_transform = _transform(transform)
        for f in self._fields:
            if f.source_ids == source_ids and f.transform == source_transform:
                return self.remove_field(f.name)
        raise InvalidRequestError(
            f"the table is not partitioned by {source_transform} of '{source}'"
        )

    def rename_field(self: Self, name: str, new_name: str) -> Self:
        """Rename a partition field."""
        field = self._find(name)
        if new_name != name:
            self._give_way(new_name)
        self._fields[self._fields.index(field)] = replace(field, name=new_name)
        check_spec(self.spec, self._metadata.current_schema, self._metadata.format_version)
        return self

    def changes(self, metadata: TableMetadata) -> Changes:
        """Return the updates and requirements, based on the metadata given to the constructor."""
        base = self._metadata
        spec = self.spec
        if spec.same_fields(base.default_spec):
            return Changes()
        check_spec(spec, metadata.current_schema, metadata.format_version)
        return Changes(
            updates=(AddPartitionSpec(spec), SetDefaultSpec(LAST_ADDED)),
            requirements=(
                *same_table(base.table_uuid),
                AssertDefaultSpecId(base.default_spec_id),
                AssertLastAssignedPartitionId(base.last_partition_id),
            ),
        )

    def _find(self, name: str) -> PartitionField:
        for f in self._fields:
            if f.name == name and not isinstance(f.transform, VoidTransform):
                return f
        names = ", ".join(f.name for f in self._fields) or "none"
        raise InvalidRequestError(f"no partition field '{name}'; the table has: {names}")

    def _restore(self, field: PartitionField) -> None:
        """Put a field that these changes removed back in its place."""
        self._removed_fields.remove(field)
        for i, f in enumerate(self._fields):
            if f.field_id == field.field_id:
                self._fields[i] = field
                return
        original = self._metadata.default_spec.fields.index(field)
        self._fields.insert(min(original, len(self._fields)), field)

    def _field_for(
        self, source: str, source_ids: tuple[int, ...], transform: Transform, name: str | None
    ) -> PartitionField:
        """Return the equal field of an earlier spec, with its id and name, or else a new field."""
        if self._metadata.format_version > 1:
            for spec in self._metadata.partition_specs:
                for f in spec.fields:
                    if (
                        f.source_ids == source_ids
                        and f.transform == transform
                        and name in (None, f.name)
                    ):
                        return f
        self._last_id += 1
        return PartitionField(
            source_ids=source_ids,
            field_id=self._last_id,
            name=name or _field_name(source, transform),
            transform=transform,
        )

    def _give_way(self, name: str) -> None:
        """Free the name `name` by renaming a void field; refuse a name that another field has."""
        for i, f in enumerate(self._fields):
            if f.name != name:
                continue
            if not isinstance(f.transform, VoidTransform):
                raise InvalidRequestError(
                    f"partition field '{name}' already exists; choose another name"
                )
            self._fields[i] = replace(f, name=f"{f.name}_{f.field_id}")
