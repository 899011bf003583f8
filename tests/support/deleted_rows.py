"""Delete files of all kinds, written by hand for tests that need tables with deletes."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from iceberg_pyspark import Table
from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.snapshot_changes import RowDelta
from iceberg_pyspark.formats.puffin.deletion_vectors import write_deletion_vectors
from iceberg_pyspark.spec.manifests import DataFile, FileContent
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.row_deletes import write_row_deletes


def delete_positions(
    table: Table, positions: Mapping[str, Iterable[int]], **overrides: Any
) -> None:
    """Commit deletion vectors that delete rows of unpartitioned data files by position.

    `overrides` changes fields of the delete files' entries, also with wrong values.
    """
    table.refresh()
    location = f"{table.location}/data/{uuid.uuid4()}.puffin"
    blobs = write_deletion_vectors(table.io, location, positions)
    _commit(
        table,
        *(
            replace(
                DataFile(
                    content=FileContent.POSITION_DELETES,
                    file_path=location,
                    file_format="puffin",
                    record_count=blob.cardinality,
                    file_size_in_bytes=table.io.size(location),
                    referenced_data_file=data_file,
                    content_offset=blob.content_offset,
                    content_size_in_bytes=blob.content_size_in_bytes,
                ),
                **overrides,
            )
            for data_file, blob in blobs.items()
        ),
    )


def delete_rows(table: Table, column: str, values: Collection[object]) -> None:
    """Delete rows by the values of a column, by deletion vectors or position delete files."""
    removed: dict[str, BitMap64] = {}
    for row in table.refresh().scan(columns=[column, "_file", "_pos"]).to_arrow().to_pylist():
        if row[column] in values:
            removed.setdefault(row["_file"], BitMap64()).add(row["_pos"])
    deletes = write_row_deletes(
        "t",
        table.metadata,
        table.io,
        removed,
        {t.file_path: t for t in table.scan().plan_files()},
        write_id=str(uuid.uuid4()),
    )
    action = RowDelta(
        delete_files=deletes.delete_files,
        removed_data_paths=deletes.removed_data_paths,
        removed_deletes=deletes.removed_deletes,
        checks=ConflictChecks(base_snapshot_id=table.metadata.current_snapshot_id),
    )
    commit_action(table.catalog, table.loaded, table.io, action)
    table.refresh()


def list_positions(
    table: Table, rows: pa.Table, layout: Mapping[str, Any], **overrides: Any
) -> Path:
    """Commit a position delete file with these rows in an unpartitioned table and return its path.

    `layout` holds options of pyarrow's Parquet writer; `overrides` changes fields of the entry,
    also with wrong values.
    """
    table.refresh()
    location = f"{table.location}/data/{uuid.uuid4()}.parquet"
    with table.io.open_output(location) as stream:
        pq.write_table(rows, stream, **layout)
    written = DataFile(
        content=FileContent.POSITION_DELETES,
        file_path=location,
        record_count=rows.num_rows,
        file_size_in_bytes=table.io.size(location),
    )
    _commit(table, replace(written, **overrides))
    return Path(location)


def delete_keys(table: Table, column: str, values: Iterable[object], **overrides: Any) -> None:
    """Commit an equality delete of values of one column of an unpartitioned table.

    `overrides` changes fields of the entry, such as its partition.
    """
    table.refresh()
    field = table.schema.as_struct.field_named(column)
    assert field is not None
    schema = to_arrow_schema(Schema(fields=(field,)), field_ids=True)
    location = f"{table.location}/data/{uuid.uuid4()}.parquet"
    rows = pa.Table.from_pydict({column: list(values)}, schema=schema)
    with table.io.open_output(location) as stream:
        pq.write_table(rows, stream)
    written = DataFile(
        content=FileContent.EQUALITY_DELETES,
        file_path=location,
        record_count=rows.num_rows,
        file_size_in_bytes=table.io.size(location),
        equality_ids=(field.field_id,),
    )
    _commit(table, replace(written, **overrides))


def _commit(table: Table, *files: DataFile) -> None:
    checks = ConflictChecks(base_snapshot_id=table.metadata.current_snapshot_id)
    action = RowDelta(delete_files=files, checks=checks)
    commit_action(table.catalog, table.loaded, table.io, action)
    table.refresh()
