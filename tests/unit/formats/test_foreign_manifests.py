"""Manifests as other writers write them: other names, types and versions, and damage."""

from __future__ import annotations

import io as streams
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from iceberg_pyspark.errors import InvalidMetadataError, UnsupportedFeatureError
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_files.open_manifest import Decoder
from iceberg_pyspark.formats.manifest_reader import read_manifest_entries, read_partition_types
from iceberg_pyspark.spec.avro_schemas import manifest_entry_schema
from iceberg_pyspark.spec.entry_columns import ENTRY_COLUMNS, METRIC_MAPS
from iceberg_pyspark.spec.manifests import (
    EntryStatus,
    ManifestContent,
    ManifestFile,
)
from iceberg_pyspark.spec.partitioning import PartitionSpec, partition_type
from iceberg_pyspark.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    UnknownType,
    UUIDType,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.manifests import (
    SEQUENCE_NUMBER,
    SNAPSHOT_ID,
    a_file,
    added,
    identity_table,
    listed,
)

DECODERS: tuple[Decoder, ...] = ("fastavro", "datafusion")
NO_PARTITION = StructType(())


def write_raw(
    io: MemoryFileIO,
    schema: Mapping[str, Any],
    records: Iterable[Mapping[str, Any]],
    *,
    metadata: Mapping[str, str] | None = None,
    location: str = "metadata/raw.avro",
    **values: Any,
) -> ManifestFile:
    """Write a manifest as another writer might: with its own Avro schema and records."""
    out = streams.BytesIO()
    fastavro.writer(out, dict(schema), records, metadata=dict(metadata or {}))
    io.write_bytes(location, out.getvalue())
    return ManifestFile(
        **{
            "manifest_path": location,
            "manifest_length": len(out.getvalue()),
            "partition_spec_id": 0,
            "sequence_number": SEQUENCE_NUMBER,
            "added_snapshot_id": SNAPSHOT_ID,
            **values,
        }
    )


def raw_entry(version: int = 2, status: int = 1, **file: Any) -> dict[str, Any]:
    return {
        "status": status,
        "snapshot_id": SNAPSHOT_ID,
        "data_file": {
            "content": 0,
            "file_path": "a",
            "file_format": "PARQUET",
            "partition": {},
            "record_count": 1,
            "file_size_in_bytes": 2,
            "block_size_in_bytes": 3,
            **file,
        },
    }


@pytest.mark.parametrize("decoder", DECODERS)
def test_v1_manifests_have_sequence_number_zero_and_data(decoder: Decoder) -> None:
    """docs/conformance.md 3."""
    io = MemoryFileIO()
    schema = manifest_entry_schema(NO_PARTITION, 1)
    manifest = write_raw(io, schema, [raw_entry(status=0), raw_entry(status=1)])
    table = read_entries(io, manifest, NO_PARTITION, decoder=decoder)
    assert table["sequence_number"].to_pylist() == [0, 0]
    assert table["file_sequence_number"].to_pylist() == [0, 0]
    assert table["content"].to_pylist() == [0, 0]


@pytest.mark.parametrize("status", [EntryStatus.EXISTING, EntryStatus.DELETED])
def test_only_added_entries_inherit_sequence_numbers(status: EntryStatus) -> None:
    """docs/conformance.md 1."""
    io = MemoryFileIO()
    schema = manifest_entry_schema(NO_PARTITION, 2)
    manifest = write_raw(io, schema, [raw_entry(status=status)])
    with pytest.raises(InvalidMetadataError, match=r"raw\.avro.*only added files inherit"):
        read_entries(io, manifest, NO_PARTITION, drop_deleted=False)


@pytest.mark.parametrize("status", [0, 1, 2])
def test_any_entry_inherits_the_snapshot_id(status: int) -> None:
    """docs/conformance.md 2."""
    io = MemoryFileIO()
    schema = manifest_entry_schema(NO_PARTITION, 2)
    record = raw_entry(status=status) | {
        "snapshot_id": None,
        "sequence_number": 1,
        "file_sequence_number": 1,
    }
    manifest = write_raw(io, schema, [record])
    table = read_entries(io, manifest, NO_PARTITION, drop_deleted=False)
    assert table["snapshot_id"].to_pylist() == [SNAPSHOT_ID]
    assert table["status"].to_pylist() == [status]


