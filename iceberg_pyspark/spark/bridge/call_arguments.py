"""Encodes the arguments of a call to the JVM, and the values of changed rows, as one JSON document.

JVM objects in a document are represented by their py4j ids, so one call can pass many of them.
Tables of files are passed separately, as Arrow IPC streams. The expressions of changed rows are
created in one call: one call per expression would take longer than the job of a small change.
`IcebergPyRowValues` has the same kinds of values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import Column

from iceberg_pyspark.spark.bridge.py4j_names import JavaObject
from iceberg_pyspark.spec.manifests import FileFormat

Side: TypeAlias = Literal["source", "target"] | None
"""The side of a join whose columns the names refer to; None for all columns."""


@dataclass(frozen=True, slots=True)
class Sql:
    """An expression of Spark SQL."""

    text: str


@dataclass(frozen=True, slots=True)
class StatementExpression:
    """An expression of a statement in the JVM, which Python refers to by number."""

    expressions: Any
    """An `IcebergPyExpressions` object of the JVM."""

    number: int

    def column(self) -> Column:
        """Return the value as a column; this is a call of the JVM."""
        return Column(self.expressions.column(self.number))


@dataclass(frozen=True, slots=True)
class TargetValue:
    """A column of the target whose value does not change."""

    name: str


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of the source, by its quoted name."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """An integer."""

    value: int


@dataclass(frozen=True, slots=True)
class Cast:
    """A value cast to a Spark type; a value that does not fit is an error in every session."""

    value: Value
    type: str
    """The type in Spark's JSON."""


@dataclass(frozen=True, slots=True)
class UnusedValue:
    """A placeholder whose value is never read."""


Value: TypeAlias = (
    Column | Sql | StatementExpression | TargetValue | SourceColumn | Number | Cast | UnusedValue
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectFiles:
    """The final locations of the files of a write whose tasks write there directly."""

    folder: str
    """The table's data folder as the JVM addresses it."""

    write: str
    """The id of the write, which is part of every file name."""

    fields: Sequence[str]
    """The partition field names as in folder names, URL-encoded; empty without partitions."""

    kinds: Sequence[str]
    """For each partition field, how its value is shown (`IcebergPyDirectNames`)."""

    hashed: bool
    """Whether paths begin with folders made of a hash."""

    has_parts: bool
    """Whether folders show the partition values."""

    context: str | None
    """The path part between the hash and the partition folders, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenColumn:
    """A column that Spark's own Parquet writer writes (`IcebergPyParquetWrites.columns`)."""

    source: str
    """The frame's column."""

    type: str | None
    """The type that the column is cast to, in Spark's JSON; None if the column already has the
    type.
    """

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetRelation:
    """A relation over chosen files (`IcebergPyParquetScans.relation`)."""

    table: str
    file_format: FileFormat
    columns: str
    """The columns to read from the files, as a Spark schema in JSON. Columns of Parquet files are
    found by the field ids in the schema, columns of ORC files by name.
    """

    non_null_columns: tuple[str, ...]
    """The columns that have no null in any row; Spark generates no null checks for them."""

    file_constants: tuple[str, ...]
    """The columns of the table of files whose value each row of a file gets."""

    keys: tuple[str, ...] | None
    """The columns by which files are grouped, or None if the files are not grouped."""

    options: Mapping[str, str] = field(repr=False)
    """Hadoop options for these files alone."""

    rows: int
    """The number of rows in the files."""

    rows_of_largest_file: int
    """The number of rows in the file with most rows, by the manifests: a hint only."""

    filter_columns: Mapping[str, str]
    """The table's column name, by the name of each column that run-time filters may refer to."""

    plan_metrics: Mapping[str, int]
    """Metrics of the plan, which Spark's UI shows."""

    sort_order: Sequence[Sequence[str]]
    """The sort order of the rows in each file: column, direction, and position of nulls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedColumn:
    """A column of a plan over a relation (`IcebergPyParquetScans.plan`)."""

    name: str
    value: str
    """A Spark SQL expression."""

    column: str | None = None
    """The relation's column that is the value, or None; such a column needs no analysis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorPlaces:
    """The locations of deletion vectors (`IcebergPyDeleteConditions.liveRows`)."""

    table: str
    store: str
    """A key that is equal for equal stores: the same file name in two stores is two vectors."""

    options: Mapping[str, str] = field(repr=False)
    """Hadoop options for the locations."""

    locations: Sequence[str]
    lasting: Sequence[bool]
    """For each location, whether its bytes never change."""

    places: Sequence[int]
    """For each data file, the index of the location that has its vector."""

    offsets: Sequence[int]
    sizes: Sequence[int]
    """In bytes; 0 for a data file without a vector."""

    cardinalities: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionPlaces:
    """The locations of position delete files (`IcebergPyDeleteConditions.liveRows`)."""

    table: str
    store: str
    """A key that is equal for equal stores, as in `VectorPlaces`."""

    options: Mapping[str, str] = field(repr=False)
    """Hadoop options for the locations."""

    verify: bool
    """Whether pages are checked against their checksums."""

    locations: Sequence[str]
    """One for each delete file, as are `lasting`, `sizes` and `records`."""

    lasting: Sequence[bool]
    """Whether the bytes at the location never change."""

    sizes: Sequence[int]
    """In bytes, from the manifest entry."""

    records: Sequence[int]
    """The number of rows, from the manifest entry."""

    paths: Sequence[str]
    """For each data file, the path by which delete files name it; empty without delete files."""

    ends: Sequence[int]
    """For each data file, the end of its delete files in `files`; they begin at the last end."""

    files: Sequence[int]
    """Indexes of delete files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedValues:
    """The values that one change assigns; `side` is whose columns they name."""

    paths: tuple[tuple[str, ...], ...]
    """The column, or the column and the fields below it, that each value is assigned to."""

    values: tuple[Value, ...]
    side: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedColumns:
    """Values to assign to the columns of a table (`IcebergPyChanges.assign`)."""

    table: str
    schema: str
    """The columns, as a Spark schema in JSON."""

    changes: tuple[AssignedValues, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCondition:
    """The rows that a change applies to; all rows of `where` if `condition` is None."""

    where: Literal["any", "both", "source", "target"]
    """Rows of a join: any rows, rows with both sides, with the source alone, or with the target
    alone.
    """

    condition: Value | None
    side: Side
    """The side whose columns the condition and the values of the change name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedColumn:
    """A column to compute; `cases` has its value after each change, None for null."""

    name: str
    type: str
    cases: tuple[Value | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRows:
    """For each row, the first change that applies to the row (`IcebergPyChanges.changed`)."""

    changes: tuple[ChangeCondition, ...]
    columns: tuple[ChangedColumn, ...]


def to_json(call: Any) -> str:
    """Return a call's arguments as JSON, keyed by field names; `is` names the class.

    The caller must keep references to the JVM's objects during the call, because py4j releases the
    others.
    """
    return json.dumps(call, default=_description)


def arrow_stream(table: pa.RecordBatch) -> bytes:
    """Return the table as an Arrow stream of one batch, which `IcebergPyArrowTable` reads."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_batch(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _description(value: Any) -> Any:
    if isinstance(value, Column):
        value = value._jc
    if isinstance(value, JavaObject):
        return {"is": "Object", "id": value._get_object_id()}
    if is_dataclass(value):
        values = {f.name: getattr(value, f.name) for f in fields(value)}
        return {"is": type(value).__name__, **values}
    raise TypeError(f"the JVM is not told of a {type(value).__name__}")
