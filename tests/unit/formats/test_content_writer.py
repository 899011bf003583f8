"""The Parquet file of content entries: its columns, field ids, key values and codecs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark.errors import FileAlreadyExistsError
from iceberg_pyspark.formats.puffin.deletion_vectors import encode_deletion_vector
from iceberg_pyspark.formats.roots.content_writer import write_content_entries
from iceberg_pyspark.spec.content_entries import RootEntry
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import DoubleType, LongType, NestedField, StringType
from iceberg_pyspark.storage.files.local import LocalFileIO
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.content_entries import (
    NO_FIELDS,
    NUMBERS,
    ROOT,
    TABLE,
    a_vector,
    columns,
    leaf_entry,
    manifests,
    parquet_fields,
    partition,
    read_entries,
    some_keys,
    vector_entry,
    write_entries,
)
from tests.support.manifests import NO_COLUMNS, a_file, added, deleted, existing


def all_kinds() -> list[RootEntry]:
    full = a_file(
        f"{TABLE}/data/a.parquet",
        spec_id=1,
        partition=(1,),
        split_offsets=(4,),
        sort_order_id=0,
        first_row_id=3,
        key_metadata=b"k",
        value_counts={1: 1},
        null_value_counts={1: 0},
        nan_value_counts={1: 0},
        lower_bounds={1: bytes(8)},
        upper_bounds={1: bytes(8)},
    )
    return [
        added(full, **NUMBERS),
        existing(a_vector()),
        deleted(some_keys()),
        leaf_entry(),
        vector_entry(),
    ]


def test_every_column_has_its_field_id_and_the_name_of_the_proposal() -> None:
    io = MemoryFileIO()
    write_entries(
        io,
        all_kinds(),
        schema=columns(DoubleType()),
        partition_types={0: NO_FIELDS, 1: partition((1000, LongType()))},
    )
    actual = list(parquet_fields(io.read_bytes(ROOT)))
    assert dict(actual) == {
        134: "content_type",
        100: "location",
        101: "file_format",
        5: "version_info",
        0: "version_info.status",
        1: "version_info.snapshot_id",
        3: "version_info.sequence_number",
        4: "version_info.file_sequence_number",
        147: "deletion_vector",
        144: "deletion_vector.offset",
        145: "deletion_vector.size_in_bytes",
        146: "deletion_vector.inline_content",
        148: "partition_spec_id",
        140: "sort_order_id",
        103: "record_count",
        104: "file_size_in_bytes",
        521: "manifest_stats",
        504: "manifest_stats.added_files_count",
        505: "manifest_stats.existing_files_count",
        506: "manifest_stats.deleted_files_count",
        512: "manifest_stats.added_rows_count",
        513: "manifest_stats.existing_rows_count",
        514: "manifest_stats.deleted_rows_count",
        516: "manifest_stats.min_sequence_number",
        143: "referenced_file",
        131: "key_metadata",
        132: "split_offsets",
        133: "split_offsets.element",
        135: "equality_ids",
        136: "equality_ids.element",
        142: "first_row_id",
        102: "partition",
        1000: "partition.p1000",
        149: "content_stats",
        10_200: "content_stats.c1",
        10_201: "content_stats.c1.lower_bound",
        10_202: "content_stats.c1.upper_bound",
        10_204: "content_stats.c1.value_count",
        10_205: "content_stats.c1.null_value_count",
        10_206: "content_stats.c1.nan_value_count",
    }
    assert len(dict(actual)) == len(actual)


def test_fields_of_other_kinds_of_entries_are_null() -> None:
    io = MemoryFileIO()
    write_entries(
        io,
        all_kinds(),
        schema=columns(DoubleType()),
        partition_types={0: NO_FIELDS, 1: partition((1000, LongType()))},
    )
    rows = pq.read_table(pa.BufferReader(io.read_bytes(ROOT))).to_pylist()
    present = [{name for name, value in row.items() if value is not None} for row in rows]
    always = {"content_type", "file_format", "version_info", "partition_spec_id", "record_count"}
    file = {*always, "location", "file_size_in_bytes"}
    assert present == [
        {
            *file,
            "partition",
            "sort_order_id",
            "split_offsets",
            "first_row_id",
            "key_metadata",
            "content_stats",
        },
        {*file, "deletion_vector", "referenced_file"},
        {*file, "equality_ids"},
        {*file, "manifest_stats"},
        {*always, "deletion_vector", "referenced_file"},
    ]
    assert rows[4]["deletion_vector"] == {
        "offset": None,
        "size_in_bytes": None,
        "inline_content": encode_deletion_vector([0, 3]),
    }


def test_columns_that_no_entry_has_a_value_of_are_left_out() -> None:
    io = MemoryFileIO()
    write_entries(io, [added(a_file(f"{TABLE}/a"))], content="data")
    assert [name for _, name in parquet_fields(io.read_bytes(ROOT))] == [
        "content_type",
        "location",
        "file_format",
        "version_info",
        "version_info.status",
        "partition_spec_id",
        "record_count",
        "file_size_in_bytes",
    ]


def test_partition_fields_of_the_files_specs_are_there_without_any_value() -> None:
    types = {0: partition((1000, LongType())), 1: partition((1001, StringType()))}
    io = MemoryFileIO()
    write_entries(
        io, [added(a_file(f"{TABLE}/a", partition=(None,)), **NUMBERS)], partition_types=types
    )
    actual = dict(parquet_fields(io.read_bytes(ROOT)))
    assert 1000 in actual
    assert 1001 not in actual
    assert [e.data_file.partition for e in read_entries(io, types)] == [(None,)]


def test_a_root_may_have_no_entries() -> None:
    assert manifests() == []


def test_key_values_have_version_content_and_given_pairs() -> None:
    io = MemoryFileIO()
    write_entries(io, [], content="delete", metadata={"snapshot-id": "7", "content": "x"})
    footer = pq.read_metadata(pa.BufferReader(io.read_bytes(ROOT)))
    assert footer.metadata == {
        b"format-version": b"4",
        b"content": b"delete",
        b"snapshot-id": b"7",
    }


def test_the_file_has_no_statistics_of_its_own() -> None:
    io = MemoryFileIO()
    write_entries(io, all_kinds()[1:])
    group = pq.read_metadata(pa.BufferReader(io.read_bytes(ROOT))).row_group(0)
    actual = [group.column(i) for i in range(group.num_columns)]
    assert not any(c.is_stats_set or c.has_column_index or c.has_offset_index for c in actual)


def test_a_local_file_has_the_length_that_is_returned(tmp_path: Path) -> None:
    path = tmp_path / "metadata" / "r.parquet"
    length = write_content_entries(
        LocalFileIO(),
        path.as_uri(),
        all_kinds()[1:],
        content="root",
        schema=NO_COLUMNS,
        partition_types={0: NO_FIELDS},
        table_location=TABLE,
    ).length
    assert length == path.stat().st_size
    assert pq.read_metadata(path).num_rows == 4


def test_no_file_is_written_over() -> None:
    io = MemoryFileIO()
    length = write_entries(io, [])
    data = io.read_bytes(ROOT)
    assert length == len(data)
    with pytest.raises(FileAlreadyExistsError):
        write_entries(io, all_kinds()[1:])
    assert io.read_bytes(ROOT) == data


def test_a_root_without_entries_has_the_required_columns() -> None:
    io = MemoryFileIO()
    write_entries(io, [])
    assert read_entries(io) == []
    names = {name for _, name in parquet_fields(io.read_bytes(ROOT))}
    assert names >= {"content_type", "file_format", "partition_spec_id", "record_count"}


def test_columns_of_equal_names_in_two_tables_keep_their_own_field_ids() -> None:
    """Arrow's nested types are equal even if the field ids in them differ."""
    for field_id in (1, 2):
        io = MemoryFileIO()
        schema = Schema(fields=(NestedField(field_id=field_id, name="c", type=LongType()),))
        file = replace(a_file(f"{TABLE}/a"), value_counts={field_id: 5})
        write_entries(io, [added(file, **NUMBERS)], schema=schema)
        stats_id = 10_000 + 200 * field_id
        ids = {i for i, _ in parquet_fields(io.read_bytes(ROOT)) if i is not None and i > 10_000}
        assert ids == {stats_id, stats_id + 4}


def test_only_locations_and_long_columns_of_text_are_compressed_by_zstd() -> None:
    def codecs(count: int) -> dict[str, str]:
        io = MemoryFileIO()
        write_entries(io, [added(a_file(f"{TABLE}/{i}"), **NUMBERS) for i in range(count)])
        group = pq.read_metadata(pa.BufferReader(io.read_bytes(ROOT))).row_group(0)
        chunks = map(group.column, range(group.num_columns))
        return {c.path_in_schema: c.compression for c in chunks}

    short, long = codecs(2), codecs(1000)
    assert {path for path, codec in short.items() if codec == "ZSTD"} == {"location"}
    assert {path for path, codec in long.items() if codec == "ZSTD"} == {"location", "file_format"}
