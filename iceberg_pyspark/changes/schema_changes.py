"""Changes a table's schema: add, drop, rename, promote, move, require, defaults, union by name.

Specification, "Schema Evolution", "Default Values" and "Identifier Field IDs". The changes are
applied in order to the schema that was loaded; if another commit changes the schema meanwhile, the
commit fails. Columns are referenced by their full dotted name; to add a field to the structs of a
list, use the name of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, TypeAlias, TypeVar

from iceberg_pyspark.changes.apply_schemas import same_schema
from iceberg_pyspark.changes.changes import (
    LAST_ADDED,
    AddSchema,
    AssertCurrentSchemaId,
    AssertLastAssignedFieldId,
    Changes,
    SetCurrentSchema,
    same_table,
)
from iceberg_pyspark.changes.compatibility import check_schema
from iceberg_pyspark.changes.default_literals import default_from_literal
from iceberg_pyspark.changes.fresh_ids import renumber, type_with_fresh_ids
from iceberg_pyspark.changes.property_changes import column_property_updates
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.retyped_columns import can_promote
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import (
    DayTransform,
    HourTransform,
    MonthTransform,
    VoidTransform,
    YearTransform,
)
from iceberg_pyspark.spec.values import value_from_bytes, value_to_bytes

Self = TypeVar("Self", bound="SchemaChanges")
GivenType: TypeAlias = Annotated[types.Type | str, "a type such as 'decimal(10,2)'"]
EditFields = Callable[[tuple[types.NestedField, ...]], tuple[types.NestedField, ...]]


@checked_methods
class SchemaChanges:
    """Changes of the current schema of `metadata`; each method refuses an invalid change."""

    _whole: Schema
    _is_edited: bool
    _columns: dict[int, types.NestedField]
    _id_by_name: dict[str, int]

    def __init__(
        self, metadata: TableMetadata, *, allow_incompatible_changes: bool = False
    ) -> None:
        self._metadata = metadata
        self._take(metadata.current_schema)
        self._last_column_id = metadata.last_column_id
        self._allow_incompatible = allow_incompatible_changes

    @property
    def schema(self) -> Schema:
        """The schema with the changes made so far."""
        return self._schema

    @property
    def _schema(self) -> Schema:
        if self._is_edited:
            self._whole = replace(self._whole, fields=tuple(self._columns.values()))
            self._is_edited = False
        return self._whole

    def _take(self: Self, schema: Schema) -> Self:
        self._whole, self._is_edited = schema, False
        # top-level columns, in order: one change may edit thousands of them one by one
        self._columns = {f.field_id: f for f in schema.fields}
        self._id_by_name = {f.name: f.field_id for f in schema.fields}
        return self

    def _find(self, name: str) -> types.NestedField:
        """Return a field by its full name."""
        f = self._columns.get(self._id_by_name.get(name, -1))
        return f if f is not None and self._is_alone(f) else self._schema.find(name)

    def _is_alone(self, f: types.NestedField) -> bool:
        """Return whether a found column can change without any other field or name."""
        return f.field_id in self._columns and _is_simple(f)

    def add_column(
        self: Self,
        name: str,
        type_: GivenType,
        *,
        parent: str | None = None,
        required: bool = False,
        doc: str | None = None,
        default: Any = None,
    ) -> Self:
        """Add an optional column at the end of the table, or of the struct `parent`.

        Without `parent`, a dotted name includes the parent; with an empty `parent`, the column is
        one of the table itself, and dots are part of its name. `default` (v3) is the value for
        existing and for future rows, given as in a filter; a required column needs a default.
        """
        if parent is None and "." in name:
            parent, name = name.rsplit(".", 1)
        return self._add(
            parent or None, name, _type(type_), required=required, doc=doc, default=default
        )

    def _add(
        self: Self,
        parent: str | None,
        name: str,
        type_: types.Type,
        *,
        required: bool,
        doc: str | None,
        default: Any,
    ) -> Self:
        if required and default is None and not self._allow_incompatible:
            raise InvalidRequestError(
                f"cannot add the required column '{name}' without a default, because existing rows "
                "have no value for it; give a default, or make the column optional"
            )
        parent_id = None if parent is None else self._struct_of(parent)
        if self._sibling(parent_id, name) is not None:
            raise InvalidRequestError(f"column '{_dotted_name(parent, name)}' already exists")
        field_id = self._next_id()
        fresh = type_with_fresh_ids(type_, self._fresh_ids())
        default = renumber(default_from_literal(name, type_, default), type_, fresh)
        new_field = types.NestedField(
            field_id=field_id,
            name=name,
            type=fresh,
            required=required,
            doc=doc,
            initial_default=default,
            write_default=default,
        )
        if parent_id is None and _is_simple(new_field):
            return self._edit_column(None, new_field)
        return self._edit_struct(parent_id, lambda fields: (*fields, new_field))

    def drop_column(self: Self, name: str) -> Self:
        """Drop a column; its field id is never used again."""
        f = self._find(name)
        self._refuse_map_key(f.field_id, name)
        if isinstance(self._container(f.field_id), types.ListType | types.MapType):
            raise InvalidRequestError(f"'{name}' is part of a list or map and cannot be dropped")
        dropped_ids = {f.field_id, *(c.field_id for c in types.walk_fields(f.type))}
        identifiers = dropped_ids.intersection(self._whole.identifier_field_ids)
        if identifiers:
            raise InvalidRequestError(
                f"'{self._schema.name_by_id[min(identifiers)]}' is an identifier field; "
                "set other identifier fields before dropping it"
            )
        if self._is_alone(f):
            return self._edit_column(f, None)
        return self._edit_struct(
            self._parent(f.field_id),
            lambda fields: tuple(c for c in fields if c.field_id != f.field_id),
        )

    def rename_column(self: Self, name: str, new_name: str) -> Self:
        """Rename a column within its struct."""
        f = self._find(name)
        self._refuse_map_key(f.field_id, name)
        if isinstance(self._container(f.field_id), types.ListType | types.MapType):
            raise InvalidRequestError(f"'{name}' is part of a list or map and has no own name")
        if self._sibling(self._parent(f.field_id), new_name) not in (None, f):
            raise InvalidRequestError(f"cannot rename '{name}': '{new_name}' already exists")
        return self._edit_field(f, lambda c: replace(c, name=new_name))

    def update_type(self: Self, name: str, type_: GivenType) -> Self:
        """Promote a column to a wider type."""
        f = self._find(name)
        new = _type(type_)
        if new == f.type:
            return self
        self._refuse_map_key(f.field_id, name)
        if not can_promote(f.type, new, self._metadata.format_version):
            raise InvalidRequestError(
                f"cannot change '{name}' from {f.type} to {new}: the specification allows no such "
                f"promotion; add a column of type {new} and copy the values"
            )
        self._check_partition_values_stay(f, new)
        if self._is_alone(f):
            promoted = _with_promoted_defaults(replace(f, type=new), {f.field_id: f})
            return self._edit_column(f, promoted)
        old = self._schema.field_by_id
        fields = _edit_field(self._schema.as_struct, f.field_id, lambda c: replace(c, type=new))
        struct = types.with_children(fields, lambda c: _with_promoted_defaults(c, old))
        assert isinstance(struct, types.StructType)
        return self._set(replace(self._schema, fields=struct.fields))

    def update_doc(self: Self, name: str, doc: str | None) -> Self:
        """Set or remove a column's documentation."""
        return self._edit_field(self._find(name), lambda c: replace(c, doc=doc))

    def update_default(self: Self, name: str, default: Any) -> Self:
        """Set the default for future rows (v3); the default for existing rows never changes."""
        f = self._find(name)
        if f.required and default is None:
            raise InvalidRequestError(
                f"the required column '{name}' cannot default to null; make it optional first"
            )
        default = default_from_literal(name, f.type, default)
        return self._edit_field(f, lambda c: replace(c, write_default=default))

    def make_optional(self: Self, name: str) -> Self:
        """Allow nulls in a column."""
        f = self._find(name)
        self._refuse_map_key(f.field_id, name)
        if f.field_id in self._whole.identifier_field_ids:
            raise InvalidRequestError(
                f"'{name}' is an identifier field and must be required; set other identifier "
                "fields first"
            )
        return self._edit_field(f, lambda c: replace(c, required=False))

    def require(self: Self, name: str) -> Self:
        """Forbid nulls in a column; needs `allow_incompatible_changes`."""
        f = self._find(name)
        if f.required:
            return self
        if not self._allow_incompatible:
            raise InvalidRequestError(
                f"cannot make '{name}' required: existing rows may have nulls; allow incompatible "
                "changes if you know that they have none"
            )
        return self._edit_field(f, lambda c: replace(c, required=True))

    def move_first(self: Self, name: str) -> Self:
        """Move a column before all others of its struct."""
        return self._move(name, None, 0)

    def move_before(self: Self, name: str, reference: str) -> Self:
        """Move a column before another column of the same struct."""
        return self._move(name, reference, 0)

    def move_after(self: Self, name: str, reference: str) -> Self:
        """Move a column after another column of the same struct."""
        return self._move(name, reference, 1)

    def set_identifier_fields(self: Self, *names: str) -> Self:
        """Set the columns that identify a row; without names, there are no identifier fields."""
        ids = tuple(self._schema.find(name).field_id for name in names)
        return self._set(replace(self._schema, identifier_field_ids=ids))

    def union_by_name(self: Self, other: Schema, *, case_sensitive: bool = True) -> Self:
        """Add the missing columns of another schema, and widen types and nullability.

        Columns are matched by full name; the field ids of the other schema are ignored. A column
        whose name differs from the table's only in case is another one, if `case_sensitive`.
        """
        self._union(other.as_struct, None, case_sensitive)
        return self

    def changes(self, metadata: TableMetadata) -> Changes:
        """Return the updates and requirements, based on the metadata given to the constructor."""
        base = self._metadata
        if same_schema(self._schema, base.current_schema):
            return Changes()
        check_schema(self._schema, metadata.format_version)
        return Changes(
            updates=(
                AddSchema(self._schema, self._last_column_id),
                SetCurrentSchema(LAST_ADDED),
                *column_property_updates(metadata.properties, base.current_schema, self._schema),
            ),
            requirements=(
                *same_table(base.table_uuid),
                AssertCurrentSchemaId(base.current_schema_id),
                AssertLastAssignedFieldId(base.last_column_id),
            ),
        )

    def _set(self: Self, schema: Schema) -> Self:
        check_schema(schema, self._metadata.format_version)
        return self._take(schema)

    def _edit_column(
        self: Self, old: types.NestedField | None, new: types.NestedField | None
    ) -> Self:
        """Add, replace or drop a column that is alone; the others were checked already."""
        if new is not None:
            check_schema(Schema(fields=(new,)), self._metadata.format_version)
        if old is not None:
            del self._id_by_name[old.name]
        if new is not None:
            self._id_by_name[new.name] = new.field_id
            self._columns[new.field_id] = new
        elif old is not None:
            del self._columns[old.field_id]
        self._is_edited = True
        return self

    def _next_id(self) -> int:
        self._last_column_id += 1
        return self._last_column_id

    def _fresh_ids(self) -> Iterator[int]:
        while True:
            yield self._next_id()

    def _struct_of(self, name: str) -> int:
        """Return the id of the struct field to which columns below `name` are added."""
        f = self._schema.find(name)
        if isinstance(f.type, types.ListType):
            f = f.type.element
        elif isinstance(f.type, types.MapType):
            f = f.type.value
        if not isinstance(f.type, types.StructType):
            raise InvalidRequestError(
                f"cannot add columns to '{name}': it is {f.type}, not a struct"
            )
        self._refuse_map_key(f.field_id, name)
        return f.field_id

    def _siblings(self, parent_id: int | None) -> Collection[types.NestedField]:
        if parent_id is None:
            return self._columns.values()
        type_ = self._schema.field_by_id[parent_id].type
        return type_.fields if isinstance(type_, types.StructType) else ()

    def _sibling(self, parent_id: int | None, name: str) -> types.NestedField | None:
        if parent_id is None:
            return self._columns.get(self._id_by_name.get(name, -1))
        return next((f for f in self._siblings(parent_id) if f.name == name), None)

    def _parent(self, field_id: int) -> int | None:
        return None if field_id in self._columns else self._schema.parent_by_id[field_id]

    def _container(self, field_id: int) -> types.Type | None:
        """Return the type that has a field; None: the field is a column of the table."""
        parent_id = self._parent(field_id)
        return None if parent_id is None else self._schema.field_by_id[parent_id].type

    def _refuse_map_key(self, field_id: int, name: str) -> None:
        at: int | None = field_id
        while at is not None:
            container = self._container(at)
            if isinstance(container, types.MapType) and container.key_id == at:
                raise InvalidRequestError(f"'{name}' is part of a map's key, which never changes")
            at = self._parent(at)

    def _edit_struct(self: Self, parent_id: int | None, edit: EditFields) -> Self:
        if parent_id is None:
            return self._set(replace(self._schema, fields=edit(self._schema.fields)))

        def edit_type(f: types.NestedField) -> types.NestedField:
            assert isinstance(f.type, types.StructType)
            return replace(f, type=types.StructType(edit(f.type.fields)))

        return self._edit_field(self._schema.field_by_id[parent_id], edit_type)

    def _edit_field(
        self: Self, f: types.NestedField, edit: Callable[[types.NestedField], types.NestedField]
    ) -> Self:
        new = edit(f)
        if self._is_alone(f) and self._is_alone(new):
            return self._edit_column(f, new)
        struct = _edit_field(self._schema.as_struct, f.field_id, lambda _: new)
        assert isinstance(struct, types.StructType)
        return self._set(replace(self._schema, fields=struct.fields))

    def _move(self: Self, name: str, reference: str | None, offset: int) -> Self:
        f = self._find(name)
        parent_id = self._parent(f.field_id)
        self._refuse_map_key(f.field_id, name)
        others = [c for c in self._siblings(parent_id) if c.field_id != f.field_id]
        position = 0
        if reference is not None:
            other = self._find(reference)
            if other.field_id == f.field_id:
                raise InvalidRequestError(f"cannot move '{name}' relative to itself")
            if self._parent(other.field_id) != parent_id:
                raise InvalidRequestError(
                    f"cannot move '{name}' to '{reference}': they are in different structs"
                )
            position = [c.field_id for c in others].index(other.field_id) + offset
        siblings = (*others[:position], f, *others[position:])
        if parent_id is not None:
            return self._edit_struct(parent_id, lambda _: siblings)
        self._columns = {c.field_id: c for c in siblings}
        self._is_edited = True
        return self

    def _check_partition_values_stay(self, f: types.NestedField, new: types.Type) -> None:
        """Raise `InvalidRequestError` if the promotion would change values of a partition field."""
        if not isinstance(f.type, types.DateType):
            return
        same = (YearTransform, MonthTransform, DayTransform, HourTransform, VoidTransform)
        for spec in self._metadata.partition_specs:
            for p in spec.fields:
                if f.field_id in p.source_ids and not isinstance(p.transform, same):
                    raise InvalidRequestError(
                        f"cannot change '{f.name}' from {f.type} to {new}: partition field "
                        f"'{p.name}' ({p.transform}) would change its values"
                    )

    def _union(self, struct: types.StructType, parent: str | None, case_sensitive: bool) -> None:
        names = {f.name: _dotted_name(parent, f.name) for f in struct.fields}
        if not case_sensitive:
            names = {n: self._spelling(name) for n, name in names.items()}
        ids = self._schema.id_by_name
        existing = [f for f in struct.fields if names[f.name] in ids]
        new = [f for f in struct.fields if names[f.name] not in ids]
        # As in Java, new fields inside an existing column get their ids before new columns beside
        # it.
        for field in existing:
            self._union_field(field, names[field.name], case_sensitive)
        for field in new:
            # existing rows have no value for the column, so it must be optional
            self._add(
                parent,
                field.name,
                field.type,
                required=False,
                doc=field.doc,
                default=field.write_default,
            )

    def _spelling(self, name: str) -> str:
        """Return a column's name as the schema has it, in any case; otherwise the name itself."""
        if name.lower() not in self._schema.names_by_lower_name:
            return name
        field = self._schema.find(name, case_sensitive=False)
        return self._schema.name_by_id[field.field_id]

    def _union_field(self, new_field: types.NestedField, name: str, case_sensitive: bool) -> None:
        field = self._find(name)
        if field.required and new_field.optional:
            self.make_optional(name)
        if new_field.doc is not None and new_field.doc != field.doc:
            self.update_doc(name, new_field.doc)
        match field.type, new_field.type:
            case types.StructType(), types.StructType():
                self._union(new_field.type, name, case_sensitive)
            case types.ListType(), types.ListType():
                self._union_field(new_field.type.element, f"{name}.element", case_sensitive)
            case types.MapType(), types.MapType():
                if not _same_shape(field.type.key_type, new_field.type.key_type):
                    raise InvalidRequestError(f"'{name}': the key of a map never changes")
                self._union_field(new_field.type.value, f"{name}.value", case_sensitive)
            case old, new if old == new:
                return
            case types.PrimitiveType() as old, types.PrimitiveType() as new:
                # a narrower type fits into the existing column
                if not can_promote(new, old, self._metadata.format_version):
                    self.update_type(name, new)
            case old, new:
                raise InvalidRequestError(f"'{name}' is {old} and cannot become {new}")


