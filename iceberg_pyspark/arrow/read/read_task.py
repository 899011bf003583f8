"""Reads the rows of a scan task as record batches of exactly the projected schema.

For each batch, deleted rows are marked first, by position and by value; then the row filter is
evaluated; then the remaining rows are converted. All steps work on whole columns. Memory use is a
few batches and the deletes.

Adds metadata columns to a batch, from the file, the row position or the manifest entry.

Specification, "Reserved Field IDs" and "Row Lineage". A file may store `_row_id` and
`_last_updated_sequence_number`; their nulls are replaced by inherited values. A file without
`first_row_id` belongs to a snapshot from before row lineage: both columns are null then, whatever
the file stores (docs/conformance.md 15).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrow_schemas import constant_array, scalar_of, to_arrow_schema
from iceberg_pyspark.arrow.file_fields import FileFields, mapping_for, resolve_file_fields
from iceberg_pyspark.arrow.formats.data_file_formats import LateColumns, RowGroupChoice
from iceberg_pyspark.arrow.formats.open_data_file import open_data_file
from iceberg_pyspark.arrow.formats.parquet_reader import empty_batch
from iceberg_pyspark.arrow.read.columns_by_id import ColumnsById
from iceberg_pyspark.arrow.read.equality_deletes import read_equality_deletes
from iceberg_pyspark.arrow.read.file_projection import FileProjection
from iceberg_pyspark.arrow.read.position_deletes import DeletedRows, read_deleted_rows
from iceberg_pyspark.arrow.read.row_filter import Mask, compile_row_filter
from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError, StorageError
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.expressions.rewriting import and_, columns_of
from iceberg_pyspark.planning.scan_tasks import ScanContext, ScanTask, ScanTaskGroup
from iceberg_pyspark.spec.metadata_columns import (
    CHANGE_COLUMNS,
    COMMIT_COLUMNS,
    DELETED,
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    PARTITION_ID,
    POS,
    ROW_ID,
    SPEC_ID,
)
from iceberg_pyspark.spec.partitioning import identity_source_ids
from iceberg_pyspark.spec.schema import MAX_USER_FIELD_ID
from iceberg_pyspark.spec.transforms import untyped_text
from iceberg_pyspark.spec.types import NestedField, StringType, StructType, Type, UnknownType
from iceberg_pyspark.storage.encryption.encrypted_io import decrypted
from iceberg_pyspark.storage.files.file_io import FileIO

STORED_METADATA_COLUMNS = {f.field_id: f for f in (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)}
"""Metadata columns that a data file may store itself."""


def is_metadata_column(field: NestedField) -> bool:
    """Return whether a projected field is a metadata column."""
    return field.field_id > MAX_USER_FIELD_ID


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowFacts:
    """The rows of a batch: file positions, stored lineage by field id, and deletion mask."""

    positions: pa.Array
    lineage: Mapping[int, pa.Array]
    is_deleted: npt.NDArray[np.bool_] | None


class MetadataColumns:
    """The metadata columns of one task's batches."""

    def __init__(self, context: ScanContext, task: ScanTask) -> None:
        self._task = task
        self._constants: dict[int, pa.Scalar] = {
            FILE.field_id: scalar_of(FILE.type, task.file_path),
            SPEC_ID.field_id: scalar_of(SPEC_ID.type, task.spec_id),
        }
        if task.change is not None:
            values = task.change.values()
            self._constants |= {
                f.field_id: scalar_of(f.type, values[f.field_id])
                for f in (*CHANGE_COLUMNS, *COMMIT_COLUMNS)
            }
        for field in context.projection.fields:
            if field.field_id == PARTITION_ID:
                self._constants[PARTITION_ID] = _partition_scalar(field, context, task)

    def array(self, field: NestedField, facts: RowFacts) -> pa.Array:
        """Return one metadata column of the rows."""
        length = len(facts.positions)
        if field.field_id in self._constants:
            return constant_array(self._constants[field.field_id], length)
        match field.field_id:
            case POS.field_id:
                return facts.positions
            case DELETED.field_id:
                is_deleted = facts.is_deleted
                return pa.array(
                    np.zeros(length, dtype=np.bool_) if is_deleted is None else is_deleted
                )
            case ROW_ID.field_id | LAST_UPDATED_SEQUENCE_NUMBER.field_id:
                return self._lineage(field.field_id, facts)
            case _:
                raise InvalidRequestError(
                    f"column '{field.name}' has the reserved field id {field.field_id}, which is "
                    "no metadata column that can be read"
                )

    def _lineage(self, field_id: int, facts: RowFacts) -> pa.Array:
        task = self._task
        if task.first_row_id is None:
            return pa.nulls(len(facts.positions), pa.int64())
        inherited_values: pa.Array | pa.Scalar
        if field_id == ROW_ID.field_id:
            inherited_values = pc.add(facts.positions, task.first_row_id)
        else:
            inherited_values = pa.scalar(task.data_sequence_number, pa.int64())
        file_values = facts.lineage.get(field_id)
        if file_values is not None:
            return pc.coalesce(file_values, inherited_values)
        if isinstance(inherited_values, pa.Scalar):
            return constant_array(inherited_values, len(facts.positions))
        return inherited_values


