"""Relations over the files of a scan: their description for the JVM, and the table of files.

A constant has the same value for all rows of a file; Spark's reader returns it beside the columns
that it reads. Constants have Arrow types here and the corresponding Spark types in the JVM.

Spark's reader assigns a row group to the split that has the group's middle. A split without the
middle of any row group costs a task and the requests for a footer, and returns no row.

Files without deletes come as they are in the columns of the entries: objects for the files, and
loops over them, took two thirds of Python's time in a plan of 100,000 files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrow_schemas import arrow_type
from iceberg_pyspark.planning.scan_plan import PlannedFiles, partition_tuples
from iceberg_pyspark.planning.scan_tasks import RowChange, ScanTask
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
from iceberg_pyspark.spark.storage.jvm_access import NativeStorage, are_local
from iceberg_pyspark.spec.encryption import file_key
from iceberg_pyspark.spec.manifests import FileFormat
from iceberg_pyspark.spec.metadata_columns import CHANGE_COLUMNS, COMMIT_COLUMNS
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.table_properties import VERIFY_CHECKSUMS
from iceberg_pyspark.storage.restricted_io import check_reads
from iceberg_pyspark.table.reading.table_scan import TableScan

LOCATION = "location"
"""The column of the locations by which the JVM opens the files."""

SPLIT_OFFSETS = "split_offsets"
FILE_SIZE = "file_size_in_bytes"
FILE_KEY = "file_key"
AAD_PREFIX = "aad_prefix"
ORDINAL = "__ice_ord"
"""The constant that is a file's index in the table; a part's bitmaps are in the same order."""

_OFFSETS = pa.list_(pa.int64())
_TYPES = {
    LOCATION: pa.string(),
    "file_path": pa.string(),
    "file_size_in_bytes": pa.int64(),
    "record_count": pa.int64(),
    "sequence_number": pa.int64(),
    "first_row_id": pa.int64(),
    "key_metadata": pa.binary(),
}


@dataclass(frozen=True, kw_only=True)
class RelationFiles:
    """Data files of one format."""

    file_format: FileFormat
    table: pa.Table
    """The columns `location`, `spec_id` and, as in `spec/entry_columns.py`, others; the split
    offsets are null for a file that has no usable ones."""

    partitions: Callable[[], Iterable[tuple[int, tuple[Any, ...]]]]
    """Return the id of the partition spec and the partition tuple of each file."""

    changes: Callable[[], Iterable[RowChange | None]]
    """Return the change of each file's rows, in a changelog."""

    @staticmethod
    def of_plan(groups: Sequence[PlannedFiles]) -> RelationFiles:
        """Return planned files; their entries have the column `location`."""
        columns = {name: _column(groups, name, type_) for name, type_ in _TYPES.items()}
        counts = [g.entries.num_rows for g in groups]
        spec_ids = [g.spec.spec_id for g in groups]
        columns["spec_id"] = pa.array(np.repeat(spec_ids, counts), pa.int32())
        file_format = format_of(groups)
        columns[SPLIT_OFFSETS] = usable_offsets(
            _column(groups, SPLIT_OFFSETS, _OFFSETS), columns["file_size_in_bytes"], file_format
        )
        return RelationFiles(
            file_format=file_format,
            table=pa.table(columns),
            partitions=lambda: chain.from_iterable(
                zip(repeat(g.spec.spec_id, n), partition_tuples(g.entries), strict=False)
                for g, n in zip(groups, counts, strict=True)
            ),
            changes=lambda: chain.from_iterable(
                repeat(g.change, n) for g, n in zip(groups, counts, strict=True)
            ),
        )

    @staticmethod
    def of_tasks(
        tasks: Sequence[ScanTask], storage: NativeStorage, split_offsets: SplitOffsets
    ) -> RelationFiles:
        """Return the files of tasks; the JVM can open all of them."""
        paths = [t.file_path for t in tasks]
        file_format = tasks[0].file_format
        values: dict[str, Sequence[object]] = {
            LOCATION: [storage.location(path) for path in paths],
            "file_path": paths,
            "file_size_in_bytes": [t.file_size_in_bytes for t in tasks],
            "record_count": [t.record_count for t in tasks],
            "sequence_number": [t.data_sequence_number for t in tasks],
            "first_row_id": [t.first_row_id for t in tasks],
            "key_metadata": [t.key_metadata for t in tasks],
        }
        columns = {name: pa.array(values[name], type_) for name, type_ in _TYPES.items()}
        columns["spec_id"] = pa.array([t.spec_id for t in tasks], pa.int32())
        offsets = split_offsets.of(columns["file_path"])
        columns[SPLIT_OFFSETS] = usable_offsets(offsets, columns["file_size_in_bytes"], file_format)
        return RelationFiles(
            file_format=file_format,
            table=pa.table(columns),
            partitions=lambda: [(t.spec_id, t.partition) for t in tasks],
            changes=lambda: [t.change for t in tasks],
        )


