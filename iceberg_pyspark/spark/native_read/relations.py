"""Relations over the files of a scan: their description for the JVM, and the table of files.

A constant has the same value for all rows of a file; Spark's reader returns it beside the columns
that it reads. Constants have Arrow types here and the corresponding Spark types in the JVM.

Spark's reader assigns a row group to the split that has the group's middle. A split without the
middle of any row group costs a task and the requests for a footer, and returns no row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrow_schemas import arrow_type
from iceberg_pyspark.planning.scan_tasks import ScanTask
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
from iceberg_pyspark.spark.native_read.relation_files import (
    LOCATION,
    SPLIT_OFFSETS,
    RelationFiles,
)
from iceberg_pyspark.spark.storage.jvm_access import NativeStorage, are_local
from iceberg_pyspark.spec.encryption import file_key
from iceberg_pyspark.spec.metadata_columns import CHANGE_COLUMNS, COMMIT_COLUMNS
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.table_properties import VERIFY_CHECKSUMS
from iceberg_pyspark.storage.restricted_io import check_reads
from iceberg_pyspark.table.reading.table_scan import TableScan

FILE_SIZE = "file_size_in_bytes"
FILE_KEY = "file_key"
AAD_PREFIX = "aad_prefix"
ORDINAL = "__ice_ord"
"""The constant that is a file's index in the table; a part's bitmaps are in the same order."""


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
