"""Converts Iceberg types to Spark types and back, with the mapping of Iceberg's own connector.

    timestamptz ↔ TimestampType · timestamp ↔ TimestampNTZType · uuid → StringType
    fixed → BinaryType · unknown ↔ NullType · variant ↔ VariantType
    geometry ↔ GeometryType · geography ↔ GeographyType, in reference systems that Spark knows

Other geometries and geographies are binary columns of WKB, and all are before Spark 4.2, which
cannot store its own types. A type without a Spark type (nanosecond timestamps) raises an error
that names the column; with the `columns` option the other columns can be read. A catalog still
shows such columns (`shown_spark_schema`), so that the other columns can be selected.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import types as spark_types

from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.spark.rows.geo_types import geo_spark_type, geo_type_of
from iceberg_pyspark.spark.rows.nanosecond_types import (
    NANOS_ENABLED,
    nanos_spark_type,
    nanos_type_of,
)
from iceberg_pyspark.spec import types as ice
from iceberg_pyspark.spec.metadata_columns import (
    DELETED,
    FILE,
    PLAIN_METADATA_COLUMNS,
    POS,
    SPEC_ID,
    lineage_columns,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.table.reading.table_scan import partition_of

_SPARK_BY_ICEBERG: dict[type[ice.PrimitiveType], Callable[[], spark_types.DataType]] = {
    ice.BooleanType: spark_types.BooleanType,
    ice.IntegerType: spark_types.IntegerType,
    ice.LongType: spark_types.LongType,
    ice.FloatType: spark_types.FloatType,
    ice.DoubleType: spark_types.DoubleType,
    ice.DateType: spark_types.DateType,
    ice.TimestampType: spark_types.TimestampNTZType,
    ice.TimestamptzType: spark_types.TimestampType,
    ice.StringType: spark_types.StringType,
    ice.UUIDType: spark_types.StringType,
    ice.FixedType: spark_types.BinaryType,
    ice.BinaryType: spark_types.BinaryType,
    ice.UnknownType: spark_types.NullType,
    ice.VariantType: spark_types.VariantType,
}

_ICEBERG_BY_SPARK: dict[type[spark_types.DataType], Callable[[], ice.PrimitiveType]] = {
    spark_types.BooleanType: ice.BooleanType,
    spark_types.ByteType: ice.IntegerType,
    spark_types.ShortType: ice.IntegerType,
    spark_types.IntegerType: ice.IntegerType,
    spark_types.LongType: ice.LongType,
    spark_types.FloatType: ice.FloatType,
    spark_types.DoubleType: ice.DoubleType,
    spark_types.DateType: ice.DateType,
    spark_types.TimestampType: ice.TimestamptzType,
    spark_types.TimestampNTZType: ice.TimestampType,
    spark_types.StringType: ice.StringType,
    spark_types.CharType: ice.StringType,
    spark_types.VarcharType: ice.StringType,
    spark_types.BinaryType: ice.BinaryType,
    spark_types.NullType: ice.UnknownType,
    spark_types.VariantType: ice.VariantType,
}

_TIME_DIGITS = 6

# Spark 4.0 has no TimeType.
if hasattr(spark_types, "TimeType"):
    _SPARK_BY_ICEBERG[ice.TimeType] = lambda: spark_types.TimeType(_TIME_DIGITS)
    _ICEBERG_BY_SPARK[spark_types.TimeType] = ice.TimeType


def struct_from_json(text: str) -> spark_types.StructType:
    """Return the Spark schema of a JSON text."""
    return spark_types.StructType.fromJson(json.loads(text))


def to_spark_schema(schema: Schema) -> spark_types.StructType:
    """Return the Spark schema of an Iceberg schema; raise `UnsupportedFeatureError` naming the
    column.
    """
    return _to_spark_struct(schema.as_struct, "")


def shown_spark_schema(schema: Schema, *, nanos: bool = False) -> spark_types.StructType:
    """Return the schema that a catalog shows: columns without a Spark type appear as binary.

    The comment of such a column says so; `project_like` refuses the column by name when a query
    needs it. Timestamps in nanoseconds have a type only if `nanos`.
    """
    return to_spark_schema(Schema(fields=tuple(_shown_field(f, nanos) for f in schema.fields)))


def shows_nanos(schema: Schema) -> bool:
    """Return whether a session can show timestamps in nanoseconds that the schema has."""
    return any(nanos_spark_type(f.type) is not None for f in ice.walk_fields(schema.as_struct))


_GEO = ice.GeometryType | ice.GeographyType


def _shown_field(f: ice.NestedField, nanos: bool) -> ice.NestedField:
    type_ = _shown_type(f.type, nanos)
    doc = f.doc
    if doc is None and isinstance(f.type, _GEO) and geo_spark_type(f.type) is None:
        doc = f"{f.type}, as WKB"
    if doc is None and isinstance(f.type, ice.PrimitiveType) and type_ is not f.type:
        doc = f"{f.type}, for which Spark has no type here: not to be selected"
    return f if type_ is f.type and doc is f.doc else replace(f, type=type_, doc=doc)


def _shown_type(type_: ice.Type, nanos: bool) -> ice.Type:
    if not isinstance(type_, ice.PrimitiveType):
        return ice.with_children(type_, lambda f: _shown_field(f, nanos))
    has_type = isinstance(type_, ice.DecimalType | _GEO) or type(type_) in _SPARK_BY_ICEBERG
    if has_type or (nanos and nanos_spark_type(type_) is not None):
        return type_
    return ice.BinaryType()


def _to_spark_struct(struct: ice.StructType, prefix: str) -> spark_types.StructType:
    return spark_types.StructType(
        [
            spark_types.StructField(
                f.name,
                to_spark_type(f.type, prefix + f.name),
                nullable=f.optional,
                metadata={"comment": f.doc} if f.doc else None,
            )
            for f in struct.fields
        ]
    )


def to_spark_type(type_: ice.Type, path: str) -> spark_types.DataType:
    """Return the Spark type of an Iceberg type; `path` names the column in an error."""
    match type_:
        case ice.DecimalType(precision=precision, scale=scale):
            return spark_types.DecimalType(precision, scale)
        case ice.GeometryType() | ice.GeographyType():
            return geo_spark_type(type_) or spark_types.BinaryType()
        case ice.StructType():
            return _to_spark_struct(type_, f"{path}.")
        case ice.ListType():
            return spark_types.ArrayType(
                to_spark_type(type_.element_type, f"{path}.element"), not type_.element_required
            )
        case ice.MapType():
            return spark_types.MapType(
                to_spark_type(type_.key_type, f"{path}.key"),
                to_spark_type(type_.value_type, f"{path}.value"),
                not type_.value_required,
            )
        case ice.TimestampNsType() | ice.TimestamptzNsType():
            nanos = nanos_spark_type(type_)
            if nanos is None:
                raise _no_type(type_, path)
            return nanos
    make = _SPARK_BY_ICEBERG.get(type(type_))
    if make is None:
        raise _no_type(type_, path)
    return make()


def _no_type(type_: ice.Type, path: str) -> UnsupportedFeatureError:
    is_nanos = isinstance(type_, ice.TimestampNsType | ice.TimestamptzNsType)
    return UnsupportedFeatureError(
        f"column '{path}' has type {type_}, for which Spark has no type here; select the "
        "other columns, in format iceberg-py with the option columns='a,b,...'"
        + (
            f", or read it there with the option nanos-as, or in SQL set {NANOS_ENABLED}"
            if is_nanos
            else ""
        )
    )


def refuse_nanos(schema: Schema) -> None:
    """Raise `UnsupportedFeatureError` for a column in nanoseconds, also where Spark has a type."""
    for f in ice.walk_fields(schema.as_struct):
        if isinstance(f.type, ice.TimestampNsType | ice.TimestamptzNsType):
            raise _no_type(f.type, schema.name_by_id[f.field_id])


def from_spark_schema(schema: spark_types.StructType, *, all_optional: bool = False) -> Schema:
    """Return the Iceberg schema of a DataFrame, with provisional ids; a new table assigns its own
    ids.

    `all_optional` makes every column nullable: a DataFrame without nulls does not mean that later
    rows have none, and Spark itself creates tables that way.
    """
    return Schema(fields=_FromSpark(all_optional).struct(schema, "").fields)


class _FromSpark:
    """A converter from Spark types that numbers the fields; every id only has to be unique."""

    def __init__(self, all_optional: bool) -> None:
        self._last_id = 0
        self._all_optional = all_optional

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def struct(self, struct: spark_types.StructType, prefix: str) -> ice.StructType:
        for name, count in Counter(f.name for f in struct.fields).items():
            if count > 1:
                raise InvalidRequestError(
                    f"column '{prefix}{name}' occurs twice in the DataFrame; rename one of them"
                )
        return ice.StructType(
            tuple(
                ice.NestedField(
                    field_id=self._next_id(),
                    name=f.name,
                    type=self.type(f.dataType, prefix + f.name),
                    required=not (f.nullable or self._all_optional),
                    doc=(f.metadata or {}).get("comment"),
                )
                for f in struct.fields
            )
        )

    def type(self, type_: spark_types.DataType, path: str) -> ice.Type:
        match type_:
            case spark_types.DecimalType():
                return ice.DecimalType(type_.precision, type_.scale)
            case spark_types.StructType():
                return self.struct(type_, f"{path}.")
            case spark_types.ArrayType():
                return ice.ListType(
                    element_id=self._next_id(),
                    element_type=self.type(type_.elementType, f"{path}.element"),
                    element_required=not (type_.containsNull or self._all_optional),
                )
            case spark_types.MapType():
                return ice.MapType(
                    key_id=self._next_id(),
                    key_type=self.type(type_.keyType, f"{path}.key"),
                    value_id=self._next_id(),
                    value_type=self.type(type_.valueType, f"{path}.value"),
                    value_required=not (type_.valueContainsNull or self._all_optional),
                )
        own = geo_type_of(type_) or nanos_type_of(type_)
        if own is not None:
            return own
        if getattr(type_, "precision", 0) > _TIME_DIGITS and type_.typeName().startswith("time"):
            raise UnsupportedFeatureError(
                f"column '{path}': {type_.simpleString()} has more digits than Iceberg's time, "
                f"which has microseconds; use TIME({_TIME_DIGITS})"
            )
        make = _ICEBERG_BY_SPARK.get(type(type_))
        if make is None:
            raise UnsupportedFeatureError(
                f"column '{path}': Spark type {type_.simpleString()} has no Iceberg type here; "
                "cast the column before writing"
            )
        return make()


def project_like(table_schema: Schema, required_schema: spark_types.StructType) -> Schema:
    """Return the table's columns that a user-given Spark schema names, in the order of that schema.

    Structs, lists and maps are projected too. The types must be the types of the table's columns; a
    difference raises `InvalidRequestError` naming the column.
    """
    struct = _project_struct(table_schema.as_struct, required_schema, "")
    return Schema(fields=struct.fields, schema_id=table_schema.schema_id)


def _project_struct(
    struct: ice.StructType, required_schema: spark_types.StructType, prefix: str
) -> ice.StructType:
    fields = []
    for want in required_schema.fields:
        field = struct.field_named(want.name) or _only_match(struct, want.name)
        if field is None:
            names = ", ".join(f.name for f in struct.fields)
            raise InvalidRequestError(
                f"the schema asks for column '{prefix}{want.name}'; the table has: {names}"
            )
        type_ = _project_type(field.type, want.dataType, f"{prefix}{field.name}")
        _check_nulls(field.optional, want.nullable, f"{prefix}{want.name}")
        # Spark compares the names as they are written in its schema.
        as_wanted = (want.name, type_, not want.nullable)
        if as_wanted != (field.name, field.type, field.required):
            name, type_, required = as_wanted
            field = replace(field, name=name, type=type_, required=required)
        fields.append(field)
    return ice.StructType(tuple(fields))


def _check_nulls(allowed: bool, expected: bool, path: str) -> None:
    if allowed and not expected:
        raise InvalidRequestError(
            f"the schema asks for column '{path}' NOT NULL, the table allows nulls; leave NOT NULL "
            "out"
        )


def _only_match(struct: ice.StructType, name: str) -> ice.NestedField | None:
    matches = [f for f in struct.fields if f.name.lower() == name.lower()]
    return matches[0] if len(matches) == 1 else None


def _project_type(type_: ice.Type, required: spark_types.DataType, path: str) -> ice.Type:
    match (type_, required):
        case (ice.StructType(), spark_types.StructType()):
            return _project_struct(type_, required, f"{path}.")
        case (ice.ListType(), spark_types.ArrayType()):
            _check_nulls(not type_.element_required, required.containsNull, f"{path}.element")
            inner = _project_type(type_.element_type, required.elementType, f"{path}.element")
            return replace(type_, element_type=inner, element_required=not required.containsNull)
        case (ice.MapType(), spark_types.MapType()):
            _check_nulls(not type_.value_required, required.valueContainsNull, f"{path}.value")
            return replace(
                type_,
                key_type=_project_type(type_.key_type, required.keyType, f"{path}.key"),
                value_type=_project_type(type_.value_type, required.valueType, f"{path}.value"),
                value_required=not required.valueContainsNull,
            )
    has = to_spark_type(type_, path)
    if nanos_type_of(has) is not None and isinstance(required, spark_types.BinaryType):
        # as the catalog shows the column where Spark's setting is off
        raise _no_type(type_, path)
    if has != required:
        raise InvalidRequestError(
            f"the schema asks for column '{path}' as {required.simpleString()}, "
            f"the table has {has.simpleString()}; read it as it is and cast afterwards"
        )
    return type_


_OF_EVERY_TABLE = (SPEC_ID, FILE, POS, DELETED)


def hidden_columns(metadata: TableMetadata) -> Schema:
    """Return the hidden columns of a table."""
    lineage = lineage_columns(metadata.format_version)
    partition = partition_of(metadata)
    return Schema(fields=(*_OF_EVERY_TABLE, *lineage, *([] if partition is None else [partition])))


def project_with_hidden_columns(
    schema: Schema, required_schema: spark_types.StructType, metadata: TableMetadata
) -> Schema:
    """Return the columns that Spark requires, including hidden columns, in Spark's order."""
    partition = partition_of(metadata)
    hidden = PLAIN_METADATA_COLUMNS
    if partition is not None:
        hidden = {**hidden, partition.name: partition}
    names = {f.name for f in required_schema.fields} - {f.name for f in schema.fields}
    needed = tuple(column for name, column in hidden.items() if name in names)
    columns = Schema(fields=(*schema.fields, *needed), schema_id=schema.schema_id)
    return project_like(columns, required_schema)
