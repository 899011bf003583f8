"""The columns that Spark's readers read in one scan, by file format and constants."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from iceberg_pyspark.expressions.predicates import Predicate
from iceberg_pyspark.expressions.rewriting import columns_of
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spark.bridge.features import NATIVE_SCAN, ORC_SCAN, ORC_ZONES
from iceberg_pyspark.spark.native_read.columns import NativeColumns, constant_ids, native_columns
from iceberg_pyspark.spark.native_read.filter_conditions import is_exact
from iceberg_pyspark.spark.native_read.reader_differences import OrcFilesRead, is_named_by_schemas
from iceberg_pyspark.spec.manifests import FileContent, FileFormat
from iceberg_pyspark.spec.table_properties import DATA_FORMAT
from iceberg_pyspark.spec.types import DateType, NestedField
from iceberg_pyspark.table.reading.table_scan import TableScan


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
        orc = OrcFilesRead(
            bounded_dates=frozenset(f.field_id for f in self.bounded_dates),
            with_zones=self._bridge.has(ORC_ZONES),
        )
        further = {*further, *columns_of(self._filter)}
        return native_columns(self._scan, further, constants, file_format, orc)

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
