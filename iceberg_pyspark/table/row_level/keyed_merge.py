"""MERGE of a source into a table by equal keys, in this process.

The source's keys are held in memory; its rows are kept too, or on disk. The table's files whose
keys lie in the range of the source's keys are read one after another: once, or once for each part
of the keys if they are too many for the memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.arrow.key_index import BYTES_PER_KEY, KeyIndex, KeyPart, KeySample
from iceberg_pyspark.arrow.row_sources import KeptRows, RowNumbers, Rows
from iceberg_pyspark.arrow.write.cast_to_table_schema import compile_cast_to_table_schema
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    LiteralPredicate,
    Predicate,
    SetPredicate,
)
from iceberg_pyspark.expressions.rewriting import and_
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    UnknownType,
)
from iceberg_pyspark.table.row_level.change_task import ClauseOp, Op
from iceberg_pyspark.table.row_level.isolation import OperationName
from iceberg_pyspark.table.row_level.row_operation import PlannedChanges, change_batch, columns_of
from iceberg_pyspark.table.row_level.row_target import Files, RowTarget
from iceberg_pyspark.table.row_level.row_values import (
    SOURCE,
    TABLE,
    RowValues,
    SourceColumn,
    row_values,
)
from iceberg_pyspark.table.row_level.touched_rows import TouchedRows

_RANGE_TYPES = (
    IntegerType,
    LongType,
    DecimalType,
    DateType,
    TimestampType,
    TimestamptzType,
    StringType,
)
_MAX_VALUES = 256
"""A key column with more values in the source selects files by its least and greatest value."""

_KEYS_BYTES = 256 * 1024 * 1024
"""The most memory for the keys of the source."""


@dataclass(frozen=True, kw_only=True)
class MergeClause:
    """A clause; `values` None: every column of the source that the table has."""

    op: ClauseOp
    condition: str | None = None
    values: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class KeyedMerge:
    """A `RowOperation` that merges a source; `keys` has its column by column of the table.

    The clauses of a kind are tried in order, and the first that applies is carried out. With
    `keys_are_unique`, two source rows with the same key are refused.
    """

    source: KeptRows
    keys: Mapping[str, str]
    matched: tuple[MergeClause, ...] = ()
    not_matched: tuple[MergeClause, ...] = ()
    not_matched_by_source: tuple[MergeClause, ...] = ()
    keys_are_unique: bool = False
    name: ClassVar[OperationName] = "merge"

    @property
    def writes_rows(self) -> bool:
        """See `RowOperation`."""
        clauses = (*self.matched, *self.not_matched, *self.not_matched_by_source)
        return any(c.op is not Op.DELETE for c in clauses)

    def plan(self, target: RowTarget) -> PlannedChanges:
        """See `RowOperation`."""
        merge = _Merge(self, target)
        return PlannedChanges(predicate=merge.predicate, changes=merge.changes)


def merge_keys(
    keys: str | Sequence[str] | Mapping[str, str] | None, table: str, schema: Schema
) -> dict[str, str]:
    """Return the source's key column by the table's; None: the identifier fields of the schema."""
    if keys is None:
        keys = [f.name for f in schema.fields if f.field_id in schema.identifier_field_ids]
        if len(keys) < len(schema.identifier_field_ids) or not keys:
            raise InvalidRequestError(
                f"table {table} has no identifier fields that are columns, so name the key columns"
            )
    if isinstance(keys, str):
        keys = [keys]
    by_key = dict(keys) if isinstance(keys, Mapping) else {name: name for name in keys}
    if not by_key:
        raise InvalidRequestError(f"table {table}: name at least one key column")
    return by_key


def upsert_of(
    rows: Rows, keys: str | Sequence[str] | None, table: str, schema: Schema
) -> KeyedMerge:
    """Return the merge that updates the rows with the keys of given rows, and inserts the others.

    Raises `InvalidRequestError` for a column that the table does not have.
    """
    source = KeptRows(rows, to_arrow_schema(schema))
    by_key = merge_keys(keys, table, schema)
    check_upsert_columns(source.schema.names, table, schema)
    return KeyedMerge(
        source=source,
        keys=by_key,
        matched=(MergeClause(op=Op.UPDATE),),
        not_matched=(MergeClause(op=Op.INSERT),),
        keys_are_unique=True,
    )


def check_upsert_columns(
    names: Sequence[str], table: str, schema: Schema, *, case_sensitive: bool = True
) -> None:
    """Raise `InvalidRequestError` for a name that the table does not have."""
    folded = str if case_sensitive else str.lower
    columns = {folded(f.name) for f in schema.fields}
    unknown = [name for name in names if folded(name) not in columns]
    if unknown:
        raise InvalidRequestError(
            f"upsert into {table}: the table has no column {', '.join(unknown)}: drop it from the "
            "rows, or add it to the table first"
        )


class _Merge:
    """A merge into one snapshot of its target."""

    def __init__(self, merge: KeyedMerge, target: RowTarget) -> None:
        self._source = merge.source
        self._target = target
        names = {TABLE: target.column_names, SOURCE: tuple(self._source.schema.names)}
        twice = [name for name, count in Counter(names[SOURCE]).items() if count > 1]
        if twice:
            raise InvalidRequestError(
                f"merge into {target.name}: the source has column '{twice[0]}' twice; keep one"
            )
        target_side = {TABLE: names[TABLE]}
        source_side = {SOURCE: names[SOURCE]}
        self._matched = [self._clause(c, names) for c in merge.matched]
        self._not_matched = [self._clause(c, source_side) for c in merge.not_matched]
        self._by_source = [self._clause(c, target_side) for c in merge.not_matched_by_source]
        # a second match does no harm if the only clause deletes the row, as in Spark
        self._one_match = not (len(self._matched) == 1 and _always_deletes(*self._matched[0]))
        self._fields = [self._key_field(name) for name in merge.keys]
        self._keys = merge.keys
        self._keys_are_unique = merge.keys_are_unique
        self._limits = [_Limits(f) for f in self._fields]
        self._parts: list[KeyPart | None] = [None]
        passes = -(-self._source.num_rows * BYTES_PER_KEY // _KEYS_BYTES)
        self._index: KeyIndex | None = None
        if passes > 1:
            self._parts = self._divided(passes)
        else:
            self._index = self._index_of(None, self._limits)
        self.predicate = self._predicate()

    def changes(self, files: Files) -> Iterator[pa.RecordBatch]:
        """See `PlannedChanges`."""
        found = _RowSet(self._source.num_rows)
        for part in self._parts:
            index = self._index if self._index is not None else self._index_of(part, ())
            if self._matched or self._by_source or len(index):
                yield from self._changes_of_rows(files, index, part, found)
        if self._not_matched:
            for start, batch in self._source.batches():
                is_new = found.absent(start, batch.num_rows)
                if is_new.any():
                    rows = batch if is_new.all() else batch.filter(pa.array(is_new))
                    yield from self._apply(self._not_matched, {SOURCE: rows}, None)

    def _divided(self, count: int) -> list[KeyPart | None]:
        """Return parts of the keys of the source, and note the limits of all keys."""
        sample = KeySample(self._source.num_rows)
        for keys in self._source_keys(self._limits):
            sample.add(keys)
        return [*sample.parts(count)]

    def _index_of(self, part: KeyPart | None, limits: Sequence[_Limits]) -> KeyIndex:
        """Return the index of a part of the keys, None: of all; note the limits of all keys."""
        index = KeyIndex(self._source_keys(limits), part)
        if self._keys_are_unique:
            self._check_unique(index)
        return index

    def _changes_of_rows(
        self, files: Files, index: KeyIndex, part: KeyPart | None, found: _RowSet
    ) -> Iterator[pa.RecordBatch]:
        """Yield the changes of the target's rows whose keys are in a part, None: of all."""
        target = self._target
        key_names = [f.name for f in self._fields]
        rows = target.batches(
            files.values(), self.predicate, self._columns_to_read(), lineage=target.row_id
        )
        for path, batch in rows:
            keys = batch.select(key_names)
            numbers, source_numbers = index.matches(keys)
            found.add(source_numbers)
            if self._matched and len(numbers):
                is_twice = np.append(False, numbers[1:] == numbers[:-1])
                if is_twice.any():
                    if self._one_match:
                        TouchedRows(duplicate_match=path).check_single_matches(target.name)
                    numbers, source_numbers = numbers[~is_twice], source_numbers[~is_twice]
                sides = {
                    TABLE: batch.take(pa.array(numbers)),
                    SOURCE: self._source.take(source_numbers),
                }
                yield from self._apply(self._matched, sides, path)
            if self._by_source:
                is_alone = np.ones(batch.num_rows, bool) if part is None else part.holds(keys)
                is_alone[numbers] = False
                if is_alone.any():
                    alone = batch.filter(pa.array(is_alone))
                    yield from self._apply(self._by_source, {TABLE: alone}, path)

    def _apply(
        self,
        clauses: Sequence[tuple[ClauseOp, RowValues]],
        sides: Mapping[str, pa.RecordBatch],
        path: str | None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the changes of rows, given by their sides, by the first clause that applies."""
        for op, values in clauses:
            count = next(iter(sides.values())).num_rows
            applies = values.applies(sides, count)
            chosen = sides if applies is None else _filtered(sides, applies)
            rows = next(iter(chosen.values())).num_rows
            if rows:
                if op is Op.DELETE:
                    columns = {"_pos": chosen[TABLE].column("_pos")}
                else:
                    kept = columns_of(chosen[TABLE]) if op is Op.UPDATE else {}
                    columns = kept | values.columns(chosen, rows)
                yield change_batch(op, columns, path)
            if rows == count:
                return
            sides = _filtered(sides, pc.invert(applies))

    def _clause(
        self, clause: MergeClause, sides: Mapping[str, Sequence[str]]
    ) -> tuple[ClauseOp, RowValues]:
        values = clause.values
        if values is None:
            names = () if clause.op is Op.DELETE else self._source.schema.names
            values = {n: SourceColumn(n) for n in names if self._target.column(n) is not None}
        if not values and clause.op is not Op.DELETE:
            raise InvalidRequestError(
                f"merge into {self._target.name}: a clause to {clause.op.name.lower()} sets no "
                "column of the table; name the columns, or rename those of the source"
            )
        return clause.op, row_values(values, self._target, sides, clause.condition)

    def _columns_to_read(self) -> set[str]:
        """Return the columns of the target that the keys, the clauses and the new rows need."""
        names = {f.name for f in self._fields}
        for op, values in (*self._matched, *self._by_source):
            for f in self._target.schema.fields:
                stays = op is Op.UPDATE and f.name not in values.whole_columns
                if stays or values.may_name(f.name):
                    names.add(f.name)
        return names

    def _key_field(self, name: str) -> NestedField:
        target = self._target
        field = target.column(name)
        if (
            field is None
            or not isinstance(field.type, PrimitiveType)
            or (isinstance(field.type, UnknownType))
        ):
            raise InvalidRequestError(
                f"merge into {target.name}: the key '{name}' is no column of a simple type; the "
                f"table's columns are {', '.join(target.column_names)}"
            )
        # a null in a key is no error: it only matches nothing
        return replace(field, required=False)

    def _source_keys(self, limits: Sequence[_Limits]) -> Iterator[pa.RecordBatch]:
        """Yield the keys of the source in the table's types; add them to the limits of each."""
        source = self._source
        absent = [name for name in self._keys.values() if name not in source.schema.names]
        if absent:
            raise InvalidRequestError(
                f"merge into {self._target.name}: the source has no column {', '.join(absent)}, "
                f"which is a key; its columns are {', '.join(source.schema.names)}"
            )
        names = [f.name for f in self._fields]
        cast = compile_cast_to_table_schema(
            pa.schema(
                source.schema.field(of_source).with_name(name)
                for name, of_source in zip(names, self._keys.values(), strict=True)
            ),
            Schema(fields=tuple(self._fields)),
            table=self._target.name,
        )
        read_types = to_arrow_schema(Schema(fields=tuple(self._fields)))
        for _, batch in source.batches():
            columns = [batch.column(name) for name in self._keys.values()]
            stored = cast(pa.RecordBatch.from_arrays(columns, names=names))
            keys = [c.cast(f.type) for c, f in zip(stored.columns, read_types, strict=True)]
            for of_column, column in zip(limits, keys, strict=False):
                of_column.add(column)
            yield pa.RecordBatch.from_arrays(keys, names=names)

    def _check_unique(self, index: KeyIndex) -> None:
        twice = index.duplicates()
        if twice is None:
            return
        row = self._source.take(np.array(twice[:1], np.int64)).select(list(self._keys.values()))
        raise InvalidRequestError(
            f"upsert into {self._target.name}: the source has several rows with the key "
            f"{row.to_pylist()[0]}, so the result is ambiguous; keep one of them"
        )

    def _predicate(self) -> Predicate:
        """Return a bound predicate of the rows that may match, or that clauses may change."""
        if self._by_source:
            return AlwaysTrue()
        if self._index is not None and not len(self._index):
            return AlwaysFalse()
        return and_(*(bind(limits.predicate(), self._target.schema) for limits in self._limits))


class _RowSet:
    """A set of rows by number; it has a bit for each row that could be in it."""

    def __init__(self, rows: int) -> None:
        self._bits = np.zeros(rows // 8 + 1, np.uint8)

    def add(self, numbers: RowNumbers) -> None:
        bits = np.left_shift(np.uint8(1), (numbers & 7).astype(np.uint8))
        np.bitwise_or.at(self._bits, numbers >> 3, bits)

    def absent(self, start: int, count: int) -> npt.NDArray[np.bool_]:
        """Return which of the rows from a number on are not in the set."""
        octets = self._bits[start >> 3 : ((start + count) >> 3) + 1]
        bits = np.unpackbits(octets, bitorder="little")
        return np.equal(bits[start & 7 : (start & 7) + count], 0)


class _Limits:
    """The values of a key column in the source: all if they are few, or else their range."""

    def __init__(self, field: NestedField) -> None:
        self._field = field
        self._values: pa.Array | None = None
        self._ends: list[Any] = []
        self._is_limited = isinstance(field.type, _RANGE_TYPES)

    def add(self, column: pa.Array) -> None:
        if not self._is_limited or column.null_count == len(column):
            return
        ends = pc.min_max(column)
        self._ends += [ends["min"], ends["max"]]
        if self._values is None and len(self._ends) == 2:
            self._values = column.slice(0, 0)
        if self._values is not None:
            values = pc.unique(pa.concat_arrays([self._values, pc.unique(column).drop_null()]))
            self._values = values if len(values) <= _MAX_VALUES else None

    def predicate(self) -> Predicate:
        if not self._is_limited:
            return AlwaysTrue()
        name = self._field.name
        try:
            if self._values is not None:
                return SetPredicate("in", name, tuple(self._values.to_pylist()))
            ends = pc.min_max(pa.array(self._ends, self._ends[0].type))
            least, greatest = ends["min"].as_py(), ends["max"].as_py()
        except (ValueError, OverflowError):
            # Python has no dates and times that far off
            return AlwaysTrue()
        return and_(
            LiteralPredicate("gt_eq", name, least), LiteralPredicate("lt_eq", name, greatest)
        )


def _always_deletes(op: ClauseOp, values: RowValues) -> bool:
    return op is Op.DELETE and values.condition is None


def _filtered(sides: Mapping[str, pa.RecordBatch], mask: pa.Array) -> dict[str, pa.RecordBatch]:
    return {side: batch.filter(mask) for side, batch in sides.items()}
