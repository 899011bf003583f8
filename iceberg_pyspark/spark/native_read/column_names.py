"""The names by which Spark's Parquet reader reads columns.

The reader finds columns by field id. But it skips row groups by column name (ignoring case), and in
a struct whose fields a file lacks it uses a field of the same name. So a name that a file may use
for another field is replaced by a name that no file has. The same is done for columns with floats,
because Parquet's bounds exclude NaN, which Spark orders above all other values, and for decimals
that had a lower precision: Spark truncates the literal of a comparison to the width of the file's
numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pyspark.sql import types as spark_types

from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import (
    DecimalType,
    DoubleType,
    FloatType,
    NestedField,
    StructType,
    Type,
    walk_fields,
    with_children,
)
from iceberg_pyspark.sql_text.names import quoted


def hidden_name(field_id: int) -> str:
    """Return the replacement name of a column whose own name may refer to another field."""
    return f"__ice_c{field_id}"


class NamesInFiles:
    """The names that the files of a table may have for its fields: those of all its schemas."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._schemas = metadata.schemas
        self._may_be_others = schemas_were_removed(metadata.schemas)
        self._ids: dict[str, set[int]] = {}
        self._ids_below: dict[tuple[int, str], set[int]] = {}
        for schema in metadata.schemas:
            for name, field_id in _names_of(schema):
                self._ids.setdefault(name.lower(), set()).add(field_id)
            for f in walk_fields(schema.as_struct):
                for parent, name, field_id in _children(f):
                    self._ids_below.setdefault((parent, name), set()).add(field_id)

    def make_pruning_unsafe(self, f: NestedField) -> bool:
        """Return whether matching rows may be skipped with row groups by a column's name."""
        for i in (f, *walk_fields(f.type)):
            if isinstance(i.type, FloatType | DoubleType):
                return True
            older = (s.field_by_id.get(i.field_id) for s in self._schemas)
            if isinstance(i.type, DecimalType) and any(o and o.type != i.type for o in older):
                return True
        own = {name.lower(): field_id for name, field_id in _names(f, "")}
        return self._may_be_others or any(
            self._ids.get(name, {field_id}) != {field_id} for name, field_id in own.items()
        )

    def are_reused_below(self, f: NestedField) -> bool:
        """Return whether a struct in the column may have another field of its name in some file."""
        inner = [i for i in (f, *walk_fields(f.type)) if isinstance(i.type, StructType)]
        own = {(parent, name): field_id for i in inner for parent, name, field_id in _children(i)}
        return bool(inner) and (
            self._may_be_others
            or any(self._ids_below.get(place, {i}) != {i} for place, i in own.items())
        )


def _children(f: NestedField) -> Iterator[tuple[int, str, int]]:
    """Yield, for each field of a struct, the struct's id and the field's name and id."""
    if isinstance(f.type, StructType):
        for child in f.type.fields:
            yield f.field_id, child.name.lower(), child.field_id


def schemas_were_removed(schemas: Iterable[Schema]) -> bool:
    """Return whether schemas of files, and so the meaning of their names, may have been removed."""
    schema_ids = {s.schema_id for s in schemas}
    return schema_ids != set(range(len(schema_ids)))


def _names_of(schema: Schema) -> Iterator[tuple[str, int]]:
    for f in schema.fields:
        yield from _names(f, "")


def _names(f: NestedField, above: str) -> Iterator[tuple[str, int]]:
    """Yield the full names and ids of a field and of the fields in its structs."""
    yield above + f.name, f.field_id
    if isinstance(f.type, StructType):
        for child in f.type.fields:
            yield from _names(child, f"{above}{f.name}.")


def with_hidden_names(type_: Type) -> Type:
    """Return the type with all field names of its structs replaced by names that no file has."""
    return with_children(
        type_,
        lambda f: replace(f, name=hidden_name(f.field_id), type=with_hidden_names(f.type)),
    )


def type_text(type_: spark_types.DataType) -> str:
    """Return a type as SQL writes it, with quoted field names."""
    match type_:
        case spark_types.StructType():
            fields = ", ".join(
                f"{quoted(f.name)}: {type_text(f.dataType)}{'' if f.nullable else ' NOT NULL'}"
                for f in type_.fields
            )
            return f"STRUCT<{fields}>"
        case spark_types.ArrayType():
            return f"ARRAY<{type_text(type_.elementType)}>"
        case spark_types.MapType():
            return f"MAP<{type_text(type_.keyType)}, {type_text(type_.valueType)}>"
    return type_.simpleString()
