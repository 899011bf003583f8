"""Reads Avro data files as record batches with row positions, in bounded memory.

Specification, Appendix A "Avro". Records are decoded one at a time as a whole, which is slow but
exact. Columns are named `_<field id>`, as in `formats/avro/avro.py`. Avro files are never split.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import FIELD_ID_KEY
from iceberg_pyspark.arrow.file_fields import NAME_KEY
from iceberg_pyspark.arrow.formats.data_file_formats import (
    ALL_ROW_GROUPS,
    DataFileReader,
    RowGroupChoice,
)
from iceberg_pyspark.arrow.formats.parquet_reader import empty_batch
from iceberg_pyspark.errors import InvalidMetadataError, UnsupportedFeatureError
from iceberg_pyspark.formats.avro.avro import stream_records
from iceberg_pyspark.formats.avro.renamed_schemas import damage_error

_BATCH_RECORDS = 8_192

ToArrow: TypeAlias = Callable[[Any], Any]
"""A function from a decoded value to a value that `pyarrow.array` accepts."""

_PRIMITIVES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms"),
    ("long", "timestamp-micros"): pa.timestamp("us"),
    ("long", "timestamp-nanos"): pa.timestamp("ns"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}


class AvroFileReader(DataFileReader):
    """An open Avro file."""

    reads_whole_columns = True

    def _open(self) -> None:
        avro = stream_records(self._stream, self._location)
        columns = _ArrowTypes(self._location).fields(avro.schema)
        self._records = avro.batches(_BATCH_RECORDS)
        self._is_read = False
        self._converters = [convert for _, convert in columns]
        self.schema = pa.schema([field for field, _ in columns])

    def batches(
        self, leaves: Collection[int], choice: RowGroupChoice = ALL_ROW_GROUPS
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches as `DataFileReader.batches` describes; the file is read only once."""
        if self._is_read:
            raise RuntimeError(f"{self._location} is read twice: open it again")
        self._is_read = True
        columns = self._columns_of(leaves)
        schema = pa.schema([self.schema.field(i) for i in columns])
        position = 0
        for records in self._records:
            if columns:
                arrays = [self._array(i, records) for i in columns]
                yield position, pa.RecordBatch.from_arrays(arrays, schema=schema)
            else:
                yield position, empty_batch(len(records))
            position += len(records)

    def _array(self, column: int, records: list[dict[str, Any]]) -> pa.Array:
        field = self.schema.field(column)
        convert = self._converters[column]
        try:
            values = [record[field.name] for record in records]
            if convert is not None:
                values = [None if value is None else convert(value) for value in values]
            return pa.array(values, field.type)
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as e:
            raise damage_error(
                self._location, f"column {field.name}: {type(e).__name__}: {e}"
            ) from e


_Column: TypeAlias = tuple[pa.Field, ToArrow | None]
"""A field, and the function that converts its values (None: none is needed)."""

_Type: TypeAlias = tuple[pa.DataType, ToArrow | None]
"""The same of a type."""


