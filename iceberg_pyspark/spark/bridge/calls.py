"""Encodes the arguments of a call to the JVM as one JSON document.

JVM objects in a document are represented by their py4j ids, so one call can pass many of them.
Tables of files are passed separately, as Arrow IPC streams.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

import pyarrow as pa
from py4j.java_gateway import JavaObject
from pyspark.sql import Column

from iceberg_pyspark.spark.bridge.values import Side, Value
from iceberg_pyspark.spec.manifests import FileFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectFiles:
    """Where the files of one write lie whose tasks put them where they stay."""

    folder: str
    """The table's data folder as the JVM reaches it."""

    write: str
    """What is in every file's name."""

    fields: Sequence[str]
    """The partition fields' names as folders have them; empty without partitions."""

    kinds: Sequence[str]
    """Of each field how its value is shown (`IcebergPyDirectNames`)."""

    hashed: bool
    """Whether folders of a hash come first."""

    has_parts: bool
    """Whether folders show partitions."""

    context: str | None
    """What stands between hash and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenColumn:
    """A column that Spark's own Parquet writer writes (`IcebergPyParquetWrites.columns`)."""

    source: str
    """The frame's column, quoted."""

    type: str | None
    """What it is cast to, as Spark writes it in JSON; None: it has the type."""

    optional: bool
    """Whether it is written as one that may hold nulls, whatever Spark knows of it."""

    name: str
    metadata: str
    """Spark's, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetRelation:
    """A relation over chosen files (`IcebergPyParquetScans.relation`)."""

    table: str
    key: str
    """Equal for equal files, columns and constants."""

    file_format: FileFormat
    columns: str
    """What to read of the files: a schema of Spark's. Columns of Parquet files are found by the
    field ids in it, those of ORC files by name."""

    never_null: tuple[str, ...]
    """Those that no row has a null in: Spark's code asks for none then."""

    file_constants: tuple[str, ...]
    """The columns of the table of files that each row of a file has."""

    keys: tuple[str, ...] | None
    """Those by which files are grouped; None where they are not."""

    options: Mapping[str, str] = field(repr=False)
    """Hadoop's, for these files alone."""

    rows: int
    """How many the files hold."""

    filtered: Mapping[str, str]
    """Of columns that filters known while a query runs may be about what the table calls them."""

    planned: Mapping[str, int]
    """Numbers of the plan, for Spark's UI to show."""

    sorted_by: Sequence[Sequence[str]]
    """What the rows of each file are sorted by: the column, the direction, the place of nulls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedColumn:
    """A column of a plan over a relation (`IcebergPyParquetScans.plan`)."""

    name: str
    value: str
    """In SQL."""

    column: str | None = None
    """The relation's column that the value is, None for any other: it needs no analysis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorPlaces:
    """Where deletion vectors lie (`IcebergPyDeleteConditions.liveRows`)."""

    table: str
    store: str
    """Equal for equal stores: vectors of two are not the same, whatever their files are called."""

    options: Mapping[str, str] = field(repr=False)
    """Hadoop's, for the locations."""

    locations: Sequence[str]
    lasting: Sequence[bool]
    """Of each location whether it means the same bytes for ever."""

    places: Sequence[int]
    """Of each data file which location has its vector."""

    offsets: Sequence[int]
    sizes: Sequence[int]
    """In bytes, 0 for a data file without a vector."""

    cardinalities: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionPlaces:
    """Where position delete files lie (`IcebergPyDeleteConditions.liveRows`)."""

    table: str
    store: str
    """Equal for equal stores, as of vectors."""

    options: Mapping[str, str] = field(repr=False)
    """Hadoop's, for the locations."""

    verify: bool
    """Whether pages are compared with the checksums they have."""

    locations: Sequence[str]
    """Of each delete file, as what follows."""

    lasting: Sequence[bool]
    """Whether it means the same bytes for ever."""

    sizes: Sequence[int]
    """In bytes, as its manifest entry says."""

    records: Sequence[int]
    """The rows it has, as its manifest entry says."""

    paths: Sequence[str]
    """Of each data file the path by which delete files name it, empty without any."""

    ends: Sequence[int]
    """Of each data file where its delete files end in `files`; they begin where others' end."""

    files: Sequence[int]
    """Numbers of delete files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storing:
    """A value to be stored in a column of a type (`IcebergPyChanges.storable`)."""

    value: Value
    side: Side
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedWhen:
    """Which rows a change is about; `condition` None for all of them."""

    where: Literal["any", "both", "source", "target"]
    """Rows of a join: any, those of both sides, of the source alone, of the target alone."""

    condition: Value | None
    side: Side
    """Whose columns the condition and the values of the change name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedColumn:
    """A column to make; `cases` has its value after each change, None for null."""

    name: str
    type: str
    cases: tuple[Value | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRows:
    """For each row the first change that is about it (`IcebergPyChanges.changed`)."""

    changes: tuple[ChangedWhen, ...]
    columns: tuple[ChangedColumn, ...]


def to_json(call: Any) -> str:
    """A call's values as the JVM takes them: by the names of fields, `is` naming the class.

    The caller keeps references to the JVM's objects during the call: py4j drops all others.
    """
    return json.dumps(call, default=_description)


def arrow_stream(table: pa.RecordBatch) -> bytes:
    """The table as a stream of one batch, which `IcebergPyArrowTable` reads by Spark's classes."""
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