_PER_DAY = {types.TimestampType: 86_400_000_000, types.TimestampNsType: 86_400_000_000_000}


def _with_promoted_defaults(
    f: types.NestedField, old: Mapping[int, types.NestedField]
) -> types.NestedField:
    """Return a field with its defaults, and those of all fields below it, in the new types.

    Also the default of a list, map or struct contains values of the types below it.
    """
    before = old[f.field_id].type
    return replace(
        f,
        type=types.with_children(f.type, lambda c: _with_promoted_defaults(c, old)),
        initial_default=_promote(f.initial_default, before, f.type),
        write_default=_promote(f.write_default, before, f.type),
    )


def _promote(value: Any, old: types.Type, new: types.Type) -> Any:
    """Convert a default value to the promoted type; it stays the value that rows have."""
    if value is None or old == new:
        return value
    match old, new:
        case types.DateType(), _:
            return value * _PER_DAY[type(new)]  # type: ignore[index]
        case types.FloatType(), _:
            # rows have the nearest float, and so must have the double
            return value_from_bytes(old, value_to_bytes(old, value))
        case types.ListType(), types.ListType():
            return [_promote(v, old.element_type, new.element_type) for v in value]
        case types.MapType(), types.MapType():
            return [
                (k, _promote(v, old.value_type, new.value_type))
                for k, v in value  # a key never changes
            ]
        case types.StructType(), types.StructType():
            pairs = zip(old.fields, new.fields, strict=True)
            of_field = {o.field_id: (o.type, n.type) for o, n in pairs}
            return {i: _promote(v, *of_field[i]) for i, v in value.items()}
        case _:
            return value


