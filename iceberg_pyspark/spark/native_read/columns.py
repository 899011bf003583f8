"""Decides which columns Spark's own readers can read.

In Parquet files Spark finds columns by field id, fills missing columns with `EXISTS_DEFAULT` and
widens promoted types; `spark/native_read/column_names.py` handles its uses of names. In ORC files
Spark finds all columns by name (`spark/native_read/reader_differences.py`). A scan of any other
column is portable: `native_columns` returns None, and the log has the reason.

Identity partition values as constant columns of a file.

Specification, "Column Projection": a field that a file lacks has its identity partition value.
Files of migrated tables lack partition columns; other files store the same value, so as in Java the
column is not read at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import types as spark_types

from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.bridge.call_arguments import SelectedColumn
from iceberg_pyspark.spark.bridge.type_agreement import COMPARED_TYPES
from iceberg_pyspark.spark.native_read.column_names import (
    NamesInFiles,
    hidden_name,
    type_text,
    with_hidden_names,
)
from iceberg_pyspark.spark.native_read.reader_differences import (
    NO_ORC_FILES,
    OrcFilesRead,
    why_not_by_name,
)
from iceberg_pyspark.spark.rows.nanosecond_types import nanos_spark_type
from iceberg_pyspark.spark.rows.spark_types import to_spark_type
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.manifests import FileFormat
from iceberg_pyspark.spec.metadata_columns import (
    CHANGE_COLUMNS,
    COMMIT_COLUMNS,
    DELETED,
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    POS,
    ROW_ID,
    SPEC_ID,
)
from iceberg_pyspark.spec.partitioning import PartitionSpec, identity_source_ids
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.values import value_to_json
from iceberg_pyspark.sql_text.names import quoted
from iceberg_pyspark.table.reading.table_scan import TableScan

CONSTANT_TYPES = COMPARED_TYPES


def constant_name(field_id: int) -> str:
    """Return the name of the column in the table of files that holds a field's constant."""
    return f"__ice_id_{field_id}"


def why_not_constant(
    fields: Iterable[types.NestedField], specs: Iterable[PartitionSpec]
) -> str | None:
    """Return the reason if files may lack fields that Spark cannot get as constants, or None."""
    partition_source_ids = {i for spec in specs for i in identity_source_ids(spec)}
    for f in fields:
        if f.field_id in partition_source_ids and not isinstance(f.type, CONSTANT_TYPES):
            return f"it is partitioned by {f.name} of type {f.type}"
        if any(inner.field_id in partition_source_ids for inner in types.walk_fields(f.type)):
            return f"it is partitioned by a field of column {f.name}"
    return None


def constant_ids(spec: PartitionSpec) -> frozenset[int]:
    """Return the ids of the columns that are constant in each file of a partition spec."""
    return frozenset(identity_source_ids(spec))


def constant_values(
    specs: Mapping[int, PartitionSpec],
    partitions: Sequence[tuple[int, tuple[Any, ...]]],
    field_id: int,
) -> list[Any]:
    """Return each file's value of a constant column, in the form of `spec/values.py`.

    `partitions` are the id of the spec and the partition tuple of each file.
    """
    spec_ids = {spec_id for spec_id, _ in partitions}
    positions = {i: identity_source_ids(specs[i])[field_id] for i in spec_ids}
    return [partition[positions[spec_id]] for spec_id, partition in partitions]


_log = get_logger(__name__)

CONSTANT_FILE = "__ice_file"
CONSTANT_SPEC_ID = "__ice_spec_id"
CONSTANT_FIRST_ROW_ID = "__ice_first_row_id"
CONSTANT_SEQUENCE = "__ice_seq"
CONSTANTS_OF_CHANGE = {f.field_id: f"__ice{f.name}" for f in (*CHANGE_COLUMNS, *COMMIT_COLUMNS)}
"""Constant names by the ids of the columns that describe a row's change."""

STORED_ROW_ID = "__ice_row_id"
STORED_SEQUENCE = "__ice_last_seq"
ROW_INDEX = "_tmp_metadata_row_index"
"""The column that Spark's reader fills with row positions. Under this name it is a plain number;
`_metadata.row_index` is the same column in a struct, which costs one object per row.
"""

