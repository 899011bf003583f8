"""Computes table statistics: the number of distinct values per column, as theta sketches.

Specification, "Table Statistics"; Puffin specification, `apache-datasketches-theta-v1`. The live
rows of one snapshot are read, with one file per thread and a batch at a time; a sketch has a
bounded size. A snapshot never changes, so a file that this package wrote of the same columns is
kept and no row is read.
"""

from __future__ import annotations

import binascii
import uuid
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.read.read_task import read_task
from iceberg_pyspark.arrow.value_hashes import is_hashable, value_hashes
from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.errors import IcebergError, InvalidRequestError
from iceberg_pyspark.formats.locations import location_provider, statistics_file_name
from iceberg_pyspark.formats.puffin.puffin import PuffinWriter, read_puffin_footer
from iceberg_pyspark.formats.puffin.theta_sketches import DISTINCT_COUNT, THETA_SKETCH, ThetaSketch
from iceberg_pyspark.planning.scan_tasks import ScanContext, ScanTask
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.statistics import BlobMetadata, StatisticsFile
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.sql_text.names import parse_levels
from iceberg_pyspark.storage.encryption.encrypted_io import decrypted, stored_file
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.threaded_map import threaded_map
from iceberg_pyspark.table.commits.maintained_table import MaintainedTable
from iceberg_pyspark.table.progress import Progress, no_progress, with_progress
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from iceberg_pyspark.table.reading.table_scan import TableScan, scan_table
from iceberg_pyspark.table.statistics.commit_statistics import (
    commit_statistics,
    remove_unfinished_file,
)

_log = get_logger(__name__)

FILES_READ = "data files read"
"""The phase of the progress in which rows are read."""

Sketches: TypeAlias = dict[int, ThetaSketch]
"""Sketches by column id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedTableStatistics:
    """The location of the statistics file, and the distinct counts by column name.

    `statistics_file` is None with `dry_run`, and if the table has no snapshot. It is the snapshot's
    existing file if that has the same columns and was written by this package.
    """

    statistics_file: str | None = None
    distinct_counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SketchedColumn:
    """A column or a nested field of a struct; `path` are the names that lead to it."""

    path: tuple[str, ...]
    field: types.NestedField

    @property
    def name(self) -> str:
        """The dotted name, as users write it."""
        return ".".join(self.path)

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the column's values in a batch of a scan; null where the struct is null."""
        values = batch.column(self.path[0])
        for name in self.path[1:]:
            values = pc.struct_field(values, name)
        return values


SketchScan: TypeAlias = Callable[[TableScan, Sequence[SketchedColumn]], Sketches]
"""A function that reads a whole scan and returns sketches of columns."""


def sketches_of_task(
    context: ScanContext, columns: Sequence[SketchedColumn], io: FileIO, task: ScanTask
) -> Sketches:
    """Return the sketches of the rows of one task."""
    sketches = {c.field.field_id: ThetaSketch() for c in columns}
    for batch in read_task(context, task, io):
        for column in columns:
            hashes = value_hashes(column.field.type, column.values(batch))
            sketches[column.field.field_id].add(hashes)
    return sketches


def sketches_of_scan(
    scan: TableScan, columns: Sequence[SketchedColumn], progress: Progress = no_progress
) -> Sketches:
    """Return the sketches of all rows, which this process reads."""
    scan, plan = scan.scan_and_plan()
    read = partial(sketches_of_task, scan.context, columns, scan.io)
    total = {c.field.field_id: ThetaSketch() for c in columns}
    tasks = list(plan.tasks(scan.split))
    read_sketches = threaded_map(read, tasks, lambda t: t.file_path)
    for sketches in with_progress(progress, FILES_READ, read_sketches, len(tasks)):
        unite_sketches(total, sketches)
    return total


def unite_sketches(total: Sketches, more: Sketches) -> None:
    """Merge `more` into `total`."""
    for field_id, sketch in more.items():
        total[field_id].unite(sketch)