def swapped(schema: Any) -> Any:
    """Return the Avro schema with reversed unions, other names, and long for int in lists."""
    if isinstance(schema, list):
        return [swapped(s) for s in reversed(schema)]
    if not isinstance(schema, dict):
        return schema
    out = {k: swapped(v) if k in ("type", "items") else v for k, v in schema.items()}
    if "fields" in schema:
        out["fields"] = [
            {k: v for k, v in swapped(f).items() if k != "default"} for f in schema["fields"]
        ]
    if schema.get("element-id") == 136:
        out["items"] = "long"
    if "field-id" in schema:
        out["name"] = f"any_{schema['field-id']}"
    return out


def renamed(record: Any, schema: Any) -> Any:
    """Return the record with the names of `swapped`."""
    if isinstance(schema, list):
        return renamed(record, next(s for s in schema if s != "null"))
    if isinstance(record, list):
        return [renamed(r, schema["items"]) for r in record]
    if not isinstance(record, dict):
        return record
    return {
        f"any_{f['field-id']}": renamed(record[f["name"]], f["type"])
        for f in schema["fields"]
        if f["name"] in record
    }


@pytest.mark.parametrize("decoder", DECODERS)
def test_fields_are_found_by_id_whatever_their_name(decoder: Decoder) -> None:
    """docs/conformance.md 11."""
    io = MemoryFileIO()
    schema = manifest_entry_schema(NO_PARTITION, 2)
    record = raw_entry(
        content=2,
        equality_ids=[4, 5],
        value_counts=[{"key": 1, "value": 9}],
        split_offsets=[4],
    )
    manifest = write_raw(
        io,
        swapped(schema),
        [renamed(record, schema)],
        content=ManifestContent.DELETES,
    )
    table = read_entries(io, manifest, NO_PARTITION, metrics="all", decoder=decoder)
    row = table.to_pylist()[0]
    assert (row["file_path"], row["equality_ids"], row["split_offsets"]) == ("a", [4, 5], [4])
    assert row["value_counts"] == [(1, 9)]
    assert row["content"] == 2


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("logical", [True, False])
def test_days_read_the_same_with_and_without_date(logical: bool, decoder: Decoder) -> None:
    """docs/conformance.md 56."""
    io = MemoryFileIO()
    type_ = StructType((NestedField(field_id=1000, name="d", type=DateType()),))
    written = type_ if logical else StructType((replace(type_.fields[0], type=IntegerType()),))
    schema = manifest_entry_schema(written, 2)
    manifest = write_raw(io, schema, [raw_entry(partition={"d": 17000})])
    table = read_entries(io, manifest, type_, decoder=decoder)
    assert table["partition"].to_pylist() == [{"1000": 17000}]
    assert table["partition"].type.field(0).type == pa.int32()


@pytest.mark.parametrize("decoder", DECODERS)
def test_partition_values_written_before_a_promotion_are_widened(decoder: Decoder) -> None:
    io = MemoryFileIO()
    old, old_spec = identity_table(IntegerType(), DecimalType(9, 2))
    new, _ = identity_table(LongType(), DecimalType(20, 2))
    decimal = "12.50"
    file = a_file(partition=(7, Decimal(decimal)))
    manifest = listed(io, [added(file)], schema=old, spec=old_spec)
    table = read_entries(io, manifest, partition_type(old_spec, [new]), decoder=decoder)
    row = table["partition"].to_pylist()[0]
    assert (row["1000"], str(row["1001"])) == (7, decimal)


def test_a_partition_value_of_another_type_is_damage() -> None:
    io = MemoryFileIO()
    old, spec = identity_table(StringType())
    new, _ = identity_table(LongType())
    manifest = listed(io, [added(a_file(partition=("7",)))], schema=old, spec=spec)
    with pytest.raises(
        InvalidMetadataError, match=r"m0\.avro.*'c1' are string, and not long.*was replaced"
    ):
        read_entries(io, manifest, partition_type(spec, [new]))


def test_a_missing_partition_field_is_damage() -> None:
    io = MemoryFileIO()
    schema, spec = identity_table(LongType())
    manifest = listed(io, [added(a_file())])
    with pytest.raises(InvalidMetadataError, match="partition field 1000 of spec 0"):
        read_entries(io, manifest, partition_type(spec, [schema]))