_NATIVE_TYPES = (
    *COMPARED_TYPES,
    types.FloatType,
    types.DoubleType,
    types.BinaryType,
    types.VariantType,
    types.GeometryType,
    types.GeographyType,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantColumn:
    """A column that has one value in each file: the value of an identity partition field."""

    field_id: int
    type: types.Type


@dataclass(frozen=True, kw_only=True)
class NativeColumns:
    """The relation's schema, its constants per file, and the expressions that make the outputs."""

    read_schema: spark_types.StructType
    file_constants: tuple[str, ...]
    outputs: tuple[SelectedColumn, ...]
    """One output for each column of the projection, with the column's name."""

    constants: Mapping[str, ConstantColumn] = field(default_factory=dict)
    """The constants that are columns of the table."""

    further_names: Mapping[int, str] = field(default_factory=dict)
    """The names in the relation of the columns beyond the projection, by field id."""

    names: Mapping[int, str] = field(default_factory=dict)
    """The names in the relation of the table's columns, by field id."""

    def never_null_names(self, never_null: Collection[int]) -> tuple[str, ...]:
        """Return the names of the read columns without a null; `never_null` are ids of such
        columns.

        A column with a default is left out: for a file without the column Spark reads nulls and
        replaces them.
        """
        field_by_name = {f.name: f for f in self.read_schema.fields}
        names = [self.names[i] for i in sorted(never_null) if i in self.names]
        return tuple(
            n
            for n in names
            if n in field_by_name and "EXISTS_DEFAULT" not in field_by_name[n].metadata
        )

    def schema(self, *, positions: bool) -> spark_types.StructType:
        """Return the columns to read, with row positions if a delete or expression needs them."""
        if not positions and not any(ROW_INDEX in o.value for o in self.outputs):
            return self.read_schema
        position = spark_types.StructField(ROW_INDEX, spark_types.LongType())
        return spark_types.StructType([*self.read_schema.fields, position])


def native_columns(
    scan: TableScan,
    further_ids: Collection[int] = (),
    constants: Collection[int] = (),
    file_format: FileFormat = "parquet",
    orc: OrcFilesRead = NO_ORC_FILES,
) -> NativeColumns | None:
    """Return how Spark reads the scan's projection, or None if the portable reader must read it.

    `further_ids` are ids of further top-level columns that conditions need, also of columns that
    the table no longer has. `constants` are ids of columns that have one value in each file. `orc`
    describes the ORC files that are read at all.
    """
    by_name = file_format == "orc"
    further = further_columns(scan, further_ids)
    if further is None:
        reason: str | None = "it compares columns that are not top-level ones"
    else:
        fields = (*scan.context.projection.fields, *further.values())
        reason = _why_portable(scan, fields)
        if reason is None and by_name:
            not_constant = [f for f in fields if f.field_id not in constants]
            reason = why_not_by_name(scan.metadata.schemas, not_constant, orc)
    if reason is not None:
        _log.info("%s of %s are read by Python: %s", file_format, scan.context.table, reason)
        return None
    assert further is not None, "that was a reason"
    in_files = NamesInFiles(scan.metadata)
    read_fields: list[spark_types.StructField] = []
    names: dict[int, str] = {}
    file_constants: list[str] = []
    outputs: list[SelectedColumn] = []
    constant_by_name: dict[str, ConstantColumn] = {}
    for f in (*scan.context.projection.fields, *further.values()):
        if f.field_id in constants:
            names[f.field_id] = constant_name(f.field_id)
            constant_by_name[names[f.field_id]] = ConstantColumn(field_id=f.field_id, type=f.type)
    for f in scan.context.projection.fields:
        column, expression = None, ""
        match f.field_id:
            case FILE.field_id:
                file_constants.append(CONSTANT_FILE)
                column = CONSTANT_FILE
            case SPEC_ID.field_id:
                file_constants.append(CONSTANT_SPEC_ID)
                column = CONSTANT_SPEC_ID
            case field_id if field_id in CONSTANTS_OF_CHANGE:
                column = CONSTANTS_OF_CHANGE[field_id]
                file_constants.append(column)
            case DELETED.field_id:
                # Files with deletes are read portably, and only that reader marks deleted rows.
                expression = "false"
            case POS.field_id:
                column = ROW_INDEX
            case ROW_ID.field_id:
                file_constants.append(CONSTANT_FIRST_ROW_ID)
                read_fields.append(_stored_field(STORED_ROW_ID, f.field_id))
                expression = (
                    f"CASE WHEN {CONSTANT_FIRST_ROW_ID} IS NOT NULL THEN "
                    f"coalesce({STORED_ROW_ID}, {CONSTANT_FIRST_ROW_ID} + {ROW_INDEX}) END"
                )
            case LAST_UPDATED_SEQUENCE_NUMBER.field_id:
                file_constants += [CONSTANT_FIRST_ROW_ID, CONSTANT_SEQUENCE]
                read_fields.append(_stored_field(STORED_SEQUENCE, f.field_id))
                expression = (
                    f"CASE WHEN {CONSTANT_FIRST_ROW_ID} IS NOT NULL THEN "
                    f"coalesce({STORED_SEQUENCE}, {CONSTANT_SEQUENCE}) END"
                )
            case field_id if field_id in constants:
                column = names[field_id]
            case _:
                column = name = f.name if by_name else _read_name(f, in_files)
                names[f.field_id] = name
                if not by_name and in_files.are_reused_below(f):
                    expression = f"CAST({quoted(name)} AS {type_text(_read_type(f.type, f.name))})"
                    column = None
                    f = replace(f, type=with_hidden_names(f.type))
                if f.required and f.initial_default is not None:
                    # Spark's reader requires that each file has a column that is declared NOT NULL.
                    f = replace(f, required=False)
                    default = sql_literal(f.type, f.initial_default)
                    expression = f"coalesce({expression or quoted(name)}, {default})"
                    column = None
                read_fields.append(_read_field(f, name))
        outputs.append(
            SelectedColumn(name=f.name, value=expression)
            if column is None
            else alias_column(column, f.name)
        )
    lower_names = {r.name.lower() for r in read_fields}
    for field_id, f in further.items():
        if field_id not in names:
            names[field_id] = f.name if by_name else hidden_name(field_id)
            current = scan.context.schemas[0].as_struct.field(field_id)
            if not by_name and current is not None and f.name.lower() not in lower_names:
                names[field_id] = _read_name(f, in_files)
            read_fields.append(_read_field(f, names[field_id]))
            lower_names.add(names[field_id].lower())
    return NativeColumns(
        read_schema=spark_types.StructType(read_fields),
        file_constants=tuple(dict.fromkeys((*file_constants, *constant_by_name))),
        outputs=tuple(outputs),
        constants=constant_by_name,
        further_names={field_id: names[field_id] for field_id in further},
        names=names,
    )


def alias_column(column: str, name: str) -> SelectedColumn:
    """Return a column of the relation under another name."""
    return SelectedColumn(name=name, value=quoted(column), column=column)


def further_columns(scan: TableScan, ids: Collection[int]) -> dict[int, types.NestedField] | None:
    """Return the fields with these ids, with the newest schema's types and nullable; None if
    unknown.
    """
    selected_schema, *others = scan.context.schemas
    schemas = (selected_schema, *sorted(others, key=lambda s: s.schema_id, reverse=True))
    columns: dict[int, types.NestedField] = {}
    for field_id in ids:
        fields = (s.as_struct.field(field_id) for s in schemas)
        f = next((f for f in fields if f is not None), None)
        if f is None:
            return None
        columns[field_id] = replace(f, required=False)
    return columns


def _stored_field(name: str, field_id: int) -> spark_types.StructField:
    return spark_types.StructField(
        name, spark_types.LongType(), True, {"parquet.field.id": field_id}
    )


_METADATA_IDS = {
    f.field_id
    for f in (
        *(DELETED, FILE, SPEC_ID, POS, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER),
        *(*CHANGE_COLUMNS, *COMMIT_COLUMNS),
    )
}


def _why_portable(scan: TableScan, fields: Collection[types.NestedField]) -> str | None:
    if scan.context.name_mapping is not None:
        return "it has a name mapping, so files may lack field ids"
    reason = why_not_constant(fields, scan.context.specs.values())
    if reason is not None:
        return reason
    for f in fields:
        if f.field_id in _METADATA_IDS:
            continue
        if f.field_id > 2147483447:
            return f"metadata column {f.name}"
        for inner in (f, *types.walk_fields(f.type)):
            if isinstance(inner.type, types.PrimitiveType) and not (
                isinstance(inner.type, _NATIVE_TYPES) or nanos_spark_type(inner.type) is not None
            ):
                return f"column {f.name} holds {inner.type}"
            if inner is not f and inner.initial_default is not None:
                return f"column {f.name} has an initial default inside"
            if not _is_only_widened(inner, scan.context.schemas):
                return f"column {f.name} was promoted in a way Spark does not read"
        if f.initial_default is not None and isinstance(
            f.type, types.BinaryType | types.StructType | types.ListType | types.MapType
        ):
            return f"column {f.name} has an initial default of type {f.type}"
    return None


def _is_only_widened(f: types.NestedField, schemas: tuple[Schema, ...]) -> bool:
    """Return whether Spark's reader widens every older type of the field."""
    for schema in schemas:
        older = schema.field_by_id.get(f.field_id)
        if older is None or older.type == f.type or not isinstance(f.type, types.PrimitiveType):
            continue
        wide_column = (
            (isinstance(older.type, types.IntegerType) and isinstance(f.type, types.LongType))
            or (isinstance(older.type, types.FloatType) and isinstance(f.type, types.DoubleType))
            or (isinstance(older.type, types.DecimalType) and isinstance(f.type, types.DecimalType))
        )
        if not wide_column:
            return False
    return True


def _read_name(f: types.NestedField, in_files: NamesInFiles) -> str:
    return hidden_name(f.field_id) if in_files.make_pruning_unsafe(f) else f.name


def _read_field(f: types.NestedField, name: str) -> spark_types.StructField:
    """Return the field as Spark's reader needs it, with field ids at every level."""
    metadata: dict[str, Any] = {"parquet.field.id": f.field_id}
    if f.initial_default is not None:
        literal = sql_literal(f.type, f.initial_default)
        metadata |= {"EXISTS_DEFAULT": literal, "CURRENT_DEFAULT": literal}
    return spark_types.StructField(name, _read_type(f.type, f.name), f.optional, metadata)


def _read_type(type_: types.Type, path: str) -> spark_types.DataType:
    match type_:
        case types.StructType(fields=fields):
            return spark_types.StructType([_read_field(c, c.name) for c in fields])
        case types.ListType():
            return spark_types.ArrayType(
                _read_type(type_.element_type, path), not type_.element_required
            )
        case types.MapType():
            return spark_types.MapType(
                _read_type(type_.key_type, path),
                _read_type(type_.value_type, path),
                not type_.value_required,
            )
    return to_spark_type(type_, path)


def sql_literal(type_: types.Type, value: Any) -> str:
    """Return a value of a native type as an SQL literal."""
    text = value_to_json(type_, value)
    match type_:
        case types.BooleanType():
            return "true" if value else "false"
        case types.StringType():
            return text_literal(str(text))
        case types.DateType():
            return f"DATE '{text}'"
        case types.TimestamptzType():
            return f"TIMESTAMP '{text}'"
        case types.TimestampType():
            return f"TIMESTAMP_NTZ '{text}'"
        case types.TimestampNsType():
            return f"CAST('{text}' AS TIMESTAMP_NTZ(9))"
        case types.TimestamptzNsType():
            return f"CAST('{text}' AS TIMESTAMP_LTZ(9))"
        case types.DecimalType(precision=precision, scale=scale):
            return f"CAST('{text}' AS DECIMAL({precision}, {scale}))"
        case types.FloatType() | types.DoubleType():
            kind = "FLOAT" if isinstance(type_, types.FloatType) else "DOUBLE"
            return f"CAST('{text}' AS {kind})"
        case types.LongType():
            return f"{text}L"
        case _:
            return str(text)


def text_literal(text: str) -> str:
    """Return a text as an SQL literal that does not depend on the session's escape settings."""
    if "'" in text or "\\" in text:
        return f"CAST(X'{text.encode().hex()}' AS STRING)"
    return f"'{text}'"
