"""Handmade data and delete files in memory, and the scan tasks and contexts that read them."""

from __future__ import annotations

import io as streams
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.arrow.formats import orc_reader
from iceberg_pyspark.arrow.read.read_task import read_task
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.formats.puffin.deletion_vectors import write_deletion_vectors
from iceberg_pyspark.planning.scan_tasks import DeleteFileRef, ScanContext, ScanTask
from iceberg_pyspark.spec.manifests import FileContent
from iceberg_pyspark.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POS
from iceberg_pyspark.spec.name_mapping import NameMapping
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import NestedField, Type
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO

Row = Mapping[str, Any]

UNPARTITIONED = PartitionSpec(spec_id=0)

READS_ORC_TIMES = int(pa.__version__.split(".")[0]) >= orc_reader._CHECKS_TIMESTAMPS
"""Whether this pyarrow is trusted to read timestamps of ORC files."""


def optional(field_id: int, name: str, type_: Type, **more: Any) -> NestedField:
    return NestedField(field_id=field_id, name=name, type=type_, **more)


def required(field_id: int, name: str, type_: Type, **more: Any) -> NestedField:
    return NestedField(field_id=field_id, name=name, type=type_, required=True, **more)


def schema_of(*fields: NestedField, schema_id: int = 0) -> Schema:
    """Return a schema of these fields."""
    return Schema(fields=fields, schema_id=schema_id)


def write_rows(
    io: MemoryFileIO, location: str, schema: Schema, rows: Iterable[Row], **options: Any
) -> str:
    """Write a Parquet file with the schema's field ids; return its location."""
    table = pa.Table.from_pylist(list(rows), schema=to_arrow_schema(schema, field_ids=True))
    return write_table(io, location, table, **options)


def write_table(io: MemoryFileIO, location: str, table: pa.Table, **options: Any) -> str:
    """Write an Arrow table as a Parquet file; return its location."""
    stream = streams.BytesIO()
    pq.write_table(table, stream, **options)
    io.write_bytes(location, stream.getvalue())
    return location


def task_of(io: MemoryFileIO, location: str, **changes: Any) -> ScanTask:
    """Return an unpartitioned task over the whole file, with data sequence number 1."""
    size = io.size(location)
    arguments: dict[str, Any] = {
        "file_path": location,
        "file_format": "parquet",
        "file_size_in_bytes": size,
        "record_count": 0,
        "start": 0,
        "length": size,
        "spec_id": 0,
        "partition": (),
        "data_sequence_number": 1,
    }
    return ScanTask(**(arguments | changes))


def context_of(
    projection: Schema,
    *,
    schemas: Sequence[Schema] = (),
    specs: Sequence[PartitionSpec] = (UNPARTITIONED,),
    predicate: Predicate = AlwaysTrue(),  # noqa: B008 - an immutable value
    name_mapping: NameMapping | None = None,
) -> ScanContext:
    """Return a context for a table whose schema is the projection, unless `schemas` are given."""
    return ScanContext(
        table="db.t",
        table_location="/db/t",
        projection=projection,
        schemas=tuple(schemas) or (projection,),
        specs={s.spec_id: s for s in specs},
        predicate=predicate,
        name_mapping=name_mapping,
    )


def read_rows(context: ScanContext, task: ScanTask, io: FileIO) -> list[dict[str, Any]]:
    """Return a task's rows; each batch must be valid and have the projected Arrow schema."""
    expected = to_arrow_schema(context.projection)
    rows: list[dict[str, Any]] = []
    for batch in read_task(context, task, io):
        assert batch.schema.equals(expected, check_metadata=True)
        batch.validate(full=True)
        rows.extend(batch.to_pylist() if batch.num_columns else [{}] * batch.num_rows)
    return rows


def position_deletes(
    io: MemoryFileIO, location: str, positions: Iterable[tuple[str, int]], **options: Any
) -> DeleteFileRef:
    """Write a position delete file of (data file, position) pairs."""
    pairs = list(positions)
    rows = [{"file_path": path, "pos": pos} for path, pos in pairs]
    write_rows(io, location, schema_of(DELETE_FILE_PATH, DELETE_FILE_POS), rows, **options)
    return _ref(io, location, FileContent.POSITION_DELETES, record_count=len(pairs))


def deletion_vector(
    io: MemoryFileIO, location: str, data_file: str, positions: Iterable[int]
) -> DeleteFileRef:
    """Write a Puffin file with the data file's deletion vector."""
    blob = write_deletion_vectors(io, location, {data_file: positions})[data_file]
    return _ref(
        io,
        location,
        FileContent.POSITION_DELETES,
        file_format="puffin",
        record_count=blob.cardinality,
        referenced_data_file=data_file,
        content_offset=blob.content_offset,
        content_size_in_bytes=blob.content_size_in_bytes,
    )


def equality_deletes(
    io: MemoryFileIO, location: str, schema: Schema, ids: Sequence[int], rows: Iterable[Row]
) -> DeleteFileRef:
    """Write an equality delete file whose equality ids are `ids`."""
    listed = list(rows)
    write_rows(io, location, schema, listed)
    return _ref(
        io,
        location,
        FileContent.EQUALITY_DELETES,
        record_count=len(listed),
        equality_ids=tuple(ids),
    )


def _ref(io: MemoryFileIO, location: str, content: FileContent, **more: Any) -> DeleteFileRef:
    arguments: dict[str, Any] = {
        "content": content,
        "file_path": location,
        "file_format": "parquet",
        "file_size_in_bytes": io.size(location),
        "data_sequence_number": 2,
    }
    return DeleteFileRef(**(arguments | more))


def with_field_ids(table: pa.Table, *ids: int) -> pa.Table:
    """Return the table with these field ids on its top-level columns."""
    fields = [
        f.with_metadata({b"PARQUET:field_id": str(i).encode()})
        for f, i in zip(table.schema, ids, strict=True)
    ]
    return pa.table(table.columns, schema=pa.schema(fields))


def spec_with_partition(transform: Any, source_id: int = 2) -> PartitionSpec:
    field = PartitionField(source_ids=(source_id,), field_id=1000, name="part", transform=transform)
    return PartitionSpec(spec_id=3, fields=(field,))
