"""The structs of manifest lists and manifests, and their Avro schemas for versions 1, 2 and 3.

Specification, "Manifests", "Manifest Entry Fields", "Data File Fields" and "Manifest Lists". Field
order and names are those Java writes; fields that writers must leave out are not here.
"""

from __future__ import annotations

from typing import Any

from iceberg_pyspark.spec.avro_types import record_schema
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    Type,
)

BLOCK_SIZE_IN_BYTES = 64 * 1024 * 1024
"""What v1 manifests hold in the deprecated field 105, which old readers require."""


def _required(field_id: int, name: str, type_: Type) -> NestedField:
    return NestedField(field_id=field_id, name=name, type=type_, required=True)


def _optional(field_id: int, name: str, type_: Type) -> NestedField:
    return NestedField(field_id=field_id, name=name, type=type_)


def _metric(field_id: int, name: str, key_id: int, value_id: int, value: Type) -> NestedField:
    map_type = MapType(
        key_id=key_id,
        key_type=IntegerType(),
        value_id=value_id,
        value_type=value,
        value_required=True,
    )
    return _optional(field_id, name, map_type)


METRIC_FIELDS = (
    _metric(108, "column_sizes", 117, 118, LongType()),
    _metric(109, "value_counts", 119, 120, LongType()),
    _metric(110, "null_value_counts", 121, 122, LongType()),
    _metric(137, "nan_value_counts", 138, 139, LongType()),
    _metric(125, "lower_bounds", 126, 127, BinaryType()),
    _metric(128, "upper_bounds", 129, 130, BinaryType()),
)
"""The metrics of a file: maps from column id."""

_SPLIT_OFFSETS = _optional(
    132,
    "split_offsets",
    ListType(element_id=133, element_type=LongType(), element_required=True),
)
_EQUALITY_IDS = _optional(
    135,
    "equality_ids",
    ListType(element_id=136, element_type=IntegerType(), element_required=True),
)


def data_file_struct(partition_type: StructType, format_version: int) -> StructType:
    """The `data_file` struct (field 2) of a manifest of that format version."""
    fields = [
        _required(100, "file_path", StringType()),
        _required(101, "file_format", StringType()),
        _required(102, "partition", partition_type),
        _required(103, "record_count", LongType()),
        _required(104, "file_size_in_bytes", LongType()),
    ]
    if format_version == 1:
        fields.append(_required(105, "block_size_in_bytes", LongType()))
    else:
        fields.insert(0, _required(134, "content", IntegerType()))
    fields += [*METRIC_FIELDS, _optional(131, "key_metadata", BinaryType()), _SPLIT_OFFSETS]
    if format_version >= 2:
        fields.append(_EQUALITY_IDS)
    fields.append(_optional(140, "sort_order_id", IntegerType()))
    if format_version >= 3:
        fields.append(_optional(142, "first_row_id", LongType()))
    if format_version >= 2:
        fields.append(_optional(143, "referenced_data_file", StringType()))
    if format_version >= 3:
        fields.append(_optional(144, "content_offset", LongType()))
        fields.append(_optional(145, "content_size_in_bytes", LongType()))
    return StructType(tuple(fields))


def manifest_entry_schema(partition_type: StructType, format_version: int) -> dict[str, Any]:
    """The Avro schema of a manifest's records; `partition_type` is that of the manifest's spec."""
    fields = [_required(0, "status", IntegerType())]
    if format_version == 1:
        fields.append(_required(1, "snapshot_id", LongType()))
    else:
        fields += [
            _optional(1, "snapshot_id", LongType()),
            _optional(3, "sequence_number", LongType()),
            _optional(4, "file_sequence_number", LongType()),
        ]
    fields.append(_required(2, "data_file", data_file_struct(partition_type, format_version)))
    return record_schema(StructType(tuple(fields)), "manifest_entry")


_FIELD_SUMMARY = StructType(
    (
        _required(509, "contains_null", BooleanType()),
        _optional(518, "contains_nan", BooleanType()),
        _optional(510, "lower_bound", BinaryType()),
        _optional(511, "upper_bound", BinaryType()),
    )
)
_PARTITIONS = _optional(
    507,
    "partitions",
    ListType(element_id=508, element_type=_FIELD_SUMMARY, element_required=True),
)


def manifest_file_schema(format_version: int) -> dict[str, Any]:
    """The Avro schema of a manifest list's records."""
    path = [
        _required(500, "manifest_path", StringType()),
        _required(501, "manifest_length", LongType()),
        _required(502, "partition_spec_id", IntegerType()),
    ]
    counts: tuple[tuple[int, str, Type], ...] = (
        (504, "added_files_count", IntegerType()),
        (505, "existing_files_count", IntegerType()),
        (506, "deleted_files_count", IntegerType()),
        (512, "added_rows_count", LongType()),
        (513, "existing_rows_count", LongType()),
        (514, "deleted_rows_count", LongType()),
    )
    if format_version == 1:
        fields = [
            *path,
            _required(503, "added_snapshot_id", LongType()),
            *(_optional(*c) for c in counts[:3]),
            _PARTITIONS,
            *(_optional(*c) for c in counts[3:]),
        ]
    else:
        fields = [
            *path,
            _required(517, "content", IntegerType()),
            _required(515, "sequence_number", LongType()),
            _required(516, "min_sequence_number", LongType()),
            _required(503, "added_snapshot_id", LongType()),
            *(_required(*c) for c in counts),
            _PARTITIONS,
        ]
    fields.append(_optional(519, "key_metadata", BinaryType()))
    if format_version >= 3:
        fields.append(_optional(520, "first_row_id", LongType()))
    return record_schema(StructType(tuple(fields)), "manifest_file")
