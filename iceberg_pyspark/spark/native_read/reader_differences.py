"""Finds files and ORC columns that Spark's own readers would read differently from Iceberg.

Iceberg finds ORC columns by field id, Spark by name. Both find the same column if the name has
meant one field in every schema that the table ever had, and the file uses one of these schemas.
Spark before 4.2 cannot open a file with a timestamp with time zone. Spark reads timestamps in the
time zone of the JVM, in which some times may not exist, and dates before October 1582 in another
calendar.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.file_fields import has_field_ids
from iceberg_pyspark.arrow.formats.open_data_file import open_data_file
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.expressions.predicates import BoundColumn, BoundLiteral, Predicate
from iceberg_pyspark.expressions.rewriting import or_
from iceberg_pyspark.formats.encoding.decoded_files import DecodedCache
from iceberg_pyspark.planning.entry_filter import matching_metrics
from iceberg_pyspark.spark.native_read.column_names import schemas_were_removed
from iceberg_pyspark.spec.metadata_columns import (
    DELETED,
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    POS,
    ROW_ID,
    SPEC_ID,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    DateType,
    NestedField,
    PrimitiveType,
    StructType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    VariantType,
    walk_fields,
)
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.threaded_map import threaded_map

_FIRST_DATE = (date(1600, 1, 1) - date(1970, 1, 1)).days
"""A date that no calendar shifts; bounds in ORC files may also be in the old calendar."""
_CONSTANTS = {f.field_id for f in (DELETED, FILE, SPEC_ID)}
_POSITIONAL = {f.field_id for f in (POS, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)}
_BY_PLACE = "_col"
"""If all column names of a file begin like this, Spark finds the columns by position."""


@dataclass(frozen=True, kw_only=True)
class OrcFilesRead:
    """The properties of the ORC files that Spark's reader reads."""

    bounded_dates: frozenset[int] = frozenset()
    """The ids of the date columns in which no such file has an old date."""

    with_zones: bool = False
    """Whether Spark opens files that have a timestamp with time zone."""


NO_ORC_FILES = OrcFilesRead()


def why_not_by_name(
    schemas: Collection[Schema], fields: Collection[NestedField], files: OrcFilesRead
) -> str | None:
    """Return why Spark may read ORC columns differently from Iceberg, or None if it reads them
    alike.

    `schemas` are all schemas that the table has had. `fields` are top-level fields of types that
    Spark's Parquet reader supports.
    """
    reason = _why_no_file(schemas, files)
    if reason is not None:
        return reason
    fields = [f for f in fields if f.field_id not in _CONSTANTS]
    for f in fields:
        if f.field_id in _POSITIONAL:
            return f"{f.name} takes positions in ORC files"
        for inner in (f, *walk_fields(f.type)):
            if isinstance(inner.type, TimestampType | TimestamptzType | VariantType):
                return f"column {f.name} holds {inner.type} in ORC files"
            if isinstance(inner.type, DateType) and inner.field_id not in files.bounded_dates:
                return f"column {f.name} may hold dates before 1600 in ORC files"
            if isinstance(inner.type, StructType) and not inner.type.fields:
                return f"column {f.name} holds a struct without fields"
            if inner.initial_default is not None:
                return f"column {f.name} has an initial default, which ORC files lack"
    return _why_other_names(schemas, fields)


def are_named_by_schemas(entries: pa.Table) -> Mask:
    """Return which files certainly have the column names of a schema in the metadata.

    In format version 1 writers could keep only the newest schema; files of that version have the
    sequence number 0.
    """
    named: Mask = entries["sequence_number"].fill_null(0).to_numpy() > 0
    return named


def files_with_old_dates(entries: pa.Table, dates: Iterable[NestedField]) -> frozenset[str]:
    """Return the locations of ORC files that may hold a date that Spark would shift.

    `entries` must have the metrics of the columns `dates`.
    """
    old: list[Predicate] = [
        BoundLiteral(
            op="lt",
            column=BoundColumn(field_id=f.field_id, name=f.name, type=f.type, required=False),
            literal=_FIRST_DATE,
        )
        for f in dates
    ]
    of_orc = entries.filter(pc.equal(entries["file_format"], "orc"))
    if not old or not of_orc.num_rows:
        return frozenset()
    may_be = pa.array(matching_metrics(of_orc, or_(*old)))
    return frozenset(of_orc["file_path"].filter(may_be).to_pylist())