def test_v1_partition_fields_may_have_other_ids() -> None:
    io = MemoryFileIO()
    written = StructType((NestedField(field_id=1, name="d", type=LongType()),))
    manifest = write_raw(io, manifest_entry_schema(written, 1), [raw_entry(partition={"d": 3})])
    type_ = StructType((NestedField(field_id=1000, name="d", type=LongType()),))
    assert read_entries(io, manifest, type_)["partition"].to_pylist() == [{"1000": 3}]


def test_a_partition_field_written_as_null_is_null() -> None:
    io = MemoryFileIO()
    written = StructType((NestedField(field_id=1000, name="d", type=UnknownType()),))
    manifest = write_raw(io, manifest_entry_schema(written, 2), [raw_entry(partition={"d": None})])
    type_ = StructType((NestedField(field_id=1000, name="d", type=LongType()),))
    assert read_entries(io, manifest, type_)["partition"].to_pylist() == [{"1000": None}]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (LongType(), 3),
        (DateType(), 3),
        (StringType(), "x"),
        (BinaryType(), b"\xff"),
        (UUIDType(), bytes(range(16))),
        (DecimalType(9, 2), Decimal("1.20")),
        (UnknownType(), None),
    ],
)
def test_values_of_unknown_type_are_kept_as_they_are(written: PrimitiveType, value: Any) -> None:
    """docs/conformance.md 26."""
    io = MemoryFileIO()
    schema = StructType((NestedField(field_id=1000, name="d", type=written),))
    manifest = write_raw(io, manifest_entry_schema(schema, 2), [raw_entry(partition={"d": value})])
    type_ = StructType((NestedField(field_id=1000, name="d", type=UnknownType()),))
    for decoder in DECODERS:
        table = read_entries(io, manifest, type_, decoder=decoder)
        assert table["partition"].to_pylist() == [{"1000": value}]
    assert read_partition_types(io, manifest.manifest_path)[1000] == written


@pytest.mark.parametrize("source", [StringType(), LongType(), UUIDType(), DecimalType(9, 2)])
@pytest.mark.parametrize("decoder", DECODERS)
def test_void_may_be_stored_as_int_whatever_its_source(
    source: PrimitiveType, decoder: Decoder
) -> None:
    io = MemoryFileIO()
    int_struct = StructType((NestedField(field_id=1000, name="d", type=IntegerType()),))
    written = manifest_entry_schema(int_struct, 2)
    manifest = write_raw(io, written, [raw_entry(partition={"d": None})])
    type_ = StructType((NestedField(field_id=1000, name="d", type=source),))
    table = read_entries(io, manifest, type_, decoder=decoder)
    assert table["partition"].to_pylist() == [{"1000": None}]


@pytest.mark.parametrize("decoder", DECODERS)
def test_names_avro_does_not_allow_are_sanitised(decoder: Decoder) -> None:
    """docs/conformance.md 82."""
    io = MemoryFileIO()
    names = ["a.b", "1a", "id:foo", "\U0001f600", "a_x2Eb", ""]
    fields = [
        NestedField(field_id=1000 + i, name=name, type=LongType()) for i, name in enumerate(names)
    ]
    type_ = StructType(tuple(fields))
    schema = manifest_entry_schema(type_, 2)
    partition = schema["fields"][-1]["type"]["fields"][3]["type"]
    written = [f["name"] for f in partition["fields"]]
    assert written == ["a_x2Eb", "_1a", "id_x3Afoo", "_xD83D_xDE00", "a_x2Eb_1004", "_"]
    record = raw_entry(partition={name: i for i, name in enumerate(written)})
    manifest = write_raw(io, schema, [record])
    table = read_entries(io, manifest, type_, decoder=decoder)
    assert table["partition"].to_pylist() == [{str(1000 + i): i for i in range(len(names))}]


def test_an_unknown_file_format_is_refused_by_name() -> None:
    io = MemoryFileIO()
    schema = manifest_entry_schema(NO_PARTITION, 2)
    manifest = write_raw(io, schema, [raw_entry(file_format="lance")])
    with pytest.raises(UnsupportedFeatureError, match=r"raw\.avro: file format 'lance'"):
        read_entries(io, manifest, NO_PARTITION)


def test_an_unknown_status_is_damage() -> None:
    io = MemoryFileIO()
    manifest = write_raw(io, manifest_entry_schema(NO_PARTITION, 2), [raw_entry(status=7)])
    with pytest.raises(InvalidMetadataError, match="status 7"):
        read_entries(io, manifest, NO_PARTITION)


