"""Implements the metadata table `position_deletes`: each deleted position of one snapshot.

Specification, "Position Delete Files" and "Deletion Vectors". One task per delete file or vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import arrow_type
from iceberg_pyspark.arrow.file_fields import resolve_file_fields
from iceberg_pyspark.arrow.formats.open_data_file import open_data_file
from iceberg_pyspark.arrow.read.file_projection import FileProjection
from iceberg_pyspark.arrow.read.position_deletes import POSITION_DELETE_NAMES
from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.formats.puffin.deletion_vectors import read_deletion_vector
from iceberg_pyspark.spec.manifests import FileContent, FileFormat, ManifestContent
from iceberg_pyspark.spec.metadata_columns import (
    DELETE_FILE_PATH,
    DELETE_FILE_POS,
    DELETE_FILE_ROW_ID,
    FILE,
    PARTITION_ID,
    SPEC_ID,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import LongType, NestedField, StructType
from iceberg_pyspark.storage.encryption.encrypted_io import decrypted
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.metadata_tables.entry_values import (
    WrittenTypes,
    partition_of_values,
    partition_tuples,
    partition_values,
    shown_type,
)
from iceberg_pyspark.table.metadata_tables.rows import batch_of

_CONTENT_OFFSET_ID, _CONTENT_SIZE_ID = 2147483641, 2147483640
_POSITIONS_AT_ONCE = 65_536
_ENTRY_COLUMNS = (
    "content",
    "file_path",
    "file_format",
    "record_count",
    "spec_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
    "key_metadata",
)


def position_deletes_schema(metadata: TableMetadata) -> Schema:
    """Return the columns of `position_deletes`; from v3 they include a vector's offset and size."""
    where_of_vectors = (
        NestedField(
            field_id=_CONTENT_OFFSET_ID,
            name="content_offset",
            type=LongType(),
            doc="The offset in the DV where the content starts",
        ),
        NestedField(
            field_id=_CONTENT_SIZE_ID,
            name="content_size_in_bytes",
            type=LongType(),
            doc="The length in bytes of the DV blob",
        ),
    )
    partition = NestedField(
        field_id=PARTITION_ID,
        name="partition",
        type=metadata.unified_partition_type,
        required=True,
        doc="Partition that position delete row belongs to",
    )
    fields = (
        replace(DELETE_FILE_PATH, doc="Path of a file in which a deleted row is stored"),
        replace(DELETE_FILE_POS, doc="Ordinal position of a deleted row in the data file"),
        NestedField(
            field_id=DELETE_FILE_ROW_ID,
            name="row",
            type=shown_type(metadata.current_schema.as_struct),
            doc="Deleted row values",
        ),
        *((partition,) if metadata.unified_partition_type.fields else ()),
        replace(SPEC_ID, name="spec_id", doc="Spec ID used to track the file containing a row"),
        replace(FILE, name="delete_file_path", doc="Path of the file in which a row is stored"),
        *(where_of_vectors if metadata.format_version >= 3 else ()),
    )
    return Schema(fields=fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionDeleteFile:
    """A position delete file or a deletion vector; `partition` belongs to spec `spec_id`."""

    file_path: str
    file_format: FileFormat
    record_count: int
    spec_id: int
    partition: tuple[Any, ...]
    partition_type: StructType
    referenced_data_file: str | None
    content_offset: int | None
    content_size_in_bytes: int | None
    key_metadata: bytes | None = field(default=None, repr=False)


def plan_position_deletes(
    io: FileIO, metadata: TableMetadata, snapshots: Sequence[Snapshot]
) -> list[PositionDeleteFile]:
    """Return the position deletes of these snapshots."""
    deletes = []
    written_types = WrittenTypes.of(metadata)
    manifests = [m for s in snapshots for m in read_snapshot_manifests(io, s)]
    for manifest in manifests:
        if manifest.content is not ManifestContent.DELETES:
            continue
        schemas = written_types.schemas_of(io, manifest)
        own = written_types.partition_type(manifest.partition_spec_id, schemas)
        for batch in read_entries(io, manifest, own).to_batches():
            tuples = partition_tuples(batch, own, own)
            rows = batch.select(_ENTRY_COLUMNS).to_pylist()
            for row, values in zip(rows, tuples, strict=True):
                if row.pop("content") == FileContent.POSITION_DELETES:
                    file = PositionDeleteFile(partition=values, partition_type=own, **row)
                    deletes.append(file)
    return deletes


@dataclass(frozen=True, kw_only=True)
class PositionDeleteRows:
    """A reader of position delete files and deletion vectors."""

    table: str

    def read(
        self, io: FileIO, task: PositionDeleteFile, projection: Schema
    ) -> Iterator[pa.RecordBatch]:
        """Yield the positions that one file deletes."""
        if task.file_format == "puffin":
            rows = self._of_vector(io, task, projection)
        else:
            rows = self._of_file(io, task, projection)
        partition = partition_of_values(task.partition_type, [task.partition])

        for count, columns in rows:

            def column(
                f: NestedField, columns: Mapping[int, pa.Array] = columns, n: int = count
            ) -> Any:
                return (
                    columns[f.field_id]
                    if f.field_id in columns
                    else _repeat_partition(f, task, partition, n)
                )

            yield batch_of(projection, count, column)

    def _of_vector(
        self, io: FileIO, task: PositionDeleteFile, projection: Schema
    ) -> Iterator[tuple[int, Mapping[int, pa.Array]]]:
        if task.content_offset is None or task.content_size_in_bytes is None:
            raise InvalidMetadataError(
                f"table {self.table}: the deletion vector in {task.file_path} has no "
                "content_offset and content_size_in_bytes, which are required"
            )
        bitmap = read_deletion_vector(
            decrypted(io, task.key_metadata),
            task.file_path,
            task.content_offset,
            task.content_size_in_bytes,
            task.record_count,
            f"table {self.table}",
        )
        row = projection.as_struct.field(DELETE_FILE_ROW_ID)
        # A vector of a few bytes may hold billions of positions, so never read all at once.
        positions = iter(bitmap)
        while len(read_now := np.fromiter(islice(positions, _POSITIONS_AT_ONCE), np.int64)):
            part = pa.array(read_now)
            path = pa.scalar(task.referenced_data_file, pa.string())
            columns = {
                DELETE_FILE_PATH.field_id: pa.repeat(path, len(part)),
                DELETE_FILE_POS.field_id: part,
            }
            if row is not None:
                # a vector stores positions only
                columns[row.field_id] = pa.nulls(len(part), arrow_type(row.type))
            yield len(part), columns

    def _of_file(
        self, io: FileIO, task: PositionDeleteFile, schema: Schema
    ) -> Iterator[tuple[int, Mapping[int, pa.Array]]]:
        row = schema.as_struct.field(DELETE_FILE_ROW_ID)
        fields = (DELETE_FILE_PATH, DELETE_FILE_POS, *(() if row is None else (row,)))
        store = decrypted(io, task.key_metadata)
        with open_data_file(store, task.file_path, task.file_format) as file:
            projection = FileProjection(
                fields,
                resolve_file_fields(file.schema, POSITION_DELETE_NAMES, task.file_path),
                partition_values={},
                location=task.file_path,
            )
            convert = projection.compile(projection.leaves)
            for _, batch in file.batches(projection.leaves):
                arrays = convert(batch.columns, batch.num_rows)
                columns = {f.field_id: a for f, a in zip(fields, arrays, strict=True)}
                yield batch.num_rows, columns


def _repeat_partition(
    f: NestedField, task: PositionDeleteFile, partition: pa.Array, count: int
) -> pa.Array:
    """Return a column that has the same value in all rows of a file."""
    match f.field_id:
        case i if i == PARTITION_ID:
            assert isinstance(f.type, StructType), "partition is a struct"
            copies = partition.take(pa.array([0] * count, pa.int64()))
            return partition_values(copies, f.type, task.partition_type)
        case i if i == SPEC_ID.field_id:
            value: Any = task.spec_id
        case i if i == FILE.field_id:
            value = task.file_path
        case i if i == _CONTENT_OFFSET_ID:
            value = task.content_offset
        case _:
            value = task.content_size_in_bytes
    return pa.repeat(pa.scalar(value, arrow_type(f.type)), count)
