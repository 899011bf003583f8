"""Entries of manifests and of their deletion vectors, and what the files below them inherit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark.formats.puffin.deletion_vectors import (
    encode_deletion_vector,
    write_deletion_vectors,
)
from iceberg_pyspark.spec.content_entries import ContentStatus, LeafEntry
from iceberg_pyspark.spec.manifests import ManifestContent
from iceberg_pyspark.spec.types import StringType
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.content_entries import (
    ROOT,
    TABLE,
    a_vector,
    leaf,
    leaf_entry,
    manifests,
    partition,
    read_entries,
    some_keys,
    vector_entry,
    write_entries,
)
from tests.support.manifests import a_file, added, deleted, existing


def test_manifests_are_read_as_they_were_written() -> None:
    data = leaf(first_row_id=40, key_metadata=b"k")
    older = leaf("s3://elsewhere/m.avro", partition_spec_id=2)
    deletes = leaf(f"{TABLE}/metadata/d.parquet", content=ManifestContent.DELETES)
    removed = leaf(f"{TABLE}/metadata/gone.parquet")
    actual = manifests(
        LeafEntry(status=ContentStatus.EXISTING, manifest=data),
        LeafEntry(status=ContentStatus.EXISTING, manifest=older),
        LeafEntry(status=ContentStatus.ADDED, manifest=deletes, referenced_file=data.manifest_path),
        LeafEntry(status=ContentStatus.DELETED, manifest=removed),
    )
    assert actual == [data, older, deletes]


def test_an_entry_of_a_manifest_has_its_format_its_entries_and_one_age() -> None:
    io = MemoryFileIO()
    deletes = leaf(f"{TABLE}/metadata/d.AVRO.avro", content=ManifestContent.DELETES)
    entry = LeafEntry(
        status=ContentStatus.ADDED, manifest=deletes, referenced_file=f"{TABLE}/metadata/m.parquet"
    )
    write_entries(io, [entry, leaf_entry()])
    row, other = pq.read_table(pa.BufferReader(io.read_bytes(ROOT))).to_pylist()
    version = {"status": 1, "snapshot_id": 6, "sequence_number": 8, "file_sequence_number": 8}
    assert row["version_info"] == version
    assert (row["content_type"], row["file_format"], row["record_count"]) == (4, "avro", 6)
    assert (row["location"], row["referenced_file"]) == (
        "metadata/d.AVRO.avro",
        "metadata/m.parquet",
    )
    assert (other["content_type"], other["file_format"]) == (3, "parquet")
    assert other["manifest_stats"]["min_sequence_number"] == 3


def test_the_ids_of_rows_are_those_of_data_manifests() -> None:
    (actual,) = manifests(leaf_entry(content=ManifestContent.DELETES, first_row_id=5))
    assert actual.first_row_id is None


def test_an_inline_vector_takes_entries_out_of_its_manifest() -> None:
    removed = vector_entry(ContentStatus.DELETED, cardinality=1, inline=encode_deletion_vector([0]))
    (actual,) = manifests(leaf_entry(), removed, vector_entry())
    assert actual == leaf(dead_positions=encode_deletion_vector([0, 3]))


def test_a_vector_in_a_file_takes_entries_out_of_its_manifest() -> None:
    io = MemoryFileIO()
    path = f"{TABLE}/metadata/mdv.puffin"
    blob = write_deletion_vectors(io, path, {"leaf": [1, 70_000]})["leaf"]
    entry = vector_entry(
        inline=None,
        location=path,
        offset=blob.content_offset,
        size_in_bytes=blob.content_size_in_bytes,
        file_size_in_bytes=io.size(path),
    )
    (actual,) = manifests(leaf_entry(), entry, io=io)
    assert actual.dead_positions == encode_deletion_vector([1, 70_000])
    _, row = pq.read_table(pa.BufferReader(io.read_bytes(ROOT))).to_pylist()
    assert (row["location"], row["file_size_in_bytes"]) == ("metadata/mdv.puffin", io.size(path))
    assert (row["content_type"], row["file_format"], row["record_count"]) == (5, "puffin", 2)
    assert row["referenced_file"] == "metadata/leaf.parquet"


def test_data_leaf_inherits_values_of_its_root_entry() -> None:
    io = MemoryFileIO()
    path = f"{TABLE}/metadata/leaf.parquet"
    types = {4: partition((1000, StringType()))}
    own = [
        added(a_file(f"{TABLE}/data/{i}", spec_id=4, partition=(str(i),), record_count=10))
        for i in range(3)
    ]
    length = write_entries(io, own, path, content="data", partition_types=types)
    assert length == io.size(path)
    write_entries(
        io,
        [
            LeafEntry(
                status=ContentStatus.ADDED,
                manifest=leaf(
                    manifest_length=length,
                    partition_spec_id=4,
                    added_files_count=3,
                    existing_files_count=0,
                    deleted_files_count=0,
                    first_row_id=100,
                ),
            ),
            vector_entry(cardinality=1, inline=encode_deletion_vector([1])),
        ],
    )
    assert read_entries(io, types) == [
        replace(
            own[i],
            snapshot_id=6,
            sequence_number=8,
            file_sequence_number=8,
            data_file=replace(own[i].data_file, first_row_id=100 + 10 * i),
        )
        for i in (0, 2)
    ]


def test_delete_leaf_inherits_values_of_its_root_entry() -> None:
    io = MemoryFileIO()
    own = [added(a_vector()), existing(a_vector(), 5), added(some_keys()), deleted(some_keys(), 4)]
    write_entries(io, own, f"{TABLE}/metadata/leaf.parquet", content="delete")
    write_entries(
        io,
        [
            leaf_entry(
                content=ManifestContent.DELETES, existing_files_count=1, deleted_files_count=0
            )
        ],
    )
    inherited: dict[str, Any] = {"snapshot_id": 6, "sequence_number": 8, "file_sequence_number": 8}
    assert read_entries(io) == [
        replace(own[0], **inherited),
        own[1],
        replace(own[2], **inherited),
        own[3],
    ]