def _is_simple(f: types.NestedField) -> bool:
    return isinstance(f.type, types.PrimitiveType) and "." not in f.name


def _type(type_: GivenType) -> types.Type:
    return types.primitive_from_string(type_) if isinstance(type_, str) else type_


def _dotted_name(parent: str | None, name: str) -> str:
    return name if parent is None else f"{parent}.{name}"


def _edit_field(
    type_: types.Type, field_id: int, edit: Callable[[types.NestedField], types.NestedField]
) -> types.Type:
    """Return the type with one nested field edited."""

    def edit_one(f: types.NestedField) -> types.NestedField:
        if f.field_id == field_id:
            return edit(f)
        return replace(f, type=_edit_field(f.type, field_id, edit))

    return types.with_children(type_, edit_one)


def _same_shape(a: types.Type, b: types.Type) -> bool:
    """Return whether the types are equal apart from field ids."""
    match a, b:
        case types.PrimitiveType(), types.PrimitiveType():
            return a == b
        case (
            (types.StructType(), types.StructType())
            | (types.ListType(), types.ListType())
            | (types.MapType(), types.MapType())
        ):
            left_children, right = types.children_of(a), types.children_of(b)
            return len(left_children) == len(right) and all(
                x.name == y.name and _same_shape(x.type, y.type)
                for x, y in zip(left_children, right, strict=True)
            )
        case _:
            return False
