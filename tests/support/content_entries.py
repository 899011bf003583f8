"""Entries of root manifests and leaves for tests: made, written and read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark.formats.manifest_reader import read_manifest_entries
from iceberg_pyspark.formats.puffin.deletion_vectors import encode_deletion_vector
from iceberg_pyspark.formats.roots.content_rules import Content
from iceberg_pyspark.formats.roots.content_writer import write_content_entries
from iceberg_pyspark.formats.roots.root_manifests import read_root_manifest
from iceberg_pyspark.spec.content_entries import (
    ContentStatus,
    LeafEntry,
    ManifestVectorEntry,
    RootEntry,
)
from iceberg_pyspark.spec.manifests import DataFile, FileContent, ManifestEntry, ManifestFile
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.types import NestedField, StructType, Type
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.manifests import NO_COLUMNS, a_file

TABLE = "s3://b/t"
ROOT = f"{TABLE}/metadata/root.parquet"
SNAPSHOT = Snapshot(
    snapshot_id=7, sequence_number=9, timestamp_ms=0, root_manifest=ROOT, table_location=TABLE
)
NO_FIELDS = StructType(())
NUMBERS = {"snapshot_id": 7, "sequence_number": 9, "file_sequence_number": 9}


def columns(*types: Type) -> Schema:
    return Schema(
        fields=tuple(
            NestedField(field_id=i, name=f"c{i}", type=type_) for i, type_ in enumerate(types, 1)
        )
    )


def partition(*types: tuple[int, Type]) -> StructType:
    return StructType(tuple(NestedField(field_id=i, name=f"p{i}", type=t) for i, t in types))


def write_entries(
    io: MemoryFileIO,
    entries: Iterable[RootEntry],
    location: str = ROOT,
    *,
    content: Content = "root",
    schema: Schema = NO_COLUMNS,
    partition_types: Mapping[int, StructType] = {0: NO_FIELDS},
    **more: Any,
) -> int:
    return write_content_entries(
        io,
        location,
        entries,
        content=content,
        schema=schema,
        partition_types=partition_types,
        **{"table_location": TABLE, **more},
    ).length


def read_entries(
    io: MemoryFileIO, partition_types: Mapping[int, StructType] = {0: NO_FIELDS}
) -> list[ManifestEntry]:
    """Return the files of the root's own entries and of its leaves, including deleted files."""
    return [
        e
        for m in read_root_manifest(io, ROOT, SNAPSHOT)
        for e in read_manifest_entries(io, m, partition_types[m.partition_spec_id])
    ]


def written_and_read(*entries: RootEntry, **how: Any) -> list[ManifestEntry]:
    io = MemoryFileIO()
    write_entries(io, entries, **how)
    return read_entries(io, how.get("partition_types", {0: NO_FIELDS}))


def parquet_fields(data: bytes) -> Iterator[tuple[int | None, str]]:
    """Yield id and path of every field of a Parquet file."""

    def below(fields: Iterable[pa.Field], path: str) -> Iterator[tuple[int | None, str]]:
        for field in fields:
            text = (field.metadata or {}).get(b"PARQUET:field_id")
            yield None if text is None else int(text), f"{path}{field.name}"
            if pa.types.is_struct(field.type):
                yield from below(field.type, f"{path}{field.name}.")
            elif pa.types.is_list(field.type):
                yield from below([field.type.value_field], f"{path}{field.name}.")

    return below(pq.read_metadata(pa.BufferReader(data)).schema.to_arrow_schema(), "")


def manifests(*entries: RootEntry, io: MemoryFileIO | None = None) -> list[ManifestFile]:
    io = MemoryFileIO() if io is None else io
    write_entries(io, entries)
    return read_root_manifest(io, ROOT, SNAPSHOT)


def leaf(path: str = f"{TABLE}/metadata/leaf.parquet", **values: Any) -> ManifestFile:
    return ManifestFile(
        **{
            "manifest_path": path,
            "manifest_length": 321,
            "partition_spec_id": 0,
            "sequence_number": 8,
            "min_sequence_number": 3,
            "added_snapshot_id": 6,
            "added_files_count": 1,
            "existing_files_count": 2,
            "deleted_files_count": 3,
            "added_rows_count": 10,
            "existing_rows_count": 20,
            "deleted_rows_count": 30,
            "table_location": TABLE,
            **values,
        }
    )


def leaf_entry(status: ContentStatus = ContentStatus.EXISTING, **values: Any) -> LeafEntry:
    return LeafEntry(status=status, manifest=leaf(**values))


def vector_entry(status: ContentStatus = ContentStatus.ADDED, **values: Any) -> ManifestVectorEntry:
    return ManifestVectorEntry(
        **{
            "status": status,
            "snapshot_id": 7,
            "sequence_number": 9,
            "spec_id": 0,
            "leaf": f"{TABLE}/metadata/leaf.parquet",
            "cardinality": 2,
            "inline": encode_deletion_vector([0, 3]),
            **values,
        }
    )


def a_vector(path: str = f"{TABLE}/data/v.puffin", **values: Any) -> DataFile:
    return a_file(
        path,
        **{
            "content": FileContent.POSITION_DELETES,
            "file_format": "puffin",
            "referenced_data_file": f"{TABLE}/data/a.parquet",
            "content_offset": 4,
            "content_size_in_bytes": 40,
            **values,
        },
    )


def some_keys(path: str = f"{TABLE}/data/e.parquet") -> DataFile:
    return a_file(path, content=FileContent.EQUALITY_DELETES, equality_ids=(1,))
