"""Groups the files of a scan by the way in which Spark reads them, and decides their columns.

The groups are: files without deletes, files with bitmaps of deleted rows, files with deleted keys
(`spark/native_read/equality_joins.py`), with or without bitmaps, and portable files. Files that
Spark's readers may misread are portable, and so are ORC files with deleted positions, because
Spark's ORC reader does not return row positions, and encrypted files that are not local.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from iceberg_pyspark.arrow.read.position_deletes import DeletionVector
from iceberg_pyspark.expressions.predicates import Predicate
from iceberg_pyspark.expressions.rewriting import columns_of
from iceberg_pyspark.planning.scan_plan import PlannedFiles, tasks_of
from iceberg_pyspark.planning.scan_tasks import UNKNOWN_SEQUENCE_NUMBER, ScanTask
from iceberg_pyspark.spark.bridge.features import (
    ANNOTATED_COLUMNS,
    EXECUTOR_POSITIONS,
    EXECUTOR_VECTORS,
    NATIVE_SCAN,
    ORC_SCAN,
    ORC_ZONES,
)
from iceberg_pyspark.spark.native_read import deleted_rows
from iceberg_pyspark.spark.native_read.columns import NativeColumns, constant_ids, native_columns
from iceberg_pyspark.spark.native_read.deleted_rows import (
    PositionDeletes,
    bitmap_bytes,
    large_positions,
    large_vectors,
    read_bitmaps,
)
from iceberg_pyspark.spark.native_read.equality_joins import equality_deletes
from iceberg_pyspark.spark.native_read.filter_conditions import is_exact
from iceberg_pyspark.spark.native_read.reader_differences import (
    Mask,
    OrcFilesRead,
    are_named_by_schemas,
    files_with_old_dates,
    misread_files,
)
from iceberg_pyspark.spark.native_read.relations import LOCATION
from iceberg_pyspark.spark.storage.jvm_access import NativeStorage, are_local
from iceberg_pyspark.spec.manifests import FileContent, FileFormat
from iceberg_pyspark.spec.table_properties import DATA_FORMAT
from iceberg_pyspark.spec.types import (
    DateType,
    GeographyType,
    GeometryType,
    NestedField,
    VariantType,
    walk_fields,
)
from iceberg_pyspark.table.reading.table_scan import TableScan

_MAX_BYTES = 2**48
"""Spark holds a table of all splits of a scan: files beyond this total size are read portably."""

DeletedRows: TypeAlias = BitMap64 | DeletionVector | PositionDeletes
"""The deleted rows of a file: the bitmap that the driver read, or where executors read them."""


_FileWithDeletes: TypeAlias = tuple[ScanTask, Mask, int]
"""A file with deletes, and its place in a mask of the plain files of its manifest."""


@dataclass(kw_only=True)
class FileGroups:
    """The files of a scan, grouped by the way in which Spark reads them."""

    plain: list[PlannedFiles] = field(default_factory=list)
    """Files of one format each, with the column `location` of `RelationFiles`."""

    with_positions: list[tuple[ScanTask, DeletedRows]] = field(default_factory=list)
    with_keys: list[tuple[ScanTask, DeletedRows]] = field(default_factory=list)
    portable: list[ScanTask] = field(default_factory=list)


def group_files(
    bridge: Any,
    scan: TableScan,
    storage: NativeStorage,
    columns: ReadColumns,
    groups_of_plan: Iterable[PlannedFiles],
    *,
    marks_deleted: bool,
) -> FileGroups:
    """Return the files in groups, and read the deletes that the driver must read.

    `marks_deleted` means that deleted rows stay and are marked in a column, which only the portable
    reader can do.
    """
    groups = FileGroups()
    with_deletes: list[_FileWithDeletes] = []
    plain_files: list[tuple[PlannedFiles, Mask]] = []
    total = 0.0
    for files in groups_of_plan:
        entries = files.entries
        locations = storage.locations(entries["file_path"])
        files = replace(files, entries=entries.append_column(LOCATION, locations))
        native = _is_native(scan, columns, files)
        totals = total + np.cumsum(np.where(native, entries["file_size_in_bytes"], 0.0))
        native &= totals <= _MAX_BYTES
        total = totals[-1] if len(totals) else total
        has_deletes = np.zeros(len(native), np.bool_)
        has_deletes[list(files.deletes)] = True
        groups.portable += _tasks_of(files, ~native)
        plain = native & ~has_deletes
        plain_files.append((files, plain))
        changed = native & has_deletes
        for row, task in zip(np.flatnonzero(changed), _tasks_of(files, changed), strict=True):
            if marks_deleted or _has_unknown_sequence_numbers(task):
                groups.portable.append(task)
            else:
                with_deletes.append((task, plain, int(row)))
    read_by_executors = _read_by_executors([t for t, _, _ in with_deletes], bridge, scan, storage)
    _group_by_deletes(groups, with_deletes, scan, read_by_executors)
    for files, plain in plain_files:
        groups.plain += _of_each_format(files, plain)
    return groups


def _of_each_format(files: PlannedFiles, mask: Mask) -> Iterator[PlannedFiles]:
    formats = files.entries["file_format"]
    for file_format in pc.unique(formats):
        of_format = mask & pc.equal(formats, file_format).to_numpy()
        if of_format.any():
            yield files.only(of_format)


def _is_native(scan: TableScan, columns: ReadColumns, files: PlannedFiles) -> Mask:
    """Return which files Spark's readers can open, and read correctly apart from deletes."""
    entries = files.entries
    native: Mask = columns.can_read(files) & entries[LOCATION].is_valid().to_numpy()
    native[list(files.residuals)] = False
    misread = misread_files(scan.io, entries)
    misread |= files_with_old_dates(entries, columns.bounded_dates)
    if misread:
        paths = pa.array(sorted(misread), pa.string())
        native &= ~pc.is_in(entries["file_path"], value_set=paths).to_numpy()
    is_open = pc.or_(entries["key_metadata"].is_null(), are_local(entries["file_path"]))
    native &= is_open.to_numpy()
    return native


