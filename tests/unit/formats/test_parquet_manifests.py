"""Parquet manifests have the same entries as Avro manifests, and memory is bounded."""

from __future__ import annotations

import io as streams
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from iceberg_pyspark.errors import IcebergError, InvalidMetadataError
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_reader import read_manifest_header, read_partition_types
from iceberg_pyspark.spec.manifests import ManifestFile
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.types import FixedType, StringType, StructType, UnknownType, UUIDType
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.amounts import FULL_WORK
from tests.support.manifest_entries import written_entries
from tests.support.manifests import a_file, added, deleted, existing, identity_table, listed
from tests.support.strategies import PRIMITIVE_TYPES
from tests.support.version_4 import parquet_manifest

NO_PARTITION = StructType(())


def in_parquet(io: MemoryFileIO, manifest: ManifestFile, **how: Any) -> ManifestFile:
    """Return the same manifest in Parquet, as listed by a version 4 table."""
    data = parquet_manifest(io.read_bytes(manifest.manifest_path), **how)
    io.write_bytes("metadata/leaf.parquet", data)
    return replace(
        manifest,
        manifest_path="metadata/leaf.parquet",
        manifest_length=len(data),
        table_location="s3://b/t",
    )


@settings(max_examples=settings().max_examples // 2, deadline=None)
@given(st.data())
def test_the_entries_are_those_of_the_manifest_in_avro(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(PRIMITIVE_TYPES), max_size=3))
    schema, spec = identity_table(*types)
    type_ = partition_type(spec, [schema])
    io = MemoryFileIO()
    entries = data.draw(written_entries(type_, 3))
    avro = listed(io, entries, schema=schema, spec=spec, format_version=3)
    try:
        parquet = in_parquet(io, avro, rename=lambda path: f"s3:{path}")
    except (ValueError, OverflowError):
        # fastavro, which copies the entries here, has no dates outside of the years 1 to 9999
        reject()
    for metrics in ((), (1, 3), "all"):
        expected, actual = (
            read_entries(io, m, type_, metrics=metrics, drop_deleted=False) for m in (avro, parquet)
        )
        actual.validate(full=True)
        assert actual.schema == expected.schema
        as_is = actual.to_pylist()
        for row in as_is:
            row["file_path"] = row["file_path"].removeprefix("s3:")
        assert repr(as_is) == repr(expected.to_pylist())
    headers = [read_manifest_header(io, m.manifest_path) for m in (avro, parquet)]
    assert replace(headers[1], format_version=3) == headers[0]
    if entries:
        expected_types = {
            # pyarrow writes a UUID's bytes without its logical type.
            i: FixedType(length=16) if isinstance(t, UUIDType) else t
            for i, t in read_partition_types(io, avro.manifest_path).items()
            if i >= 1000 and not isinstance(t, UnknownType)
        }
        found_types = read_partition_types(io, parquet.manifest_path)
        assert {i: t for i, t in found_types.items() if i >= 1000} == expected_types


@pytest.mark.parametrize("extra_metadata", [{"format-version": "4"}, {}])
def test_relative_paths_are_below_the_location_of_the_table(extra_metadata: dict[str, str]) -> None:
    io = MemoryFileIO()
    paths = ["data/a.parquet", "/x//y", "s3://other/b", "S3A:c", "9:x", "", "../up"]
    avro = listed(io, [added(a_file(path)) for path in paths], format_version=3)
    table = read_entries(io, in_parquet(io, avro, extra_metadata=extra_metadata), NO_PARTITION)
    assert table["file_path"].to_pylist() == [
        "s3://b/t/data/a.parquet",
        "s3://b/t//x//y",
        "s3://other/b",
        "S3A:c",
        "s3://b/t/9:x",
        "s3://b/t/",
        "s3://b/t/../up",
    ]


def test_paths_in_leaves_of_before_the_upgrade_get_a_scheme() -> None:
    io = MemoryFileIO()
    avro = listed(io, [added(a_file("/x/data/a.parquet"))], format_version=3)
    table = read_entries(io, replace(avro, table_location="file:/x"), NO_PARTITION)
    assert table["file_path"].to_pylist() == ["file:/x/data/a.parquet"]