def test_a_manifest_without_data_files_is_damage() -> None:
    io = MemoryFileIO()
    schema = {
        "type": "record",
        "name": "manifest_entry",
        "fields": [{"name": "status", "type": "int", "field-id": 0}],
    }
    manifest = write_raw(io, schema, [{"status": 1}])
    with pytest.raises(InvalidMetadataError, match="data_file"):
        read_entries(io, manifest, NO_PARTITION)


def test_metrics_are_lists_of_records_with_the_map_type() -> None:
    """docs/conformance.md 13."""
    text = json.dumps(manifest_entry_schema(NO_PARTITION, 3))
    for ids in ("k117_v118", "k119_v120", "k121_v122", "k138_v139", "k126_v127", "k129_v130"):
        assert f'"logicalType": "map", "items": {{"type": "record", "name": "{ids}"' in text


def test_a_reader_asked_for_whole_metrics_gets_every_map() -> None:
    io = MemoryFileIO()
    manifest = listed(io, [added(a_file())])
    table = read_entries(io, manifest, NO_PARTITION, metrics="all")
    assert tuple(table.schema.names) == ENTRY_COLUMNS + METRIC_MAPS


def test_an_unpartitioned_spec_reads_back_empty_tuples() -> None:
    io = MemoryFileIO()
    spec = PartitionSpec(spec_id=3)
    manifest = listed(io, [added(a_file(spec_id=3))], spec=spec)
    (entry,) = read_manifest_entries(io, manifest, NO_PARTITION)
    assert entry.data_file.partition == ()
    assert entry.data_file.spec_id == 3
    assert manifest.partitions == ()


def optional(schema: Any) -> Any:
    """Return the Avro schema with every field optional, at all depths."""
    if isinstance(schema, list):
        return [optional(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    out = {k: optional(v) if k in ("type", "items") else v for k, v in schema.items()}
    if "fields" in schema:
        out["fields"] = [
            {**f, "type": t if isinstance(t := optional(f["type"]), list) else ["null", t]}
            for f in schema["fields"]
        ]
    return out


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("partition", [{}, None])
def test_interop_every_field_may_be_optional_even_an_empty_partition(
    decoder: Decoder, partition: Any
) -> None:
    """BigQuery writes the partitions of a table without partitions in this way."""
    io = MemoryFileIO()
    schema = optional(manifest_entry_schema(NO_PARTITION, 2))
    records = [raw_entry(partition=partition, file_path=f"f{i}") for i in range(3)]
    manifest = write_raw(io, schema, records)
    table = read_entries(io, manifest, NO_PARTITION, decoder=decoder, metrics="all")
    assert table["file_path"].to_pylist() == ["f0", "f1", "f2"]
    assert table["partition"].to_pylist() == [{}] * 3
    assert [e.data_file.partition for e in read_manifest_entries(io, manifest, NO_PARTITION)] == [
        ()
    ] * 3


@pytest.mark.parametrize("decoder", DECODERS)
def test_an_optional_partition_with_fields_is_read(decoder: Decoder) -> None:
    io = MemoryFileIO()
    type_ = StructType((NestedField(field_id=1000, name="p", type=IntegerType()),))
    schema = optional(manifest_entry_schema(type_, 2))
    records = [raw_entry(partition={"p": 7}), raw_entry(partition={"p": None})]
    manifest = write_raw(io, schema, records)
    table = read_entries(io, manifest, type_, decoder=decoder)
    assert table["partition"].to_pylist() == [{"1000": 7}, {"1000": None}]


@pytest.mark.parametrize(
    ("of", "content"),
    [(ManifestContent.DATA, 1), (ManifestContent.DELETES, 0), (ManifestContent.DELETES, -(2**31))],
)
def test_a_file_of_content_that_its_manifest_does_not_hold_is_damage(
    of: ManifestContent, content: int
) -> None:
    io = MemoryFileIO()
    schema = manifest_entry_schema(NO_PARTITION, 2)
    manifest = write_raw(io, schema, [raw_entry(content=content)], content=of)
    with pytest.raises(InvalidMetadataError, match=f"content {content} in a manifest of"):
        read_entries(io, manifest, NO_PARTITION)