def _partition_scalar(field: NestedField, context: ScanContext, task: ScanTask) -> pa.Scalar:
    """Return the task's partition tuple as a struct over all specs; missing fields are null."""
    values: dict[int, Any] = {
        f.field_id: value
        for f, value in zip(context.specs[task.spec_id].fields, task.partition, strict=True)
    }
    assert isinstance(field.type, StructType)
    return scalar_of(
        field.type,
        {f.field_id: _display_value(f.type, values.get(f.field_id)) for f in field.type.fields},
    )


def _display_value(type_: Type, value: Any) -> Any:
    """Return a partition value as the metadata column shows it, where its type may be unknown."""
    match type_:
        case UnknownType():
            return None
        case StringType():
            return None if value is None else untyped_text(value)
        case _:
            return value


def read_group(context: ScanContext, group: ScanTaskGroup, io: FileIO) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a group's tasks, in order."""
    for task in group.tasks:
        yield from read_task(context, task, io)


def read_task(
    context: ScanContext,
    task: ScanTask,
    io: FileIO,
    *,
    threads: bool = False,
    is_stream: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Yield the task's live rows that match the scan's predicate, in file order.

    Batches have exactly `to_arrow_schema(context.projection)` and at most about 64k rows. If
    `_deleted` is projected, deleted rows are also returned, with `_deleted` set, as in Java. With
    `threads`, the columns of local files are decoded in threads. Where the batches are not handed
    on one by one (`is_stream`), they are larger, and reading takes more memory and less time.
    """
    with _errors_of_file(context, task):
        deleted_rows = read_deleted_rows(
            io, task, context.table, verify_checksums=context.verify_checksums
        )
        with open_data_file(
            decrypted(io, task.key_metadata),
            task.file_path,
            task.file_format,
            verify_checksums=context.verify_checksums,
            threads=threads,
        ) as file:
            fields = resolve_file_fields(
                file.schema,
                mapping_for(task.file_format, context.name_mapping, context.schemas[0]),
                task.file_path,
                whole_columns=file.reads_whole_columns,
            )
            reader = _TaskReader(context, task, io, fields, deleted_rows)
            end = 0
            choice = RowGroupChoice(
                start=task.start,
                length=_length(task),
                predicate=reader.predicate,
                leaf_by_id=reader.exact_leaves,
                with_dictionaries=reader.removes_rows,
                late=reader.late,
                is_stream=is_stream,
            )
            for position, batch in file.batches(reader.leaves, choice):
                end = position + batch.num_rows
                output = reader.convert(position, batch)
                if output is not None:
                    yield output
            if task.file_format == "avro" and 0 <= task.record_count != end:
                # an Avro file that was truncated between two blocks looks valid
                raise StorageError(
                    f"table {context.table}: {task.file_path} is damaged: it has {end} rows, "
                    f"its manifest entry says {task.record_count}"
                )


_FARTHEST = 2**63
_NEARLY_ALL = 0.9
"""The part of the rows from which it is faster to filter column by column."""


def _length(task: ScanTask) -> int:
    """Return the number of bytes to read; the last task of a file reads to the end of the file."""
    is_last = task.start + task.length >= task.file_size_in_bytes
    return _FARTHEST - task.start if is_last else task.length


@contextmanager
def _errors_of_file(context: ScanContext, task: ScanTask) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as e:
        raise StorageError(
            f"table {context.table}: cannot read {task.file_path}; it, or a delete file that "
            f"applies to it, is damaged or holds a value its column cannot have: {e}"
        ) from e


ColumnsOf: TypeAlias = Callable[[pa.RecordBatch], dict[int, pa.Array]]


@dataclass(frozen=True, slots=True)
class _Conditions:
    """Functions from a batch of some leaf columns to those of equality deletes and the filter."""

    equality: ColumnsOf
    filter_columns: ColumnsOf

    @staticmethod
    def of(
        equality: ColumnsById, filter_columns: ColumnsById, leaves: Collection[int]
    ) -> _Conditions:
        """Return the functions for batches that have these leaves."""
        return _Conditions(equality.compile(leaves), filter_columns.compile(leaves))


@dataclass(frozen=True, slots=True, eq=False)
class _Verdict:
    """The rows from a position on: which are deleted (None: none), which to return (None: all)."""

    position: int
    deleted_rows: Mask | None
    keep: Mask | None

    def part(self, position: int, rows: int) -> _Verdict:
        """Return the verdict on some of the rows."""
        these = slice(position - self.position, position - self.position + rows)
        return _Verdict(
            position,
            None if self.deleted_rows is None else self.deleted_rows[these],
            None if self.keep is None else self.keep[these],
        )


class _TaskReader:
    """The reader of one task: deletes, filter and projection, compiled before the first batch."""

    def __init__(
        self,
        context: ScanContext,
        task: ScanTask,
        io: FileIO,
        file_fields: FileFields,
        deleted_rows: DeletedRows | None,
    ) -> None:
        self._fields = context.projection.fields
        self._schema = to_arrow_schema(context.projection)
        self._location = f"table {context.table}: {task.file_path}"
        self._deleted_rows = deleted_rows
        self._returns_deleted_rows = any(f.field_id == DELETED.field_id for f in self._fields)
        self._equality_deletes = read_equality_deletes(io, context, task)
        self._metadata_columns = MetadataColumns(context, task)
        self._has_metadata_columns = any(is_metadata_column(f) for f in self._fields)
        self.predicate: Predicate = AlwaysTrue() if task.filter_satisfied else context.predicate
        if task.residual is not None:
            self.predicate = and_(self.predicate, task.residual)
        self._row_filter = compile_row_filter(self.predicate)

        partition_values = _identity_values(context, task)
        data = FileProjection(
            [f for f in self._fields if not is_metadata_column(f)],
            file_fields,
            partition_values=partition_values,
            location=task.file_path,
        )
        lineage = FileProjection(
            _stored_lineage(context, task, file_fields),
            file_fields,
            partition_values={},
            location=task.file_path,
        )
        equality, filter_columns = (
            ColumnsById(
                field_ids,
                context.schemas,
                file_fields,
                partition_values=partition_values,
                location=task.file_path,
            )
            for field_ids in (self._equality_deletes.field_ids, columns_of(self.predicate))
        )
        self.leaves = data.leaves | lineage.leaves | equality.leaves | filter_columns.leaves
        self.exact_leaves = filter_columns.exact_leaves
        self._conditions = _Conditions.of(equality, filter_columns, self.leaves)
        self._verdict: _Verdict | None = None
        self.late = self._late_columns(equality, filter_columns, file_fields)
        self._to_data = data.compile(self.leaves)
        self._to_lineage = lineage.compile(self.leaves)
        self._lineage_ids = lineage.field_ids
        self._returned_positions = sorted(
            data.read_positions(self.leaves) | lineage.read_positions(self.leaves)
        )

    @property
    def removes_rows(self) -> bool:
        """Whether the task may return fewer rows than its file has."""
        has_deletes = self._deleted_rows is not None or self._equality_deletes.field_ids
        return bool(has_deletes) or not isinstance(self.predicate, AlwaysTrue)

    def _late_columns(
        self, equality: ColumnsById, filter_columns: ColumnsById, file_fields: FileFields
    ) -> LateColumns | None:
        """Return the columns that need not be read where no row remains, or None without any."""
        asked = equality.leaves | filter_columns.leaves
        columns = [
            [leaf for leaf in column.leaves if leaf in self.leaves]
            for column in file_fields.read_columns(self.leaves)
        ]
        first = {i for i, leaves in enumerate(columns) if not asked.isdisjoint(leaves)}
        if not 0 < len(first) < len(columns):
            return None
        leaves = {leaf for i in first for leaf in columns[i]}
        conditions = _Conditions.of(equality, filter_columns, leaves)

        def wanted(position: int, batch: pa.RecordBatch) -> tuple[int, int] | None:
            self._verdict = verdict = self._judge(position, batch, conditions)
            if verdict.keep is None:
                return 0, batch.num_rows
            rows = np.flatnonzero(verdict.keep)
            return (int(rows[0]), int(rows[-1]) + 1) if len(rows) else None

        return LateColumns(columns=columns, first=first, wanted=wanted)

    def convert(self, position: int, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Return the live matching rows of a batch that starts at that file position, or None."""
        if self._verdict is None:
            verdict = self._judge(position, batch, self._conditions)
        else:
            verdict = self._verdict.part(position, batch.num_rows)
        keep, deleted_rows = verdict.keep, verdict.deleted_rows
        if keep is None:
            return self._assemble(batch.columns, position, batch.num_rows, None, deleted_rows)
        if not keep.any():
            return None
        mask, rows = pa.array(keep), batch.select(self._returned_positions)
        if mask.true_count > _NEARLY_ALL * len(keep):
            # Arrow takes rows of a batch one after another, of an array by runs
            returned = [column.filter(mask) for column in rows.columns]
        else:
            returned = rows.filter(mask).columns
        columns: list[pa.Array] = [pa.nulls(0)] * batch.num_columns
        for i, column in zip(self._returned_positions, returned, strict=True):
            columns[i] = column
        return self._assemble(
            columns,
            position,
            mask.true_count,
            keep,
            None if deleted_rows is None else deleted_rows[keep],
        )

    def _judge(self, position: int, batch: pa.RecordBatch, conditions: _Conditions) -> _Verdict:
        deleted_rows = None
        if self._deleted_rows is not None:
            deleted_rows = self._deleted_rows.mask(position, batch.num_rows)
        if self._equality_deletes.field_ids:
            by_value = self._equality_deletes.mask(conditions.equality(batch))
            if by_value is not None:
                deleted_rows = by_value if deleted_rows is None else deleted_rows | by_value
        keep = None if deleted_rows is None or self._returns_deleted_rows else ~deleted_rows
        if not isinstance(self.predicate, AlwaysTrue) and (keep is None or keep.any()):
            columns = conditions.filter_columns(batch)
            selection = self._row_filter(batch.num_rows, columns.__getitem__)
            keep = selection if keep is None else keep & selection
        return _Verdict(position, deleted_rows, None if keep is None or keep.all() else keep)

    def _assemble(
        self,
        columns: Sequence[pa.Array],
        position: int,
        rows: int,
        keep: Mask | None,
        deleted_rows: Mask | None,
    ) -> pa.RecordBatch:
        arrays = self._to_data(columns, rows)
        if self._has_metadata_columns:
            positions = position + (np.arange(rows) if keep is None else np.flatnonzero(keep))
            arrays = self._with_metadata_columns(arrays, columns, positions, deleted_rows)
        if not arrays:
            return empty_batch(rows)
        for field, array in zip(self._fields, arrays, strict=True):
            if field.required and array.null_count and not isinstance(field.type, UnknownType):
                raise InvalidMetadataError(
                    f"{self._location} has nulls in the required column '{field.name}'"
                )
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _with_metadata_columns(
        self,
        data: list[pa.Array],
        columns: Sequence[pa.Array],
        positions: npt.NDArray[np.int64],
        is_deleted: Mask | None,
    ) -> list[pa.Array]:
        lineage = self._to_lineage(columns, len(positions))
        facts = RowFacts(
            positions=pa.array(positions),
            lineage=dict(zip(self._lineage_ids, lineage, strict=True)),
            is_deleted=is_deleted,
        )
        remaining = iter(data)
        return [
            self._metadata_columns.array(f, facts) if is_metadata_column(f) else next(remaining)
            for f in self._fields
        ]


def _identity_values(context: ScanContext, task: ScanTask) -> dict[int, Any]:
    spec = context.specs.get(task.spec_id)
    if spec is None:
        raise InvalidMetadataError(
            f"table {context.table}: {task.file_path} has partition spec {task.spec_id}, which the "
            "table does not have; the table is damaged"
        )
    return {i: task.partition[position] for i, position in identity_source_ids(spec).items()}


def _stored_lineage(
    context: ScanContext, task: ScanTask, file_fields: FileFields
) -> list[NestedField]:
    if task.first_row_id is None:
        return []
    return [
        STORED_METADATA_COLUMNS[f.field_id]
        for f in context.projection.fields
        if f.field_id in STORED_METADATA_COLUMNS
        and file_fields.column_with_id(f.field_id) is not None
    ]
