"""Assigns field ids to the columns of a data file.

The ids in the file take precedence; a file without ids is resolved by the table's name mapping
(specification, "Column Projection"). For tables without a name mapping, which the specification
leaves open, the rule is Java's: the columns of a Parquet file get the ids 1, 2, ... in their order,
the columns of other formats the ids of table columns with the same name. List elements, map keys
and map values are matched by their position in the type, so they need no id. Columns without an id
are ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import child_fields, field_id_of, is_list_like
from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec.name_mapping import (
    MappedField,
    NameMapping,
    field_by_name,
    name_mapping_of,
)
from iceberg_pyspark.spec.schema import Schema

NAME_KEY = b"name in the file"
"""The metadata key of a field's name in the file, if the reader uses another name."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FileField:
    """A column or nested field of a file.

    `may_be_null` is what the file's own schema says. `leaves` are the leaf columns below it, in
    file order. `children` are a struct's fields, a
    list's element, or a map's key and value.
    """

    field_id: int | None
    name: str
    type: pa.DataType
    may_be_null: bool
    children: tuple[FileField, ...]
    leaves: range

    def child_with_id(self, field_id: int) -> FileField | None:
        """Return the direct child with that id, or None."""
        return self._child_by_id.get(field_id)

    @cached_property
    def _child_by_id(self) -> Mapping[int | None, FileField]:
        return {c.field_id: c for c in self.children}


@dataclass(frozen=True, kw_only=True, eq=False)
class FileFields:
    """The top-level columns of a file.

    `whole_columns`: the format's reader reads whole top-level columns, not single leaves.
    `by_position`: the columns got their ids from their order, and nested fields have no ids.
    """

    columns: tuple[FileField, ...]
    whole_columns: bool = False
    by_position: bool = False

    def column_with_id(self, field_id: int) -> FileField | None:
        """Return the top-level column with that id, or None."""
        return self._column_by_id.get(field_id)

    @cached_property
    def _column_by_id(self) -> Mapping[int | None, FileField]:
        return {c.field_id: c for c in self.columns}

    def to_read(self, leaves: Collection[int]) -> frozenset[int]:
        """Return the leaves to read for the wanted `leaves`; some formats read whole columns."""
        if not self.whole_columns:
            return frozenset(leaves)
        return frozenset(leaf for c in self.read_columns(leaves) for leaf in c.leaves)

    def read_columns(self, leaves: Collection[int]) -> list[FileField]:
        """Return the columns of a batch that is read for these leaves, in order."""
        return [c for c in self.columns if any(leaf in leaves for leaf in c.leaves)]


def resolve_file_fields(
    schema: pa.Schema,
    name_mapping: NameMapping | None,
    location: str,
    *,
    whole_columns: bool = False,
) -> FileFields:
    """Return the columns of a file with their field ids; duplicate ids among siblings raise.

    Without a name mapping, the columns of a file without ids are numbered by position.
    """
    if has_field_ids(schema):
        columns = _Resolver(by_name=False, location=location).siblings(list(schema), ())
        return FileFields(columns=columns, whole_columns=whole_columns)
    mapped_fields = () if name_mapping is None else name_mapping.fields
    columns = _Resolver(by_name=True, location=location).siblings(list(schema), mapped_fields)
    if name_mapping is None:
        columns = tuple(replace(c, field_id=i) for i, c in enumerate(columns, start=1))
    return FileFields(
        columns=columns, whole_columns=whole_columns, by_position=name_mapping is None
    )


def mapping_for(
    file_format: str, name_mapping: NameMapping | None, schema: Schema
) -> NameMapping | None:
    """Return the name mapping for files without ids, or None if their columns are numbered."""
    if name_mapping is not None or file_format == "parquet":
        return name_mapping
    return name_mapping_of(schema)


def has_field_ids(schema: pa.Schema) -> bool:
    """Return whether any column of a file, at any depth, has a field id."""
    return any(field_id_of(f) is not None for f in _walk(schema))


def _walk(fields: Sequence[pa.Field]) -> Iterator[pa.Field]:
    for f in fields:
        yield f
        yield from _walk(_children(f.type))


def _children(type_: pa.DataType) -> list[pa.Field]:
    return child_fields(type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_)


def _name_of(field: pa.Field) -> str:
    """Return the name of a field in the file, which may differ from the reader's name."""
    name: bytes | None = (field.metadata or {}).get(NAME_KEY)
    return str(field.name) if name is None else name.decode()


class _Resolver:
    """A resolver of field ids that counts the leaf columns while it descends."""

    def __init__(self, by_name: bool, location: str) -> None:
        self._by_name = by_name
        self._location = location
        self._next_leaf = 0

    def siblings(
        self,
        fields: Sequence[pa.Field],
        mapped_fields: tuple[MappedField, ...],
        *,
        part_names: Sequence[str] = (),
    ) -> tuple[FileField, ...]:
        """Return the fields of one parent; `part_names` are the mapping's names of its parts."""
        file_fields: list[FileField] = []
        name_by_id: dict[int, str] = {}
        mapped_field = field_by_name(mapped_fields)
        for i, f in enumerate(fields):
            mapping = mapped_field.get(part_names[i] if part_names else _name_of(f))
            if self._by_name:
                field_id = mapping.field_id if mapping is not None else None
            else:
                field_id = field_id_of(f)
            if field_id is not None and field_id in name_by_id:
                raise InvalidMetadataError(
                    f"{self._location}: columns '{name_by_id[field_id]}' and '{_name_of(f)}' both "
                    f"have field id {field_id}"
                )
            if field_id is not None:
                name_by_id[field_id] = _name_of(f)
            file_fields.append(
                self._field(f, field_id, mapping.fields if mapping is not None else ())
            )
        return tuple(file_fields)

    def _field(
        self, field: pa.Field, field_id: int | None, mapped: tuple[MappedField, ...]
    ) -> FileField:
        first = self._next_leaf
        children_of_type = _children(field.type)
        if pa.types.is_map(field.type):
            children = self.siblings(children_of_type, mapped, part_names=("key", "value"))
        elif is_list_like(field.type):
            children = self.siblings(children_of_type, mapped, part_names=("element",))
        elif children_of_type:
            children = self.siblings(children_of_type, mapped)
        else:
            children = ()
            self._next_leaf += 1
        return FileField(
            field_id=field_id,
            name=_name_of(field),
            type=field.type,
            may_be_null=field.nullable,
            children=children,
            leaves=range(first, self._next_leaf),
        )
