"""Creates the manifest entries of files that this package has not written.

An existing file that is added to a table has its own columns in its own order, matched by field id,
or by name if the file has no ids (specification, "Column Projection"). A file that cannot be read
with the table's schema is refused; its columns are read only where neither types nor footer prove
that all values fit. Metrics come from Parquet footers, for columns that are stored in exactly the
table's type. Floating-point columns get no bounds and no NaN counts, because not every writer
records NaNs.

A Parquet file that another writer has written from rows of the table has the table's columns. Its
metrics come from the footer, which does not count NaNs: if the statistics rule NaNs out, the count
is 0, else count and bounds are unknown. The partition tuple is computed from the first row, not
from the name of the folder.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from io import SEEK_END

import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark.arrow.arrow_schemas import arrow_type, stored_arrow_schema
from iceberg_pyspark.arrow.column_metrics import (
    COUNTS,
    FileMetrics,
    Leaf,
    MetricsCollector,
    metric_leaves,
)
from iceberg_pyspark.arrow.file_fields import FileField, resolve_file_fields
from iceberg_pyspark.arrow.formats.data_file_formats import DataFileReader
from iceberg_pyspark.arrow.formats.open_data_file import open_data_file
from iceberg_pyspark.arrow.formats.parquet_encryption import decryption_properties
from iceberg_pyspark.arrow.formats.parquet_reader import ParquetFileReader
from iceberg_pyspark.arrow.read.file_projection import (
    ConstantField,
    FileColumn,
    FileProjection,
    Match,
)
from iceberg_pyspark.arrow.write.cast_to_table_schema import required_nulls
from iceberg_pyspark.arrow.write.partition_batches import PartitionTuple, partition_batch
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError, StorageError
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.encryption import FileKey
from iceberg_pyspark.spec.manifests import DataFile, DataFileFormat
from iceberg_pyspark.spec.name_mapping import NameMapping
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileInfo, FileIO
from iceberg_pyspark.storage.files.local import is_local, local_path, sync_file


def imported_file(
    io: FileIO,
    file: FileInfo,
    file_format: DataFileFormat,
    metadata: TableMetadata,
    name_mapping: NameMapping,
    spec: PartitionSpec,
    partition: tuple[object, ...],
) -> DataFile:
    """Return the manifest entry of a file in a partition.

    Raises `InvalidRequestError` if the file does not fit the table, and `StorageError` if the file
    cannot be read.
    """
    schema = metadata.current_schema
    values = {f.source_id: v for f, v in zip(spec.fields, partition, strict=True)}
    with _reading(file, file_format), open_data_file(io, file.location, file_format) as reader:
        fields = resolve_file_fields(
            reader.schema, name_mapping, file.location, whole_columns=reader.reads_whole_columns
        )
        _check_spelling(fields.columns, schema.fields, values, file.location)
        if file_format == "orc":
            _check_zones(fields.columns, schema, file.location)
        try:
            projection = FileProjection(
                schema.fields, fields, partition_values=values, location=file.location
            )
        except InvalidMetadataError as e:
            raise InvalidRequestError(f"{e}; it was not added to the table") from e
        if all(isinstance(match, ConstantField) for match in projection.matches):
            names = ", ".join(c.name for c in fields.columns)
            raise InvalidRequestError(
                f"{file.location}: none of its columns ({names}) is one of the table's; check the "
                "source, or set schema.name-mapping.default"
            )
        doubtful = [
            f
            for f, match in zip(schema.fields, projection.matches, strict=True)
            if _may_have_unfit_values(f, match, reader)
        ]
        rows = None
        if doubtful:
            columns = FileProjection(
                doubtful, fields, partition_values=values, location=file.location
            )
            rows = _check_values(doubtful, columns, reader, file.location)
        if isinstance(reader, ParquetFileReader):
            leaves = _leaves(projection.exact_leaves, metadata)
            metrics = MetricsCollector(leaves, sees_rows=False).finish(reader.metadata)
            metrics["nan_value_counts"] = {}
        else:
            if rows is None:
                rows = sum(batch.num_rows for _, batch in reader.batches(()))
            metrics = _row_count(rows)
    return DataFile(
        file_path=file.location,
        file_format=file_format,
        spec_id=spec.spec_id,
        partition=partition,
        file_size_in_bytes=file.size,
        **metrics,
    )


@contextmanager
def _reading(file: FileInfo, file_format: DataFileFormat) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as e:
        raise StorageError(
            f"{file.location}: cannot be read as {file_format}, so it was not added to the table "
            f"({e})"
        ) from e


def _may_have_unfit_values(field: types.NestedField, match: Match, reader: DataFileReader) -> bool:
    """Return whether only the values tell that the table can have them."""
    if isinstance(match, ConstantField):
        return False
    physical_types = (
        [c.physical_type for c in map(reader.metadata.schema.column, match.source.leaves)]
        if isinstance(reader, ParquetFileReader)
        else []
    )
    # INT96 has no unit of its own and is read as microseconds
    if "INT96" not in physical_types and _may_not_convert(match):
        return True
    return _may_lack_values(field, match, reader)


def _may_lack_values(field: types.NestedField, match: Match, reader: DataFileReader) -> bool:
    """Return whether the field, or a field below it, may be null although it is required."""
    if isinstance(match, ConstantField):
        return False
    if field.required and match.source.may_be_null and not _has_no_nulls(match, reader):
        return True
    below = zip(types.children_of(field.type), match.children, strict=True)
    return any(_may_lack_values(f, m, reader) for f, m in below)


def _may_not_convert(match: FileColumn) -> bool:
    """Return whether some value of the file's type cannot become one of the table's type."""
    if match.children:
        return any(_may_not_convert(c) for c in match.children if isinstance(c, FileColumn))
    source, target = match.source.type, arrow_type(match.type)
    if pa.types.is_unsigned_integer(source):
        return not (pa.types.is_integer(target) and source.bit_width < target.bit_width)
    is_wider = pa.types.is_signed_integer(source) or pa.types.is_floating(source)
    return source != target and not is_wider


def _has_no_nulls(match: FileColumn, reader: DataFileReader) -> bool:
    """Return whether the footer proves that a field has no null.

    A leaf counts the nulls of everything above it too.
    """
    if not isinstance(reader, ParquetFileReader):
        return False
    groups = [reader.metadata.row_group(g) for g in range(reader.metadata.num_row_groups)]
    return any(
        all(
            s is not None and s.has_null_count and s.null_count == 0
            for s in (group.column(leaf).statistics for group in groups)
        )
        for leaf in match.source.leaves
    )


def _check_values(
    fields: Sequence[types.NestedField],
    columns: FileProjection,
    reader: DataFileReader,
    location: str,
) -> int:
    """Read the columns as a scan does, and return the number of rows.

    Raise `InvalidRequestError` where the scan would fail.
    """
    convert = columns.compile(columns.leaves)
    rows = 0
    try:
        for _, batch in reader.batches(columns.leaves):
            rows += batch.num_rows
            for f, array in zip(fields, convert(batch.columns, batch.num_rows), strict=True):
                for path, _ in required_nulls(array, f, f.name):
                    raise InvalidMetadataError(f"{location}: nulls in the required column '{path}'")
    except (pa.ArrowInvalid, InvalidMetadataError) as e:
        names = ", ".join(f"'{f.name}'" for f in fields)
        raise InvalidRequestError(
            f"{location}: a value of its columns {names} cannot be one of the table's ({e}); it "
            "was not added to the table: copy the rows with INSERT and a cast, or change the "
            "table's columns"
        ) from e
    return rows


def _check_spelling(
    columns: Iterable[FileField],
    fields: Iterable[types.NestedField],
    values: Collection[int],
    location: str,
) -> None:
    """Raise `InvalidRequestError` if a column differs from a table column only in capital letters.

    Spark reads such files by either spelling, but an Iceberg table distinguishes the spellings and
    would read nulls. `values` has the ids of the columns whose values come from folder names.
    """
    columns = tuple(columns)
    column_by_id = {c.field_id: c for c in columns if c.field_id is not None}
    others = {c.name.lower(): c.name for c in columns if c.field_id is None}
    for field in fields:
        column = column_by_id.get(field.field_id)
        if column is not None:
            if isinstance(field.type, types.StructType):
                _check_spelling(column.children, field.type.fields, (), location)
        elif field.name.lower() in others and field.field_id not in values:
            raise InvalidRequestError(
                f"{location}: its column '{others[field.name.lower()]}' is named '{field.name}' in "
                "the table; it was not added to the table: rename the table's column, or set "
                "schema.name-mapping.default to a mapping of both names"
            )


def _check_zones(columns: Iterable[FileField], schema: Schema, location: str) -> None:
    """Refuse ORC timestamps without a zone for `timestamptz`: the file does not tell their zone.

    Specification, Appendix A "ORC": `timestamptz` is `timestamp_instant`; Java reads nothing else.
    """
    for column in columns:
        field = None if column.field_id is None else schema.field_by_id.get(column.field_id)
        if (
            field is not None
            and isinstance(field.type, types.TimestamptzType | types.TimestamptzNsType)
            and pa.types.is_timestamp(column.type)
            and column.type.tz is None
        ):
            raise InvalidRequestError(
                f"{location}: column '{column.name}' has times without a zone, which cannot become "
                f"the table's {field.type}; it was not added to the table: make the column "
                "TIMESTAMP_NTZ, or copy the rows with INSERT"
            )
        _check_zones(column.children, schema, location)


def _leaves(leaf_by_id: dict[int, int], metadata: TableMetadata) -> list[Leaf]:
    """Return the columns with metrics, with their positions in the file."""
    leaves = []
    for leaf in metric_leaves(metadata.current_schema, metadata.properties):
        if leaf.field_id in leaf_by_id:
            is_float = isinstance(leaf.type, types.FloatType | types.DoubleType)
            mode = COUNTS if is_float and leaf.mode.bounds else leaf.mode
            leaves.append(replace(leaf, index=leaf_by_id[leaf.field_id], mode=mode))
    return leaves


def _row_count(rows: int) -> FileMetrics:
    return FileMetrics(
        record_count=rows,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
        split_offsets=(),
    )


_BUFFER_BYTES = 65_536


def written_file(
    context: WriteContext,
    io: FileIO,
    location: str,
    *,
    key_of: Callable[[str], FileKey] | None = None,
) -> DataFile:
    """Return the manifest entry of a file; a local file is synced to disk.

    A file without rows gets no partition tuple. `key_of` returns the key of an encrypted file.
    """
    key = None if key_of is None else key_of(location)
    decryption = {} if key is None else decryption_properties(key)
    with ExitStack() as resources:
        if is_local(location):
            size = sync_file(location)
            file = resources.enter_context(
                pq.ParquetFile(
                    local_path(location),
                    buffer_size=_BUFFER_BYTES,
                    pre_buffer=False,
                    **decryption,
                )
            )
        else:
            stream = resources.enter_context(io.open_input(location))
            size = stream.seek(0, SEEK_END)
            file = resources.enter_context(pq.ParquetFile(stream, pre_buffer=False, **decryption))
        metrics = written_metrics(context, file.metadata)
        partition: PartitionTuple = ()
        if metrics["record_count"] and context.spec.fields:
            partition = written_partition(context, file)
    return DataFile(
        file_path=location,
        file_format=context.file_format,
        spec_id=context.spec.spec_id,
        partition=partition,
        file_size_in_bytes=size,
        sort_order_id=context.sort_order_id,
        key_metadata=None if key is None else replace(key, file_length=size).encoded(),
        **metrics,
    )


def written_metrics(context: WriteContext, footer: pq.FileMetaData) -> FileMetrics:
    """Return the metrics of a file with the columns of the table's current schema, in its order."""
    leaves = metric_leaves(context.schema, context.properties)
    return MetricsCollector(leaves, sees_rows=False).finish(footer)


def written_partition(context: WriteContext, file: pq.ParquetFile) -> PartitionTuple:
    """Return the partition tuple of a file with rows, all of one partition."""
    names = _source_columns(context)
    if names:
        batch = next(file.iter_batches(batch_size=1, columns=names))
    else:
        # the spec has only void fields
        batch = pa.RecordBatch.from_pydict({"": [None]})
    file_columns = stored_arrow_schema(context.schema)
    rows = pa.RecordBatch.from_arrays(
        [batch.column(name).cast(file_columns.field(name).type) for name in names]
        or [batch.column(0)],
        names or [""],
    )
    [(values, _)] = partition_batch(rows, context.spec, (context.schema, *context.schemas))
    return values


def _source_columns(context: WriteContext) -> list[str]:
    """Return the names of the top-level columns with partition sources."""
    schema = context.schema
    top = {_top(f.source_id, schema) for f in context.spec.fields}
    return [f.name for f in schema.fields if f.field_id in top]


def _top(field_id: int, schema: Schema) -> int:
    while (parent := schema.parent_by_id.get(field_id)) is not None:
        field_id = parent
    return field_id