def format_of(groups: Sequence[PlannedFiles]) -> FileFormat:
    """Return the common format of planned files; Parquet if there are none."""
    formats = (g.entries["file_format"] for g in groups if g.entries.num_rows)
    first: FileFormat = next((f[0].as_py() for f in formats), "parquet")
    return first


def _column(groups: Iterable[PlannedFiles], name: str, type_: pa.DataType) -> pa.Array:
    # Avro, Parquet and a catalog's server give lists with different names of their elements.
    chunks = chain.from_iterable(g.entries[name].cast(type_).chunks for g in groups)
    return pa.chunked_array(list(chunks), type_).combine_chunks()


class SplitOffsets:
    """The split offsets of the planned files of a scan, by path."""

    def __init__(self, groups: Iterable[PlannedFiles]) -> None:
        """The files are read when the offsets are needed first."""
        self._groups = groups

    def of(self, paths: pa.Array) -> pa.Array:
        """Return the offsets of each file."""
        groups = list(self._groups)
        rows = pc.index_in(paths, value_set=_column(groups, "file_path", pa.string()))
        return _column(groups, SPLIT_OFFSETS, _OFFSETS).take(rows)


def usable_offsets(offsets: pa.ListArray, sizes: pa.Array, file_format: FileFormat) -> pa.Array:
    """Return the usable split offsets of each file, null for a file without any.

    Offsets are usable if the file is a Parquet file, and if they ascend and are within the file, as
    in `planning/split_pack.py`. `sizes` are in bytes.
    """
    if file_format != "parquet":
        return pa.nulls(len(offsets), _OFFSETS)
    usable = _are_usable(offsets, sizes.to_numpy())
    if usable.all():
        return offsets
    return offsets.take(pa.array(np.arange(len(offsets)), mask=~usable))


def _are_usable(offsets: pa.ListArray, sizes: Numbers) -> Mask:
    counts = offsets.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    row = np.repeat(np.arange(len(sizes)), counts)
    # A missing offset becomes -1, which is outside of every file.
    begins = offsets.flatten().fill_null(-1).to_numpy(zero_copy_only=False)
    usable: Mask = (counts > 0) & (counts <= MAX_RANGES_OF_A_FILE)
    usable[row[(begins < 0) | (begins >= sizes[row])]] = False
    usable[row[1:][(begins[1:] <= begins[:-1]) & (row[1:] == row[:-1])]] = False
    return usable


class FileFacts:
    """A source of columns with facts about a scan's files."""

    def __init__(
        self,
        specs: Mapping[int, PartitionSpec],
        ordinals: PartitionOrdinals,
        constants: Mapping[str, ConstantColumn],
    ) -> None:
        """`constants` are the constants that are columns of the table."""
        self._specs = specs
        self._ordinals = ordinals
        self._constants = constants

    def column(self, name: str, files: RelationFiles) -> pa.Array:
        """Return the constant's value for each file."""
        constant = self._constants.get(name)
        if constant is not None:
            values = constant_values(self._specs, list(files.partitions()), constant.field_id)
            return pa.array(values, arrow_type(constant.type))
        if name in _COLUMNS:
            return files.table[_COLUMNS[name]].combine_chunks()
        if name == ORDINAL:
            return pa.array(range(files.table.num_rows), pa.int32())
        if name == PARTITION_ORDINAL:
            ordinals = [self._ordinals.of(*partition) for partition in files.partitions()]
            return pa.array(ordinals, pa.int32())
        described = _OF_CHANGES[name]
        values = [c and c.values()[described.field_id] for c in files.changes()]
        return pa.array(values, arrow_type(described.type))