def _tasks_of(files: PlannedFiles, mask: Mask) -> list[ScanTask]:
    return tasks_of(files.only(mask)) if mask.any() else []


def _has_unknown_sequence_numbers(task: ScanTask) -> bool:
    """Return whether a server planned a file with equality deletes but without sequence numbers.

    An anti-join would have to compare these sequence numbers.
    """
    return task.data_sequence_number == UNKNOWN_SEQUENCE_NUMBER and bool(equality_deletes(task))


def _group_by_deletes(
    groups: FileGroups,
    files: Sequence[_FileWithDeletes],
    scan: TableScan,
    read_by_executors: Mapping[str, DeletedRows],
) -> None:
    read_here = [t for t, _, _ in files if t.file_path not in read_by_executors]
    bitmaps = read_bitmaps(scan.io, read_here, scan.context.table, scan.context.verify_checksums)
    size = 0
    for task, plain, row in files:
        deleted = read_by_executors.get(task.file_path)
        if deleted is None:
            if size <= deleted_rows.MAX_TOTAL_BYTES:
                _, deleted = next(bitmaps)
                size += bitmap_bytes(deleted)
            if size > deleted_rows.MAX_TOTAL_BYTES:
                groups.portable.append(task)
                continue
        if equality_deletes(task):
            groups.with_keys.append((task, deleted or BitMap64()))
        elif deleted is None:
            plain[row] = True
        else:
            groups.with_positions.append((task, deleted))


def _read_by_executors(
    tasks: Sequence[ScanTask], bridge: Any, scan: TableScan, storage: NativeStorage
) -> Mapping[str, DeletedRows]:
    """Return the deletes that executors read because they are large, by data file path."""

    def is_reachable(path: str) -> bool:
        return storage.location(path) is not None

    deletes: dict[str, DeletedRows] = {}
    if bridge.has(EXECUTOR_VECTORS):
        deletes |= large_vectors(tasks, scan.context.table, is_reachable)
    if bridge.has(EXECUTOR_POSITIONS):
        deletes |= large_positions(tasks, scan.context.table, is_reachable)
    return deletes


class ReadColumns:
    """The columns of a scan by file format and constants, each computed once."""

    def __init__(
        self,
        bridge: Any,
        scan: TableScan,
        row_filter: Predicate,
        bounded_dates: Sequence[NestedField],
    ) -> None:
        """`row_filter` selects rows inside the relation, which also reads the filter's columns.

        `bounded_dates` is the result of the function `bounded_dates`; the scan is planned with the
        bounds of these columns.
        """
        self._bridge = bridge
        self._scan = scan
        self._filter = row_filter
        self._cache: dict[object, NativeColumns | None] = {}
        self.bounded_dates = bounded_dates

    def of(
        self,
        constants: frozenset[int],
        further: Collection[int] = (),
        file_format: FileFormat = "parquet",
    ) -> NativeColumns | None:
        """Return the columns of files with these constants, or None if Spark's reader cannot read
        them.

        `further` are ids of columns beyond the projection.
        """
        key = (constants, frozenset(further), file_format)
        if key not in self._cache:
            self._cache[key] = self._native_columns(constants, further, file_format)
        return self._cache[key]

    def _native_columns(
        self, constants: frozenset[int], further: Collection[int], file_format: FileFormat
    ) -> NativeColumns | None:
        feature = ORC_SCAN if file_format == "orc" else NATIVE_SCAN
        if not (self._bridge.has(feature) and is_exact(self._filter)):
            return None
        if (
            file_format == "parquet"
            and self._is_annotated()
            and not self._bridge.has(ANNOTATED_COLUMNS)
        ):
            return None
        orc = OrcFilesRead(
            bounded_dates=frozenset(f.field_id for f in self.bounded_dates),
            with_zones=self._bridge.has(ORC_ZONES),
        )
        further = {*further, *columns_of(self._filter)}
        return native_columns(self._scan, further, constants, file_format, orc)

    def _is_annotated(self) -> bool:
        """Return whether Parquet files may have logical types that Parquet 1.15 cannot open."""
        return any(
            isinstance(f.type, VariantType | GeometryType | GeographyType)
            for schema in self._scan.metadata.schemas
            for f in walk_fields(schema.as_struct)
        )

    def can_read(self, files: PlannedFiles) -> Mask:
        """Return which files Spark's readers read correctly, apart from their deletes."""
        formats = files.entries["file_format"]
        readable: Mask = np.zeros(len(formats), np.bool_)
        constants = constant_ids(self._scan.context.specs[files.spec.spec_id])
        if self.of(constants) is not None:
            readable |= pc.equal(formats, "parquet").to_numpy()
        of_orc = pc.equal(formats, "orc").to_numpy()
        if of_orc.any() and self.of(constants, file_format="orc") is not None:
            # Spark's ORC reader returns no row positions.
            for row, deletes in files.deletes.items():
                of_orc[row] &= all(d.content is FileContent.EQUALITY_DELETES for d in deletes)
            readable |= of_orc & are_named_by_schemas(files.entries)
        return readable


def bounded_dates(scan: TableScan) -> tuple[NestedField, ...]:
    """Return the date columns whose bounds a plan must read because of ORC files."""
    if scan.metadata.properties.get(DATA_FORMAT.name, "").lower() != "orc":
        return ()
    return tuple(f for f in scan.context.projection.fields if isinstance(f.type, DateType))
