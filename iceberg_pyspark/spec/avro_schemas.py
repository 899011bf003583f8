"""The structs of manifest lists and manifests, and their Avro schemas for versions 1, 2 and 3.

Specification, "Manifests", "Manifest Entry Fields", "Data File Fields" and "Manifest Lists". Field
order and names are those that Java writes; fields that the specification forbids writers to write
are absent.
"""

from __future__ import annotations

from typing import Any

from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.avro_types import record_schema

BLOCK_SIZE_IN_BYTES = 64 * 1024 * 1024
"""The value of the deprecated field 105 in v1 manifests, which old readers require."""


def _required_field(field_id: int, name: str, type_: types.Type) -> types.NestedField:
    return types.NestedField(field_id=field_id, name=name, type=type_, required=True)


def _optional(field_id: int, name: str, type_: types.Type) -> types.NestedField:
    return types.NestedField(field_id=field_id, name=name, type=type_)


def _metric(
    field_id: int, name: str, key_id: int, value_id: int, value: types.Type
) -> types.NestedField:
    map_type = types.MapType(
        key_id=key_id,
        key_type=types.IntegerType(),
        value_id=value_id,
        value_type=value,
        value_required=True,
    )
    return _optional(field_id, name, map_type)


METRIC_FIELDS = (
    _metric(108, "column_sizes", 117, 118, types.LongType()),
    _metric(109, "value_counts", 119, 120, types.LongType()),
    _metric(110, "null_value_counts", 121, 122, types.LongType()),
    _metric(137, "nan_value_counts", 138, 139, types.LongType()),
    _metric(125, "lower_bounds", 126, 127, types.BinaryType()),
    _metric(128, "upper_bounds", 129, 130, types.BinaryType()),
)
"""The metrics of a file, each a map keyed by column id."""

_SPLIT_OFFSETS = _optional(
    132,
    "split_offsets",
    types.ListType(element_id=133, element_type=types.LongType(), element_required=True),
)
_EQUALITY_IDS = _optional(
    135,
    "equality_ids",
    types.ListType(element_id=136, element_type=types.IntegerType(), element_required=True),
)


def data_file_struct(partition_type: types.StructType, format_version: int) -> types.StructType:
    """Return the `data_file` struct (field 2) of a manifest of the given format version."""
    fields = [
        _required_field(100, "file_path", types.StringType()),
        _required_field(101, "file_format", types.StringType()),
        _required_field(102, "partition", partition_type),
        _required_field(103, "record_count", types.LongType()),
        _required_field(104, "file_size_in_bytes", types.LongType()),
    ]
    if format_version == 1:
        fields.append(_required_field(105, "block_size_in_bytes", types.LongType()))
    else:
        fields.insert(0, _required_field(134, "content", types.IntegerType()))
    fields += [*METRIC_FIELDS, _optional(131, "key_metadata", types.BinaryType()), _SPLIT_OFFSETS]
    if format_version >= 2:
        fields.append(_EQUALITY_IDS)
    fields.append(_optional(140, "sort_order_id", types.IntegerType()))
    if format_version >= 3:
        fields.append(_optional(142, "first_row_id", types.LongType()))
    if format_version >= 2:
        fields.append(_optional(143, "referenced_data_file", types.StringType()))
    if format_version >= 3:
        fields.append(_optional(144, "content_offset", types.LongType()))
        fields.append(_optional(145, "content_size_in_bytes", types.LongType()))
    return types.StructType(tuple(fields))


def manifest_entry_schema(partition_type: types.StructType, format_version: int) -> dict[str, Any]:
    """Return the Avro schema of the records of a manifest whose spec has `partition_type`."""
    fields = [_required_field(0, "status", types.IntegerType())]
    if format_version == 1:
        fields.append(_required_field(1, "snapshot_id", types.LongType()))
    else:
        fields += [
            _optional(1, "snapshot_id", types.LongType()),
            _optional(3, "sequence_number", types.LongType()),
            _optional(4, "file_sequence_number", types.LongType()),
        ]
    fields.append(_required_field(2, "data_file", data_file_struct(partition_type, format_version)))
    return record_schema(types.StructType(tuple(fields)), "manifest_entry")


_FIELD_SUMMARY = types.StructType(
    (
        _required_field(509, "contains_null", types.BooleanType()),
        _optional(518, "contains_nan", types.BooleanType()),
        _optional(510, "lower_bound", types.BinaryType()),
        _optional(511, "upper_bound", types.BinaryType()),
    )
)
_PARTITIONS = _optional(
    507,
    "partitions",
    types.ListType(element_id=508, element_type=_FIELD_SUMMARY, element_required=True),
)


def manifest_file_schema(format_version: int) -> dict[str, Any]:
    """Return the Avro schema of a manifest list's records."""
    path = [
        _required_field(500, "manifest_path", types.StringType()),
        _required_field(501, "manifest_length", types.LongType()),
        _required_field(502, "partition_spec_id", types.IntegerType()),
    ]
    counts: tuple[tuple[int, str, types.Type], ...] = (
        (504, "added_files_count", types.IntegerType()),
        (505, "existing_files_count", types.IntegerType()),
        (506, "deleted_files_count", types.IntegerType()),
        (512, "added_rows_count", types.LongType()),
        (513, "existing_rows_count", types.LongType()),
        (514, "deleted_rows_count", types.LongType()),
    )
    if format_version == 1:
        fields = [
            *path,
            _required_field(503, "added_snapshot_id", types.LongType()),
            *(_optional(*c) for c in counts[:3]),
            _PARTITIONS,
            *(_optional(*c) for c in counts[3:]),
        ]
    else:
        fields = [
            *path,
            _required_field(517, "content", types.IntegerType()),
            _required_field(515, "sequence_number", types.LongType()),
            _required_field(516, "min_sequence_number", types.LongType()),
            _required_field(503, "added_snapshot_id", types.LongType()),
            *(_required_field(*c) for c in counts),
            _PARTITIONS,
        ]
    fields.append(_optional(519, "key_metadata", types.BinaryType()))
    if format_version >= 3:
        fields.append(_optional(520, "first_row_id", types.LongType()))
    return record_schema(types.StructType(tuple(fields)), "manifest_file")