_COLUMNS = {
    CONSTANT_FILE: "file_path",
    CONSTANT_SPEC_ID: "spec_id",
    CONSTANT_FIRST_ROW_ID: "first_row_id",
    CONSTANT_SEQUENCE: "sequence_number",
}
_OF_CHANGES = {CONSTANTS_OF_CHANGE[f.field_id]: f for f in (*CHANGE_COLUMNS, *COMMIT_COLUMNS)}


def files_table(
    files: RelationFiles, file_constants: Mapping[str, pa.Array], keys: Mapping[str, pa.Array]
) -> pa.RecordBatch:
    """Return the table of files for the JVM; constants and keys have distinct names."""
    names = (LOCATION, FILE_SIZE, SPLIT_OFFSETS)
    columns = {name: files.table[name].combine_chunks() for name in names}
    columns |= {**file_constants, **_file_keys(files), **keys}
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


_MAX_ROWS = 2**40


@dataclass(kw_only=True)
class Relations:
    """A factory of the relations of one scan."""

    scan: TableScan
    storage: NativeStorage
    ordinals: PartitionOrdinals
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
        files: RelationFiles,
        file_constants: Sequence[str],
    ) -> tuple[ParquetRelation, pa.RecordBatch]:
        """Return the relation over the files, and the table of these files.

        Raise `LocationRefusedError` for a file that the table may not read.
        """
        check_reads(self.scan.io, files.table["file_path"].to_pylist())
        file_constants = tuple(dict.fromkeys((*file_constants, *columns.file_constants)))
        facts = FileFacts(self.scan.context.specs, self.ordinals, columns.constants)
        constants = {name: facts.column(name, files) for name in file_constants}
        counts = np.maximum(files.table["record_count"].to_numpy(), 0)
        relation = ParquetRelation(
            table=self.scan.context.table,
            file_format=files.file_format,
            columns=columns.schema(positions=ORDINAL in file_constants).json(),
            non_null_columns=columns.never_null_names(self.never_null),
            file_constants=file_constants,
            keys=None if self.group_keys is None else tuple(self.group_keys),
            options={**self.storage.options, **self._verification(), **_requests(files)},
            rows=int(min(counts.sum(dtype=float), _MAX_ROWS)),
            rows_of_largest_file=min(int(counts.max(initial=0)), _MAX_ROWS),
            filter_columns=self._filterable_columns(columns),
            plan_metrics=self.metrics if self._has_metrics else {},
            sort_order=self._sort_order(columns),
        )
        self._has_metrics = False
        return relation, files_table(files, constants, self.group_keys or {})

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


def _file_keys(files: RelationFiles) -> dict[str, pa.Array]:
    """Return the keys of the files as columns of the table of files; none if none has a key."""
    key_metadata = files.table["key_metadata"]
    if key_metadata.null_count == len(key_metadata):
        return {}
    paths = files.table["file_path"].to_pylist()
    keys = [
        None if k is None else file_key(k, path)
        for k, path in zip(key_metadata.to_pylist(), paths, strict=True)
    ]
    return {
        FILE_KEY: pa.array([k and k.key for k in keys], pa.binary()),
        AAD_PREFIX: pa.array([k and k.aad_prefix for k in keys], pa.binary()),
    }


def _requests(files: RelationFiles) -> Mapping[str, str]:
    """Return Parquet properties that reduce the requests to a store.

    To skip pages and to use dictionaries, the reader requests an index and a dictionary for each
    column of a filter: 7 requests more than the 3 that query 6 of TPC-H took for a file.
    """
    if pc.all(are_local(files.table["file_path"])).as_py() is not False:
        return {}
    return {
        "parquet.filter.columnindex.enabled": "false",
        "parquet.filter.dictionary.enabled": "false",
    }


def row_count(tasks: Sequence[ScanTask]) -> int:
    """Return the number of rows by the manifests, capped to a number that the JVM can hold."""
    return min(sum(max(t.record_count, 0) for t in tasks), _MAX_ROWS)
