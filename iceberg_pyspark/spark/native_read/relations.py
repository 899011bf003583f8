"""Relations over the files of a scan: their description for the JVM, and the table of files.

A constant has the same value for all rows of a file; Spark's reader returns it beside the columns
that it reads. Constants have Arrow types here and the corresponding Spark types in the JVM.

Spark's reader assigns a row group to the split that has the group's middle. A split without the
middle of any row group costs a task and the requests for a footer, and returns no row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrow_schemas import arrow_type
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.planning.split_pack import MAX_RANGES_OF_A_FILE
from iceberg_pyspark.spark.bridge.call_arguments import ParquetRelation
from iceberg_pyspark.spark.bridge.type_agreement import COMPARED_TYPES
from iceberg_pyspark.spark.native_read.columns import (
    CONSTANT_FILE,
    CONSTANT_FIRST_ROW_ID,
    CONSTANT_SEQUENCE,
    CONSTANT_SPEC_ID,
    CONSTANTS_OF_CHANGE,
    ConstantColumn,
    NativeColumns,
    constant_values,
)
from iceberg_pyspark.spark.native_read.equality_joins import PARTITION_ORDINAL, PartitionOrdinals
from iceberg_pyspark.spark.native_read.file_layout import sort_fields, sorted_by
from iceberg_pyspark.spark.native_read.reader_differences import Mask, Numbers
from iceberg_pyspark.spark.storage.jvm_access import NativeStorage
from iceberg_pyspark.spec.encryption import file_key
from iceberg_pyspark.spec.manifests import FileFormat
from iceberg_pyspark.spec.metadata_columns import CHANGE_COLUMNS, COMMIT_COLUMNS
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.table_properties import VERIFY_CHECKSUMS
from iceberg_pyspark.storage.files.local import is_local
from iceberg_pyspark.storage.restricted_io import check_read
from iceberg_pyspark.table.reading.table_scan import TableScan

LOCATION = "location"
FILE_SIZE = "file_size_in_bytes"
SPLIT_OFFSETS = "split_offsets"
FILE_KEY = "file_key"
AAD_PREFIX = "aad_prefix"
ORDINAL = "__ice_ord"
"""The constant that is a file's index in the table; a part's bitmaps are in the same order."""


class FileFacts:
    """A source of columns with facts about a scan's files."""

    def __init__(
        self,
        specs: Mapping[int, PartitionSpec],
        scopes: PartitionOrdinals,
        constants: Mapping[str, ConstantColumn],
    ) -> None:
        """`constants` are the constants that are columns of the table."""
        self._specs = specs
        self._scopes = scopes
        self._constants = constants

    def column(self, name: str, tasks: Sequence[ScanTask]) -> pa.Array:
        """Return the constant's value for each file."""
        constant = self._constants.get(name)
        if constant is not None:
            return pa.array(
                constant_values(self._specs, tasks, constant.field_id), arrow_type(constant.type)
            )
        type_, values = _CONSTANTS[name]
        return pa.array(values(self._scopes, tasks), type_)


def _of_changes(
    field_id: int, scopes: PartitionOrdinals, tasks: Sequence[ScanTask]
) -> Sequence[object]:
    del scopes
    return [t.change and t.change.values()[field_id] for t in tasks]


_Values = Callable[[PartitionOrdinals, Sequence[ScanTask]], Sequence[object]]
_CONSTANTS: Mapping[str, tuple[pa.DataType, _Values]] = {
    ORDINAL: (pa.int32(), lambda _, tasks: range(len(tasks))),
    CONSTANT_FILE: (pa.string(), lambda _, tasks: [t.file_path for t in tasks]),
    CONSTANT_SPEC_ID: (pa.int32(), lambda _, tasks: [t.spec_id for t in tasks]),
    CONSTANT_FIRST_ROW_ID: (pa.int64(), lambda _, tasks: [t.first_row_id for t in tasks]),
    CONSTANT_SEQUENCE: (pa.int64(), lambda _, tasks: [t.data_sequence_number for t in tasks]),
    PARTITION_ORDINAL: (pa.int32(), lambda scopes, tasks: [scopes.of(t) for t in tasks]),
    **{
        CONSTANTS_OF_CHANGE[f.field_id]: (arrow_type(f.type), partial(_of_changes, f.field_id))
        for f in (*CHANGE_COLUMNS, *COMMIT_COLUMNS)
    },
}