def test_many_entries_keep_their_order_and_row_ids() -> None:
    io = MemoryFileIO()
    count = 40_000 if FULL_WORK else 10_000
    kinds = (added, existing, deleted)
    avro = listed(
        io,
        [kinds[i % 3](a_file(str(i), value_counts={i % 5: i})) for i in range(count)],
        format_version=3,
    )
    parquet = in_parquet(io, avro, rename=lambda path: f"s3:{path}")
    expected, actual = (read_entries(io, m, NO_PARTITION, metrics="all") for m in (avro, parquet))
    assert actual["first_row_id"].equals(expected["first_row_id"])
    assert actual["value_counts"].to_pylist() == expected["value_counts"].to_pylist()
    assert actual.num_rows == expected.num_rows > 0


@pytest.mark.parametrize("cut", [4, 40, 400, -4, -40])
def test_a_file_that_is_cut_short_is_damaged(cut: int) -> None:
    io = MemoryFileIO()
    parquet = in_parquet(io, listed(io, [added(a_file())], format_version=3))
    io.create_exclusive("metadata/cut.parquet", io.read_bytes(parquet.manifest_path)[:cut])
    with pytest.raises(InvalidMetadataError, match=r"cut\.parquet: damaged Parquet manifest"):
        read_entries(io, replace(parquet, manifest_path="metadata/cut.parquet"), NO_PARTITION)


def test_fewer_entries_than_its_list_says_are_damage() -> None:
    io = MemoryFileIO()
    parquet = in_parquet(io, listed(io, [added(a_file())], format_version=3))
    with pytest.raises(InvalidMetadataError, match="1 entries where its manifest list says 2"):
        read_entries(io, replace(parquet, existing_files_count=1), NO_PARTITION)


def test_a_missing_partition_column_is_damage_where_the_spec_has_fields() -> None:
    io = MemoryFileIO()
    parquet = in_parquet(io, listed(io, [added(a_file())], format_version=3))
    _, spec = identity_table(StringType())
    type_ = partition_type(spec, [identity_table(StringType())[0]])
    with pytest.raises(InvalidMetadataError, match="partition field 1000"):
        read_entries(io, parquet, type_)


def test_a_dictionary_of_large_texts_is_refused_before_it_is_spelled_out() -> None:
    io = MemoryFileIO()
    parquet = in_parquet(io, listed(io, [added(a_file("x" * 500_000))], format_version=3))
    file = pq.ParquetFile(streams.BytesIO(io.read_bytes(parquet.manifest_path)))
    # 10 GB of paths in a file of a few kilobytes
    (row,) = file.read().to_pylist()
    row["data_file"]["file_path"] = ""
    rows = pa.Table.from_pylist([row] * 20_000, schema=file.schema_arrow)
    paths = pa.DictionaryArray.from_arrays(np.zeros(20_000, np.int32), ["x" * 500_000])
    struct = rows["data_file"].combine_chunks()
    children = dict(zip((f.name for f in struct.type), struct.flatten(), strict=True))
    children["file_path"] = paths
    fields = [f.with_type(children[f.name].type) for f in struct.type]
    entries = pa.StructArray.from_arrays(list(children.values()), fields=fields)
    at = rows.schema.get_field_index("data_file")
    field = rows.schema.field(at).with_type(entries.type)
    out = streams.BytesIO()
    rows = rows.set_column(at, field, entries)
    pq.write_table(rows, out, compression="zstd", store_schema=False)
    assert len(out.getvalue()) < 100_000
    io.create_exclusive("metadata/bomb.parquet", out.getvalue())
    bomb = replace(parquet, manifest_path="metadata/bomb.parquet")
    with pytest.raises(IcebergError, match=r"more than .* bytes of memory"):
        read_entries(io, bomb, NO_PARTITION)


def test_field_ids_that_come_twice_are_damage() -> None:
    field = pa.field("a", pa.int32(), metadata={"PARQUET:field_id": "0"})
    twice = pa.schema([field, field.with_name("b")])
    out = streams.BytesIO()
    pq.write_table(pa.table([[1], [2]], schema=twice), out, store_schema=False)
    io = MemoryFileIO()
    io.create_exclusive("m.parquet", out.getvalue())
    manifest = ManifestFile(
        manifest_path="m.parquet", manifest_length=1, partition_spec_id=0, added_snapshot_id=1
    )
    with pytest.raises(InvalidMetadataError, match="field id 0 is twice"):
        read_entries(io, manifest, NO_PARTITION)
