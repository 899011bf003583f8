"""Groups the files of a scan by the way in which Spark reads them, and decides their columns.

The groups are: files without deletes, files with bitmaps of deleted rows, files with deleted keys
(`spark/native_read/equality_joins.py`), with or without bitmaps, and portable files. Files that
Spark's readers may misread are portable, and so are ORC files with deleted positions, because
Spark's ORC reader does not return row positions, and encrypted files that are not local.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pyroaring import BitMap64

from iceberg_pyspark.arrow.read.position_deletes import DeletionVector
from iceberg_pyspark.expressions.predicates import Predicate
from iceberg_pyspark.expressions.rewriting import columns_of
from iceberg_pyspark.planning.scan_plan import PlannedFiles
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
    OrcFilesRead,
    files_with_old_dates,
    is_named_by_schemas,
    misread_files,
)
from iceberg_pyspark.spark.storage.jvm_access import NativeStorage
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
from iceberg_pyspark.storage.files.local import is_local
from iceberg_pyspark.table.reading.table_scan import TableScan

_MAX_BYTES = 2**48
"""Spark holds a table of all splits of a scan: files beyond this total size are read portably."""

DeletedRows: TypeAlias = BitMap64 | DeletionVector | PositionDeletes
"""The deleted rows of a file: the bitmap that the driver read, or where executors read them."""


@dataclass(kw_only=True)
class FileGroups:
    """The tasks of a scan, grouped by the way in which Spark reads them."""

    plain: list[ScanTask] = field(default_factory=list)
    with_positions: list[tuple[ScanTask, DeletedRows]] = field(default_factory=list)
    with_keys: list[tuple[ScanTask, DeletedRows]] = field(default_factory=list)
    portable: list[ScanTask] = field(default_factory=list)


def group_files(
    bridge: Any,
    scan: TableScan,
    storage: NativeStorage,
    columns: ReadColumns,
    planned_files: Iterable[tuple[PlannedFiles, list[ScanTask]]],
    *,
    marks_deleted: bool,
) -> FileGroups:
    """Return the tasks in groups, and read the deletes that the driver must read.

    `marks_deleted` means that deleted rows stay and are marked in a column, which only the portable
    reader can do.
    """
    groups = FileGroups()
    with_deletes: list[ScanTask] = []
    size = 0
    for files, tasks in planned_files:
        misread = misread_files(scan.io, files.entries)
        misread |= files_with_old_dates(files.entries, columns.bounded_dates)
        for task in tasks:
            if (
                task.file_path in misread
                or storage.location(task.file_path) is None
                or not columns.can_read(task)
                or task.residual is not None
                or (task.key_metadata is not None and not is_local(task.file_path))
            ):
                groups.portable.append(task)
                continue
            size += task.file_size_in_bytes
            if size > _MAX_BYTES:
                groups.portable.append(task)
            elif not task.deletes:
                groups.plain.append(task)
            elif marks_deleted or _has_unknown_sequence_numbers(task):
                groups.portable.append(task)
            else:
                with_deletes.append(task)
    read_by_executors = _read_by_executors(with_deletes, bridge, scan, storage)
    _group_by_deletes(groups, with_deletes, scan, read_by_executors)
    return groups


def _has_unknown_sequence_numbers(task: ScanTask) -> bool:
    """Return whether a server planned a file with equality deletes but without sequence numbers.

    An anti-join would have to compare these sequence numbers.
    """
    return task.data_sequence_number == UNKNOWN_SEQUENCE_NUMBER and bool(equality_deletes(task))


def _group_by_deletes(
    groups: FileGroups,
    tasks: Sequence[ScanTask],
    scan: TableScan,
    read_by_executors: Mapping[str, DeletedRows],
) -> None:
    read_here = [t for t in tasks if t.file_path not in read_by_executors]
    bitmaps = read_bitmaps(scan.io, read_here, scan.context.table, scan.context.verify_checksums)
    size = 0
    for task in tasks:
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
            groups.plain.append(task)
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

    def can_read(self, task: ScanTask) -> bool:
        """Return whether Spark's reader reads the rows of a file correctly, apart from deletes."""
        match task.file_format:
            case "parquet":
                return self.of(frozenset()) is not None
            case "orc":
                # Spark's ORC reader returns no row positions.
                if any(d.content is not FileContent.EQUALITY_DELETES for d in task.deletes):
                    return False
                constants = constant_ids(self._scan.context.specs[task.spec_id])
                return (
                    is_named_by_schemas(task) and self.of(constants, file_format="orc") is not None
                )
        return False


def bounded_dates(scan: TableScan) -> tuple[NestedField, ...]:
    """Return the date columns whose bounds a plan must read because of ORC files."""
    if scan.metadata.properties.get(DATA_FORMAT.name, "").lower() != "orc":
        return ()
    return tuple(f for f in scan.context.projection.fields if isinstance(f.type, DateType))