def files_table(
    locations: Sequence[str],
    sizes: pa.Array,
    split_offsets: pa.Array,
    file_constants: Mapping[str, pa.Array],
    keys: Mapping[str, pa.Array],
) -> pa.RecordBatch:
    """Return a table of files with the JVM's locations; constants and keys have distinct names.

    `sizes` are in bytes; `split_offsets` are those of `SplitOffsets`.
    """
    columns = {
        LOCATION: pa.array(locations, pa.string()),
        FILE_SIZE: sizes,
        SPLIT_OFFSETS: split_offsets,
        **file_constants,
        **keys,
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


_OFFSETS = pa.list_(pa.int64())


class SplitOffsets:
    """The split offsets of the planned files of a scan, by path."""

    def __init__(self, entries: Iterable[pa.Table]) -> None:
        """Each table of `entries` is as in `spec/entry_columns.py`."""
        tables = list(entries)
        self._paths = _column(tables, "file_path", pa.string())
        self._offsets = _column(tables, "split_offsets", _OFFSETS)

    def of(self, paths: Sequence[str], sizes: pa.Array, file_format: FileFormat) -> pa.Array:
        """Return the usable offsets of each file, null for a file without any.

        Offsets are usable if the file is a Parquet file, and if they ascend and are within the
        file, as in `planning/split_pack.py`. `sizes` are in bytes.
        """
        if not paths or file_format != "parquet":
            return pa.nulls(len(paths), _OFFSETS)
        rows = pc.index_in(pa.array(paths, pa.string()), value_set=self._paths)
        offsets = self._offsets.take(rows).combine_chunks()
        usable = _are_usable(offsets, sizes.to_numpy())
        return offsets.take(pa.array(np.arange(len(paths)), mask=~usable))


def _column(tables: Sequence[pa.Table], name: str, type_: pa.DataType) -> pa.ChunkedArray:
    # Avro, Parquet and a catalog's server give lists with different names of their elements.
    chunks = [chunk for table in tables for chunk in table[name].cast(type_).chunks]
    return pa.chunked_array(chunks, type_)


def _are_usable(offsets: pa.ListArray, sizes: Numbers) -> Mask:
    counts = offsets.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    row = np.repeat(np.arange(len(sizes)), counts)
    # A missing offset becomes -1, which is outside of every file.
    begins = offsets.flatten().fill_null(-1).to_numpy(zero_copy_only=False)
    usable: Mask = (counts > 0) & (counts <= MAX_RANGES_OF_A_FILE)
    usable[row[(begins < 0) | (begins >= sizes[row])]] = False
    usable[row[1:][(begins[1:] <= begins[:-1]) & (row[1:] == row[:-1])]] = False
    return usable


_MAX_ROWS = 2**40


@dataclass(kw_only=True)
class Relations:
    """A factory of the relations of one scan."""

    scan: TableScan
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
            {name: facts.column(name, tasks) for name in file_constants} | _file_keys(tasks),
            self.group_keys or {},
        )
        relation = ParquetRelation(
            table=self.scan.context.table,
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
        """Return the read columns by which files can be skipped, with their names in the schema.

        Spark has chosen among the columns of the scan that this relation replaces.
        """
        table_schema = self.scan.context.schemas[0].as_struct
        return {
            columns.names[f.field_id]: f.name
            for f in table_schema.fields
            if isinstance(f.type, COMPARED_TYPES)
            and f.field_id in columns.names
            and columns.names[f.field_id] not in columns.constants
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


def _file_keys(tasks: Sequence[ScanTask]) -> dict[str, pa.Array]:
    """Return the keys of the files as columns of the table of files; none if none has a key."""
    if all(t.key_metadata is None for t in tasks):
        return {}
    keys = [
        None if t.key_metadata is None else file_key(t.key_metadata, t.file_path) for t in tasks
    ]
    return {
        FILE_KEY: pa.array([k and k.key for k in keys], pa.binary()),
        AAD_PREFIX: pa.array([k and k.aad_prefix for k in keys], pa.binary()),
    }


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
