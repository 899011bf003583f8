"""The files of a part as a table: location, size and constants of each file.

A constant has the same value for all rows of a file; Spark's reader returns it beside the columns
that it reads. Constants have Arrow types here and the corresponding Spark types in the JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import arrow_type
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spark.native_read.columns import (
    CONSTANT_FILE,
    CONSTANT_FIRST_ROW_ID,
    CONSTANT_SEQUENCE,
    CONSTANT_SPEC_ID,
    CONSTANTS_OF_CHANGE,
    ConstantColumn,
    constant_values,
)
from iceberg_pyspark.spark.native_read.equality_joins import PARTITION_ORDINAL, PartitionOrdinals
from iceberg_pyspark.spec.metadata_columns import (
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    COMMIT_SNAPSHOT_ID,
)
from iceberg_pyspark.spec.partitioning import PartitionSpec

LOCATION = "location"
FILE_SIZE = "file_size_in_bytes"
SPLIT_OFFSETS = "split_offsets"
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


_Values = Callable[[PartitionOrdinals, Sequence[ScanTask]], Sequence[object]]
_CONSTANTS: Mapping[str, tuple[pa.DataType, _Values]] = {
    ORDINAL: (pa.int32(), lambda _, tasks: range(len(tasks))),
    CONSTANT_FILE: (pa.string(), lambda _, tasks: [t.file_path for t in tasks]),
    CONSTANT_SPEC_ID: (pa.int32(), lambda _, tasks: [t.spec_id for t in tasks]),
    CONSTANT_FIRST_ROW_ID: (pa.int64(), lambda _, tasks: [t.first_row_id for t in tasks]),
    CONSTANT_SEQUENCE: (pa.int64(), lambda _, tasks: [t.data_sequence_number for t in tasks]),
    PARTITION_ORDINAL: (pa.int32(), lambda scopes, tasks: [scopes.of(t) for t in tasks]),
    CONSTANTS_OF_CHANGE[CHANGE_TYPE.field_id]: (
        pa.string(),
        lambda _, tasks: [t.change and t.change.type for t in tasks],
    ),
    CONSTANTS_OF_CHANGE[CHANGE_ORDINAL.field_id]: (
        pa.int32(),
        lambda _, tasks: [t.change and t.change.ordinal for t in tasks],
    ),
    CONSTANTS_OF_CHANGE[COMMIT_SNAPSHOT_ID.field_id]: (
        pa.int64(),
        lambda _, tasks: [t.change and t.change.snapshot_id for t in tasks],
    ),
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