def _why_no_file(schemas: Collection[Schema], files: OrcFilesRead) -> str | None:
    """Return why Spark's reader may misread any ORC file of a table, or None."""
    if schemas_were_removed(schemas):
        return "schemas were removed, so that names in ORC files may mean other columns"
    for schema in schemas:
        for f in walk_fields(schema.as_struct):
            if isinstance(f.type, TimestamptzType | TimestamptzNsType) and not files.with_zones:
                return f"Spark opens no ORC file with a column like {f.name} of type {f.type}"
        if all(f.name.startswith(_BY_PLACE) for f in schema.fields):
            return f"ORC files whose columns are all called {_BY_PLACE}... are read by place"
    return None


def _why_other_names(schemas: Collection[Schema], fields: Collection[NestedField]) -> str | None:
    """Return why a file may have a field under another name or type, or another field under its
    name.
    """
    ids: dict[tuple[int | None, str], set[int]] = {}
    for schema in schemas:
        for field_id, f in schema.field_by_id.items():
            place = schema.parent_by_id.get(field_id), f.name.lower()
            ids.setdefault(place, set()).add(field_id)
    for top in fields:
        for f in (top, *walk_fields(top.type)):
            if "`" in f.name:
                return f"the name of column {top.name} has a backtick, which ORC's own parser lacks"
            for schema in schemas:
                older = schema.field_by_id.get(f.field_id)
                if older is None:
                    if f.required:
                        return f"column {top.name} is required and was added later"
                    continue
                if older.name != f.name:
                    return f"column {top.name} was renamed, and ORC files are read by name"
                if isinstance(f.type, PrimitiveType) and older.type != f.type:
                    return f"column {top.name} was promoted"
                place = schema.parent_by_id.get(f.field_id), f.name.lower()
                if ids[place] != {f.field_id}:
                    return f"the name of column {top.name} was another column's"
    return None


Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_MIN_BYTES = 12
"""The size of a Parquet file without rows: magic bytes at both ends and the footer's length."""
_MAX_BYTES = 2**42
_ENTRY_BYTES = 100
_LACKS_IDS: DecodedCache[bool] = DecodedCache(100_000 * _ENTRY_BYTES, lambda _: _ENTRY_BYTES)


def misread_files(io: FileIO, entries: pa.Table) -> frozenset[str]:
    """Return the locations of misread files; `entries` is as in `spec/entry_columns.py`."""
    of_parquet = pc.equal(entries["file_format"], "parquet").to_numpy()
    of_orc = pc.equal(entries["file_format"], "orc").to_numpy()
    size = entries["file_size_in_bytes"].to_numpy()
    offsets = entries["split_offsets"].combine_chunks()
    counts = offsets.value_lengths().fill_null(0).to_numpy()
    may_be = (size > _MIN_BYTES) & (size <= _MAX_BYTES)
    wrong = (of_parquet & (~may_be | _begins_beyond(size, offsets, counts))) | (of_orc & ~may_be)
    paths = entries["file_path"]
    without_ids = _without_ids(io, _paths_where(paths, of_parquet & (counts == 0)))
    return without_ids | frozenset(_paths_where(paths, wrong))


def _begins_beyond(size: Numbers, offsets: pa.ListArray, counts: Numbers) -> Mask:
    """Return a mask of the files in which a row group begins beyond the file size in the entry."""
    row = np.repeat(np.arange(len(size)), counts)
    begins = offsets.flatten()
    beyond = np.zeros(len(size), np.bool_)
    # A missing offset becomes -1, which is within every size.
    beyond[row[begins.fill_null(-1).to_numpy() >= np.maximum(size[row], 0)]] = True
    return beyond


def _paths_where(paths: pa.ChunkedArray, mask: Mask) -> list[str]:
    texts: list[str] = paths.filter(pa.array(mask)).to_pylist() if mask.any() else []
    return texts


def _without_ids(io: FileIO, unsure: Sequence[str]) -> frozenset[str]:
    lacks = threaded_map(partial(_lacks_ids, io), unsure, str)
    return frozenset(path for path, without in zip(unsure, lacks, strict=True) if without)


def _lacks_ids(io: FileIO, path: str) -> bool:
    def read_footer() -> bool:
        with open_data_file(io, path, "parquet") as file:
            return not has_field_ids(file.schema)

    try:
        return _LACKS_IDS.get_or_read(io, path, read_footer)
    except (IcebergError, pa.ArrowException, OSError):
        # The reader of the file reports what is wrong with it.
        return False