class TableStatisticsComputation:
    """One computation of the statistics of one snapshot."""

    def __init__(
        self,
        table: MaintainedTable,
        *,
        snapshot_id: int | None,
        columns: Sequence[str] | None,
        sketch_scan: SketchScan,
    ) -> None:
        self._table = table
        self._sketch_scan = sketch_scan
        self._newest = table.newest()
        self._snapshot = self._newest.metadata.snapshot_or_current(snapshot_id)
        self._names = columns

    def run(self, *, dry_run: bool = False) -> tuple[LoadedTable, ComputedTableStatistics]:
        """Compute the statistics; return the table as committed, and the result."""
        snapshot = self._snapshot
        if snapshot is None:
            return self._newest, ComputedTableStatistics(distinct_counts={})
        columns, scan = self._columns_and_scan(snapshot)
        existing = self._existing(snapshot, columns)
        if existing is not None:
            return self._newest, replace(existing, statistics_file=None) if dry_run else existing
        sketches = self._sketch_scan(scan, columns)
        counts = {c.name: sketches[c.field.field_id].distinct_count for c in columns}
        if dry_run:
            return self._newest, ComputedTableStatistics(distinct_counts=counts)
        file = _write(self._table.io, self._newest.metadata, snapshot, columns, sketches)
        new_table = commit_statistics(self._table, self._newest, file)
        return new_table, ComputedTableStatistics(
            statistics_file=file.statistics_path, distinct_counts=counts
        )

    def _existing(
        self, snapshot: Snapshot, columns: Sequence[SketchedColumn]
    ) -> ComputedTableStatistics | None:
        """Return the snapshot's statistics if this package computed them of exactly the columns."""
        file = next(
            (f for f in self._newest.metadata.statistics if f.snapshot_id == snapshot.snapshot_id),
            None,
        )
        if file is None:
            return None
        try:
            key = None if file.key_metadata is None else b64decode(file.key_metadata)
            footer = read_puffin_footer(decrypted(self._table.io, key), file.statistics_path)
        except (IcebergError, binascii.Error) as e:
            # Statistics are informational: a damaged or missing file is replaced.
            _log.warning(
                "table %s: the statistics %s cannot be reused (%s); they are computed again",
                self._table.name,
                file.statistics_path,
                e,
            )
            return None
        counts = {
            b.fields: b.properties[DISTINCT_COUNT]
            for b in footer.blobs
            if b.type == THETA_SKETCH and DISTINCT_COUNT in b.properties
        }
        fields = {c.name: (c.field.field_id,) for c in columns}
        if not footer.is_ours or set(counts) != set(fields.values()):
            return None
        return ComputedTableStatistics(
            statistics_file=file.statistics_path,
            distinct_counts={name: int(counts[ids]) for name, ids in fields.items()},
        )

    def _columns_and_scan(self, snapshot: Snapshot) -> tuple[Sequence[SketchedColumn], TableScan]:
        columns: list[SketchedColumn] = []

        def projection(schema: Schema) -> Schema:
            columns.extend(_columns(self._table, schema, self._names))
            return schema.select([".".join(c.path) for c in columns])

        scan = scan_table(
            self._table.name,
            self._newest.metadata,
            self._table.io,
            selector=SnapshotSelector(snapshot_id=snapshot.snapshot_id),
            projection=projection,
            report=self._newest.report_scan,
            planner=self._newest.plan_scan,
        )
        return columns, scan


def _columns(
    table: MaintainedTable, schema: Schema, names: Sequence[str] | None
) -> Sequence[SketchedColumn]:
    if names is None:
        columns = [
            SketchedColumn(path=(f.name,), field=f) for f in schema.fields if is_hashable(f.type)
        ]
    else:
        columns = [_column(table, schema, name) for name in dict.fromkeys(names)]
    if not columns:
        raise InvalidRequestError(
            f"table {table.name}: no columns to compute statistics of; structs, lists and maps "
            "have no statistics: name a field of a struct"
        )
    return columns


def _column(table: MaintainedTable, schema: Schema, name: str) -> SketchedColumn:
    full_name = name if name in schema.id_by_name else ".".join(parse_levels(name))
    field = schema.find(full_name, case_sensitive=table.case_sensitive is not False)
    path = schema.path_to(field.field_id)
    in_structs = all(isinstance(f.type, types.StructType) for f in path[:-1])
    if not in_structs or not is_hashable(field.type):
        raise InvalidRequestError(
            f"table {table.name}: the column {name} is of type {field.type}, or in a list or map, "
            "which have no statistics; leave it out, or name a field of a struct"
        )
    return SketchedColumn(path=tuple(f.name for f in path), field=field)


def _write(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot,
    columns: Sequence[SketchedColumn],
    sketches: Sketches,
) -> StatisticsFile:
    provider = location_provider(metadata.location, metadata.properties)
    location = provider.new_metadata_location(
        statistics_file_name(snapshot.snapshot_id, str(uuid.uuid4()))
    )
    blobs = [
        BlobMetadata(
            type=THETA_SKETCH,
            snapshot_id=snapshot.snapshot_id,
            sequence_number=snapshot.sequence_number,
            fields=(c.field.field_id,),
            properties={DISTINCT_COUNT: str(sketches[c.field.field_id].distinct_count)},
        )
        for c in columns
    ]
    try:
        with io.open_output(location) as stream, PuffinWriter(stream) as puffin:
            for blob in blobs:
                puffin.add_blob(
                    type=blob.type,
                    fields=blob.fields,
                    snapshot_id=blob.snapshot_id,
                    sequence_number=blob.sequence_number,
                    data=sketches[blob.fields[0]].to_bytes(),
                    properties=blob.properties,
                )
    except BaseException:
        remove_unfinished_file(io, location)
        raise
    size, key_metadata = stored_file(stream, puffin.file_size)
    return StatisticsFile(
        snapshot_id=snapshot.snapshot_id,
        statistics_path=location,
        file_size_in_bytes=size,
        file_footer_size_in_bytes=puffin.footer_size,
        blob_metadata=tuple(blobs),
        key_metadata=None if key_metadata is None else b64encode(key_metadata).decode(),
    )
