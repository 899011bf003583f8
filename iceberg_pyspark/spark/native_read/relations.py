"""Relations over the files of a scan: their description for the JVM, and the table of files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spark.bridge.call_arguments import ParquetRelation
from iceberg_pyspark.spark.native_read.columns import NativeColumns
from iceberg_pyspark.spark.native_read.equality_joins import PartitionOrdinals
from iceberg_pyspark.spark.native_read.file_relation import ORDINAL, FileFacts, files_table
from iceberg_pyspark.spark.native_read.filter_conditions import columns_for_skipping
from iceberg_pyspark.spark.native_read.ordering import sort_fields, sorted_by
from iceberg_pyspark.spark.native_read.split_offsets import SplitOffsets
from iceberg_pyspark.spark.storage.jvm_access import NativeStorage
from iceberg_pyspark.spec.manifests import FileFormat
from iceberg_pyspark.spec.table_properties import VERIFY_CHECKSUMS
from iceberg_pyspark.storage.files.local import is_local
from iceberg_pyspark.storage.restricted_io import check_read
from iceberg_pyspark.table.reading.table_scan import TableScan

_MAX_ROWS = 2**40


@dataclass(kw_only=True)
class Relations:
    """A factory of the relations of one scan."""

    scan: TableScan
    key: str
    """A key that is equal for equal scans."""

    storage: NativeStorage
    ordinals: PartitionOrdinals
    split_offsets: SplitOffsets
    never_null: Collection[int]
    """The ids of columns without a null in the rows of the scan."""

    sort_orders: Collection[int | None]
    """The sort order ids of the files."""

    metrics: Mapping[str, int]
    """The planning metrics by Iceberg's names; only the first relation has them."""

    group_keys: Mapping[str, pa.Array] | None = None
    """The columns that group the files, if they are grouped."""

    _has_metrics: bool = field(default=True, init=False)

    def describe(
        self,
        columns: NativeColumns,
        tasks: Sequence[ScanTask],
        file_constants: Sequence[str],
        part: str,
    ) -> tuple[ParquetRelation, pa.RecordBatch]:
        """Return the relation over the tasks' files, and the table of these files.

        Raise `LocationRefusedError` for a file that the table may not read.
        """
        for task in tasks:
            check_read(self.scan.io, task.file_path)
        file_constants = tuple(dict.fromkeys((*file_constants, *columns.file_constants)))
        facts = FileFacts(self.scan.context.specs, self.ordinals, columns.constants)
        paths = [task.file_path for task in tasks]
        sizes = pa.array([task.file_size_in_bytes for task in tasks], pa.int64())
        file_format = format_of(tasks)
        files = files_table(
            [self.storage.location(path) or path for path in paths],
            sizes,
            self.split_offsets.of(paths, sizes, file_format),
            {name: facts.column(name, tasks) for name in file_constants},
            self.group_keys or {},
        )
        constants = sorted(c.field_id for c in columns.constants.values())
        is_grouped = self.group_keys is not None
        relation = ParquetRelation(
            table=self.scan.context.table,
            key=f"{self.key}#{file_format}#{part}#{constants}#{is_grouped}",
            file_format=file_format,
            columns=columns.schema(positions=ORDINAL in file_constants).json(),
            non_null_columns=columns.never_null_names(self.never_null),
            file_constants=file_constants,
            keys=None if self.group_keys is None else tuple(self.group_keys),
            options={**self.storage.options, **self._verification(), **_requests(tasks)},
            rows=row_count(tasks),
            rows_of_largest_file=min(max((t.record_count for t in tasks), default=0), _MAX_ROWS),
            filter_columns=self._filterable_columns(columns),
            plan_metrics=self.metrics if self._has_metrics else {},
            sort_order=self._sort_order(columns),
        )
        self._has_metrics = False
        return relation, files

    def _sort_order(self, columns: NativeColumns) -> list[list[str]]:
        constants = {c.field_id: name for name, c in columns.constants.items()}
        names = {**columns.names, **constants}
        return sorted_by(sort_fields(self.scan.metadata, self.sort_orders), names)

    def _filterable_columns(self, columns: NativeColumns) -> Mapping[str, str]:
        """Return the read columns by which files can be skipped, with their names in the schema."""
        table_schema = self.scan.context.schemas[0].as_struct
        fields = {
            f.field_id: table_schema.field(f.field_id)
            for f in columns_for_skipping(self.scan.metadata)
        }
        return {
            columns.names[i]: f.name
            for i, f in fields.items()
            if f is not None and i in columns.names and columns.names[i] not in columns.constants
        }

    def _verification(self) -> Mapping[str, str]:
        """Return Parquet's property for checksum verification, for the reader of this relation
        alone.

        Pages are verified only if the table has the property: verification took Spark's reader 6 %
        more processor time.
        """
        has_property = VERIFY_CHECKSUMS.name in self.scan.metadata.properties
        verify = has_property and self.scan.context.verify_checksums
        return {"parquet.page.verify-checksum.enabled": str(verify).lower()}


def _requests(tasks: Sequence[ScanTask]) -> Mapping[str, str]:
    """Return Parquet properties that reduce the requests to a store.

    To skip pages and to use dictionaries, the reader requests an index and a dictionary for each
    column of a filter: 7 requests more than the 3 that query 6 of TPC-H took for a file.
    """
    if all(is_local(t.file_path) for t in tasks):
        return {}
    return {
        "parquet.filter.columnindex.enabled": "false",
        "parquet.filter.dictionary.enabled": "false",
    }


def format_of(tasks: Sequence[ScanTask]) -> FileFormat:
    """Return the common format of the files; Parquet if there are no files."""
    return tasks[0].file_format if tasks else "parquet"


def row_count(tasks: Sequence[ScanTask]) -> int:
    """Return the number of rows by the manifests, capped to a number that the JVM can hold."""
    return min(sum(max(t.record_count, 0) for t in tasks), _MAX_ROWS)