class _ArrowTypes:
    """A converter of Avro types to Arrow; a named type is defined once, then used by name."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._named_types: dict[str, Any] = {}

    def fields(self, schema: Mapping[str, Any]) -> list[_Column]:
        """Return the columns of a file's records."""
        try:
            return self._record(schema)
        except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as e:
            raise damage_error(self._location, f"its schema: {type(e).__name__}: {e}") from e

    def _record(self, schema: Mapping[str, Any]) -> list[_Column]:
        columns = []
        for i, f in enumerate(schema["fields"]):
            # the same names as in `formats/avro/avro.py`
            field_id = f.get("field-id") if isinstance(f.get("field-id"), int) else None
            name = f"x{i}" if field_id is None else f"_{field_id}"
            column = self._field(name, field_id, f["type"], f["name"])
            if column is not None:
                columns.append(column)
        return columns

    def _field(self, name: str, field_id: int | None, schema: Any, own_name: str) -> _Column | None:
        """Return the column of a field, or None for a field of type null, which has no values."""
        column_type = self._type(schema)
        if column_type is None:
            return None
        type_, convert = column_type
        metadata = {NAME_KEY: own_name.encode()}
        if field_id is not None:
            metadata[FIELD_ID_KEY] = str(field_id).encode()
        return pa.field(name, type_, metadata=metadata), convert

    def _type(self, schema: Any) -> _Type | None:
        match schema:
            case "null":
                return None
            case list():
                return self._union([branch for branch in schema if branch != "null"])
            case str() if schema in _PRIMITIVES:
                return _PRIMITIVES[schema], None
            case str() if schema in self._named_types:
                return self._type(self._named_types[schema])
            case {"type": "record" | "fixed" as kind, "name": str(name)}:
                self._named_types[name] = schema
                if kind == "fixed":
                    return self._fixed_type(schema)
                return self._variant(schema) if _is_variant(schema) else self._struct(schema)
            case {"type": "array", "logicalType": "map", "items": items}:
                return self._entries(items)
            case {"type": "array", "items": items}:
                return self._list(schema.get("element-id"), items)
            case {"type": "map", "values": values}:
                return self._text_map(schema, values)
            case {"type": "bytes", "logicalType": "decimal"}:
                return _decimal(schema), None
            case {"type": str(name), "logicalType": str(logical)} if (name, logical) in _LOGICAL:
                return _LOGICAL[name, logical], None
            case {"type": inner} if inner != schema:
                return self._type(inner)
        raise InvalidMetadataError(
            f"{self._location}: its schema has the type {str(schema)[:80]}, which is not a type of "
            "Avro; the file is damaged"
        )

    def _union(self, branches: list[Any]) -> _Type | None:
        if len(branches) > 1:
            raise UnsupportedFeatureError(
                f"{self._location}: a union of {len(branches)} types besides null cannot be read; "
                "select the other columns"
            )
        return self._type(branches[0]) if branches else None

    def _fixed_type(self, schema: Mapping[str, Any]) -> _Type:
        if schema.get("logicalType") == "decimal":
            return _decimal(schema), None
        return pa.binary(schema["size"]), None

    def _struct(self, schema: Mapping[str, Any]) -> _Type:
        columns = self._record(schema)
        type_ = pa.struct([field for field, _ in columns])
        converts = {field.name: c for field, c in columns if c is not None}
        if not converts:
            return type_, None

        def convert(record: dict[str, Any]) -> dict[str, Any]:
            changed_values = {n: c(record[n]) for n, c in converts.items() if record[n] is not None}
            return {**record, **changed_values}

        return type_, convert

    def _variant(self, schema: Mapping[str, Any]) -> _Type:
        """Return the type of a variant, whose fields are found by their own names."""
        columns = [
            (name, field)
            for name, (field, _) in zip(_names_of(schema), self._record(schema), strict=True)
        ]
        type_ = pa.struct([field.with_name(name) for name, field in columns])
        return type_, lambda record: {name: record[field.name] for name, field in columns}

    def _list(self, element_id: Any, items: Any) -> _Type:
        field, convert = self._part("element", element_id, items)
        return pa.list_(field), None if convert is None else _each(convert)

    def _entries(self, items: Any) -> _Type:
        """Return the type of a map that is stored as an array of key-value records."""
        (key, to_key), (value, to_value) = self._record(items)

        def convert(entries: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
            return [(_to(to_key, e[key.name]), _to(to_value, e[value.name])) for e in entries]

        return pa.map_(key.with_nullable(False), value), convert

    def _text_map(self, schema: Mapping[str, Any], values: Any) -> _Type:
        key, _ = self._part("key", schema.get("key-id"), "string")
        value, to_value = self._part("value", schema.get("value-id"), values)

        def convert(entries: dict[str, Any]) -> list[tuple[Any, Any]]:
            return [(k, _to(to_value, v)) for k, v in entries.items()]

        return pa.map_(key.with_nullable(False), value), convert

    def _part(self, name: str, field_id: Any, schema: Any) -> _Column:
        column = self._field(name, field_id, schema, name)
        if column is None:
            raise UnsupportedFeatureError(
                f"{self._location}: a list or map with elements of type null cannot be read; "
                "select the other columns"
            )
        return column


def _names_of(schema: Mapping[str, Any]) -> list[str]:
    return [f["name"] for f in schema["fields"]]


def _is_variant(schema: Mapping[str, Any]) -> bool:
    """Return whether a record is a variant: its two fields have no ids, unlike those of structs."""
    are_bytes = all(f["type"] == "bytes" and "field-id" not in f for f in schema["fields"])
    return are_bytes and sorted(_names_of(schema)) == ["metadata", "value"]


def _decimal(schema: Mapping[str, Any]) -> pa.DataType:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if type(precision) is not int or type(scale) is not int:
        raise ValueError("precision and scale of a decimal must be integers")
    return pa.decimal128(precision, scale)


def _to(convert: ToArrow | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def _each(convert: ToArrow) -> ToArrow:
    return lambda values: [_to(convert, value) for value in values]
