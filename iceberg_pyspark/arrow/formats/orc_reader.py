"""Reads ORC data files as record batches with row positions, one stripe at a time.

Specification, Appendix A "ORC": field ids are the attribute `iceberg.id`. Arrow reads whole
top-level columns and whole stripes, and does not report the offsets of stripes, so files are not
split and nothing is skipped. Arrow holds timestamps as nanoseconds: times outside of the years 1677
to 2262 are refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa
from pyarrow import orc

from iceberg_pyspark.arrow.arrow_schemas import FIELD_ID_KEY, child_fields
from iceberg_pyspark.arrow.formats.data_file_formats import (
    ALL_ROW_GROUPS,
    DataFileReader,
    RowGroupChoice,
)
from iceberg_pyspark.arrow.formats.parquet_reader import BATCH_ROWS, arrow_input, empty_batch
from iceberg_pyspark.errors import StorageError, UnsupportedFeatureError

_ID_ATTRIBUTE = b"iceberg.id"
_LONG_ATTRIBUTE = b"iceberg.long-type"
_CHECKS_TIMESTAMPS = 26
"""The first Arrow release that refuses a timestamp out of range instead of reading another time."""


class OrcFileReader(DataFileReader):
    """An open ORC file."""

    reads_whole_columns = True

    def _open(self) -> None:
        self._input = arrow_input(self._stream)
        self._file = orc.ORCFile(self._input)
        self.schema = pa.schema([_with_field_ids(f) for f in self._file.schema])

    def close(self) -> None:
        """Close the file."""
        self._input.close()
        super().close()

    def batches(
        self, leaves: Collection[int], choice: RowGroupChoice = ALL_ROW_GROUPS
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches as `DataFileReader.batches` describes."""
        columns = self._columns_of(leaves)
        for i in columns:
            self._check_timestamps(self.schema.field(i))
        position = 0
        if not columns:
            for position in range(0, self._file.nrows, BATCH_ROWS):
                yield position, empty_batch(min(BATCH_ROWS, self._file.nrows - position))
            return
        names = [self.schema.field(i).name for i in columns]
        # Arrow selects by dotted path, so a name that contains a dot may select another column
        selection = None if any("." in name for name in self.schema.names) else names
        for stripe in range(self._file.nstripes):
            whole = self._file.read_stripe(stripe, columns=selection)
            arrays = whole.columns
            if not selection and len(arrays) == len(self.schema):
                arrays = [arrays[i] for i in columns]
            if len(arrays) != len(columns):
                raise StorageError(
                    f"{self._location} is damaged: the columns of stripe {stripe} differ from "
                    "those in its footer"
                )
            batch = pa.RecordBatch.from_arrays(arrays, names=names)
            for offset in range(0, batch.num_rows, BATCH_ROWS):
                yield position + offset, batch.slice(offset, BATCH_ROWS)
            position += batch.num_rows

    def _check_timestamps(self, field: pa.Field) -> None:
        if (
            "timestamp" in str(field.type)
            and int(pa.__version__.split(".")[0]) < _CHECKS_TIMESTAMPS
        ):
            raise UnsupportedFeatureError(
                f"{self._location}: column '{field.name}' has ORC timestamps, which pyarrow "
                f"{pa.__version__} may read as other times; use pyarrow {_CHECKS_TIMESTAMPS} or "
                "newer"
            )


def _with_field_ids(field: pa.Field) -> pa.Field:
    """Return the field with the Parquet field id and the type that its ORC attributes give."""
    type_ = field.type
    children = [_with_field_ids(f) for f in child_fields(type_)]
    if pa.types.is_map(type_):
        type_ = pa.map_(*children)
    elif pa.types.is_struct(type_):
        type_ = pa.struct(children)
    elif children:
        type_ = pa.list_(*children)
    attributes = field.metadata or {}
    if attributes.get(_LONG_ATTRIBUTE) == b"TIME":
        # the numbers stay unchanged until they are cast to the column's type
        type_ = pa.time64("us")
    field_id = attributes.get(_ID_ATTRIBUTE)
    metadata = None if field_id is None else {FIELD_ID_KEY: field_id}
    return pa.field(field.name, type_, field.nullable, metadata)
