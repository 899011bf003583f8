"""Computes the metrics of a data file for its manifest entry: from its footer, or from its rows.

Specification, "Data File Fields" and Appendix D "Binary single-value serialization". Most metrics
of a Parquet file come from its footer. Two come from the rows during the write: NaN counts, and
bounds of strings that are too long for Parquet's statistics. For formats without metrics in the
footer all come from the rows; column sizes and split offsets are then unknown. The properties
`write.metadata.metrics.*`, which are Java's, choose the metrics of each column; the specification
leaves the choice to the writer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from iceberg_pyspark.arrow.arrow_schemas import is_list_like, stored_schema, value_of
from iceberg_pyspark.arrow.file_fields import FileField, resolve_file_fields
from iceberg_pyspark.arrow.geo_columns import box_of_chunk
from iceberg_pyspark.arrow.variant_bounds import variant_bounds
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.bound_cuts import high_cut
from iceberg_pyspark.spec.bounding_boxes import BoundingBox
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_properties import (
    METRICS_COLUMN,
    METRICS_DEFAULT,
    METRICS_MAX_INFERRED,
)
from iceberg_pyspark.spec.types import (
    BinaryType,
    DoubleType,
    FloatType,
    PrimitiveType,
    StringType,
    Type,
    children_of,
)
from iceberg_pyspark.spec.values import decimal_of, may_bound_uuids, value_to_bytes

_TRUNCATE = re.compile(r"truncate\((\d+)\)")


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """A mode: `none`, `counts`, `full`, or `truncate` with the length of text and binary bounds."""

    kind: Literal["none", "counts", "truncate", "full"]
    length: int = 0

    @property
    def counts(self) -> bool:
        """Whether values, nulls and NaNs are counted."""
        return self.kind != "none"

    @property
    def bounds(self) -> bool:
        """Whether there are lower and upper bounds."""
        return self.kind in ("truncate", "full")


NONE = MetricsMode("none")
COUNTS = MetricsMode("counts")
DEFAULT = MetricsMode("truncate", 16)


def metrics_mode(text: str, otherwise: MetricsMode) -> MetricsMode:
    """Return the mode that a property names, or `otherwise` for an invalid value, as in Java.

    >>> metrics_mode("truncate(4)", NONE)
    MetricsMode(kind='truncate', length=4)
    """
    if METRICS_DEFAULT.problem(text) is not None:
        return otherwise
    mode = text.lower()
    if m := _TRUNCATE.fullmatch(mode):
        return MetricsMode("truncate", int(m[1]))
    return MetricsMode(mode)  # type: ignore[arg-type]


def metrics_modes(schema: Schema, properties: Mapping[str, str]) -> Mapping[int, MetricsMode]:
    """Return the mode of every primitive column; columns in lists and maps have sizes at most.

    Without a default mode in the properties, only the first columns have metrics; the fields of a
    struct precede nested fields.
    """
    columns = list(_columns_outer_first(schema.as_struct))
    if (text := properties.get(METRICS_DEFAULT.name)) is not None:
        modes = dict.fromkeys(columns, metrics_mode(text, DEFAULT))
    else:
        limit = METRICS_MAX_INFERRED.of(properties)
        modes = {c: DEFAULT if i < limit else NONE for i, c in enumerate(columns)}
    for key, text in properties.items():
        if key.startswith(METRICS_COLUMN):
            field_id = schema.id_by_name.get(key.removeprefix(METRICS_COLUMN))
            # a property may outlive its column
            if field_id in modes:
                modes[field_id] = metrics_mode(text, modes[field_id])
    return modes


def _columns_outer_first(type_: Type) -> Iterator[int]:
    children = children_of(type_)
    yield from (f.field_id for f in children if isinstance(f.type, PrimitiveType))
    for f in children:
        yield from _columns_outer_first(f.type)


_FOOTER_LIMIT = 4096
"""Parquet's writer omits a column chunk's statistics if the minimum or maximum is this long."""


_CUT = (types.StringType, types.BinaryType)
"""Types whose bounds are truncated; fixed values and uuids have one length."""

_UNORDERED = (types.VariantType, types.GeometryType, types.GeographyType)
"""Types whose bounds are not the least and the greatest value."""

_LONG = (types.StringType, types.BinaryType, types.FixedType)
"""Types whose values may be longer than the limit."""


class FileMetrics(TypedDict):
    """The metric fields of a `DataFile`."""

    record_count: int
    column_sizes: Mapping[int, int]
    value_counts: Mapping[int, int]
    null_value_counts: Mapping[int, int]
    nan_value_counts: Mapping[int, int]
    lower_bounds: Mapping[int, bytes]
    upper_bounds: Mapping[int, bytes]
    split_offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A primitive column with its position in the Parquet file, depth first."""

    index: int
    field_id: int
    type: types.Type
    path: tuple[str, ...]
    mode: MetricsMode
    repeated: bool
    """Whether the column is in a list or map; its values are not rows, so it has sizes only."""

    @property
    def counts(self) -> bool:
        """Whether the metrics include counts of the column."""
        return self.mode.counts and not self.repeated

    @property
    def bounds(self) -> bool:
        """Whether the least and greatest values are bounds of the column."""
        return self.has_bounds and not isinstance(self.type, _UNORDERED)

    @property
    def has_bounds(self) -> bool:
        """Whether the metrics include bounds of any form of the column."""
        return self.mode.bounds and not self.repeated


class MetricsCollector:
    """A collector of one file's metrics: from row groups as they are written, then from the footer.

    `leaves` are the columns with metrics. With `sees_rows=False`, the collector learns about NaNs
    only from the footer's statistics.
    """

    def __init__(self, leaves: Sequence[Leaf], *, sees_rows: bool = True) -> None:
        self._sees_rows = sees_rows
        self._leaves = leaves
        self._floats = [
            leaf
            for leaf in self._leaves
            if leaf.counts and isinstance(leaf.type, types.FloatType | types.DoubleType)
        ]
        self._geos = [
            leaf
            for leaf in leaves
            if leaf.counts and isinstance(leaf.type, types.GeometryType | types.GeographyType)
        ]
        self._has_variants = any(isinstance(leaf.type, types.VariantType) for leaf in leaves)
        self._texts = [
            leaf for leaf in self._leaves if leaf.bounds and isinstance(leaf.type, _LONG)
        ]
        self.clear()

    def clear(self) -> None:
        """Reset the collector for the next file."""
        self._row_groups = 0
        self._nan_counts = {leaf.field_id: 0 for leaf in self._floats}
        self._long_texts: dict[tuple[int, int], tuple[bytes, bytes]] = {}
        self._geo_nulls = {leaf.field_id: 0 for leaf in self._geos}

    def observe(self, row_group: pa.Table) -> None:
        """Take NaN counts and bounds of long texts from the row group that is written next."""
        for leaf in self._floats:
            nans = pc.sum(pc.is_nan(_leaf_column(row_group, leaf))).as_py()
            self._nan_counts[leaf.field_id] += nans or 0
        for leaf in self._geos:
            # Arrow writes no statistics of these columns, not even the number of nulls
            self._geo_nulls[leaf.field_id] += _leaf_column(row_group, leaf).null_count
        for leaf in self._texts:
            column = _leaf_column(row_group, leaf)
            if (pc.max(pc.binary_length(column)).as_py() or 0) >= _FOOTER_LIMIT:
                bounds = pc.min_max(column.cast(pa.large_binary())).as_py()
                self._long_texts[self._row_groups, leaf.field_id] = (bounds["min"], bounds["max"])
        self._row_groups += 1

    def finish(self, footer: pq.FileMetaData) -> FileMetrics:
        """Return the metrics of the file with this footer, and reset the collector."""
        row_groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
        sizes: dict[int, int] = {}
        values: dict[int, int] = {}
        nulls: dict[int, int] = {}
        known_bounds: list[tuple[Leaf, tuple[Any, Any]]] = []
        encoded: dict[int, tuple[bytes, bytes]] = {}
        # a variant has any number of columns in the file, so those behind it are found by path
        columns = _columns_by_path(footer) if self._has_variants else None

        def chunks_of(index: int) -> list[pq.ColumnChunkMetaData]:
            return [g.column(index) for g in row_groups]

        for leaf in self._leaves:
            column = None if columns is None else columns[leaf.path]
            is_variant = isinstance(leaf.type, types.VariantType)
            if column is not None and is_variant:
                # required, so it is null where the variant is
                [column_of_nulls] = (c for c in column.children if c.name == "metadata")
                chunks = chunks_of(column_of_nulls.leaves[0])
                if leaf.has_bounds and (ends := variant_bounds(column, chunks_of)) is not None:
                    encoded[leaf.field_id] = ends
            else:
                chunks = chunks_of(leaf.index if column is None else column.leaves[0])
            if leaf.mode != NONE and not is_variant:
                sizes[leaf.field_id] = sum(c.total_compressed_size for c in chunks)
            if not leaf.counts:
                continue
            values[leaf.field_id] = sum(c.num_values for c in chunks)
            statistics = [c.statistics for c in chunks]
            if all(s is not None and s.has_null_count for s in statistics):
                nulls[leaf.field_id] = sum(s.null_count for s in statistics)
            elif self._sees_rows and leaf.field_id in self._geo_nulls:
                nulls[leaf.field_id] = self._geo_nulls[leaf.field_id]
            if leaf.has_bounds and isinstance(leaf.type, types.GeometryType):
                box = _box_of_chunks(chunks)
                if box is not None and (ends := box.bounds()) is not None:
                    encoded[leaf.field_id] = ends
            is_uncounted = not self._sees_rows and leaf.field_id in self._nan_counts
            if is_uncounted and any(map(_may_have_nan, chunks)):
                del self._nan_counts[leaf.field_id]
                continue
            if leaf.bounds and (bounds := self._bounds(leaf, chunks)) is not None:
                known_bounds.append((leaf, bounds))
        lower, upper = _serialized_bounds(known_bounds)
        lower |= {i: low for i, (low, _) in encoded.items()}
        upper |= {i: high for i, (_, high) in encoded.items()}
        metrics = FileMetrics(
            record_count=footer.num_rows,
            column_sizes=sizes,
            value_counts=values,
            null_value_counts=nulls,
            nan_value_counts=dict(self._nan_counts),
            lower_bounds=lower,
            upper_bounds=upper,
            split_offsets=tuple(first_byte(g) for g in row_groups),
        )
        self.clear()
        return metrics

    def _bounds(self, leaf: Leaf, chunks: list[pq.ColumnChunkMetaData]) -> tuple[Any, Any] | None:
        """Return the least and greatest value, or None if there is no value or none is known."""
        lows, highs = [], []
        for i, chunk in enumerate(chunks):
            if (long := self._long_texts.get((i, leaf.field_id))) is not None:
                low, high = long
            elif (s := chunk.statistics) is not None and s.has_min_max:
                low, high = s.min_raw, s.max_raw
            elif s is not None and s.has_null_count and s.null_count == chunk.num_values:
                continue
            elif isinstance(leaf.type, types.FloatType | types.DoubleType):
                # the chunk holds only NaNs, which are not part of any bound
                continue
            else:
                return None
            lows.append(_value(leaf.type, low, least=True))
            highs.append(_value(leaf.type, high, least=False))
        return (min(lows), max(highs)) if lows else None


def _box_of_chunks(chunks: Iterable[pq.ColumnChunkMetaData]) -> BoundingBox | None:
    """Return the box of all chunks, or None if that of one is unknown."""
    box = BoundingBox()
    for chunk in chunks:
        part = box_of_chunk(chunk)
        if part is None:
            return None
        for dimension in range(4):
            if part.has(dimension):
                box.add(dimension, (part.lower[dimension], part.upper[dimension]))
    return box


def _columns_by_path(footer: pq.FileMetaData) -> dict[tuple[str, ...], FileField]:
    """Return the columns of a file by the names that `Leaf.path` has, at all depths."""
    file_fields = resolve_file_fields(footer.schema.to_arrow_schema(), None, "a written file")
    return dict(_with_paths(file_fields.columns, ()))


def _with_paths(
    fields: Iterable[FileField], path: tuple[str, ...], part_names: Sequence[str] = ()
) -> Iterator[tuple[tuple[str, ...], FileField]]:
    for i, f in enumerate(fields):
        below = (*path, part_names[i] if part_names else f.name)
        yield below, f
        parts: Sequence[str] = ()
        if pa.types.is_map(f.type):
            parts = ("key", "value")
        elif is_list_like(f.type):
            parts = ("element",)
        yield from _with_paths(f.children, below, parts)


def metric_leaves(schema: Schema, properties: Mapping[str, str]) -> list[Leaf]:
    """Return the primitive columns of a file, each with the metrics mode from the properties."""
    modes = metrics_modes(schema, properties)
    return [
        Leaf(i, field_id, type_, path, modes[field_id], repeated)
        for i, (field_id, type_, path, repeated) in enumerate(
            _leaves(stored_schema(schema).as_struct, (), repeated=False)
        )
    ]


def _leaves(
    type_: types.Type, path: tuple[str, ...], *, repeated: bool
) -> Iterator[tuple[int, types.Type, tuple[str, ...], bool]]:
    match type_:
        case types.StructType(fields=fields):
            children = fields
        case types.ListType():
            children, repeated = (type_.element,), True
        case types.MapType():
            children, repeated = (type_.key, type_.value), True
        case _:
            return
    for f in children:
        if isinstance(f.type, types.StructType | types.ListType | types.MapType):
            yield from _leaves(f.type, (*path, f.name), repeated=repeated)
        else:
            yield f.field_id, f.type, (*path, f.name), repeated


def _leaf_column(table: pa.Table, leaf: Leaf) -> pa.ChunkedArray:
    """Return a column outside lists and maps; values are null where an enclosing struct is null."""
    column = table.column(leaf.path[0])
    return column if len(leaf.path) == 1 else pc.struct_field(column, list(leaf.path[1:]))


def first_byte(row_group: pq.RowGroupMetaData) -> int:
    """Return the offset of a row group's first byte in its file."""
    column = row_group.column(0)
    offset: int = column.data_page_offset
    dictionary = column.dictionary_page_offset
    # some writers write 0 if there is no dictionary page
    return min(offset, dictionary) if dictionary else offset


def _may_have_nan(chunk: pq.ColumnChunkMetaData) -> bool:
    """Return whether a chunk of floats may hold a NaN; its writer must sort NaN above numbers."""
    s = chunk.statistics
    if s is None:
        return True
    if s.has_min_max:
        return bool(math.isnan(s.min_raw) or math.isnan(s.max_raw))
    return not (s.has_null_count and s.null_count == chunk.num_values)


def _value(type_: types.Type, raw: Any, *, least: bool) -> Any:
    """Convert a raw statistic to a value of `spec/values.py`; a zero bounds zeros of both signs."""
    match type_:
        case types.FloatType() | types.DoubleType() if raw == 0:
            return -0.0 if least else 0.0
        case types.StringType():
            return raw if isinstance(raw, str) else raw.decode("utf-8")
        case types.DecimalType(scale=scale):
            unscaled = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
            return decimal_of(unscaled, scale)
        case _:
            return raw


def _serialized_bounds(
    bounds: Iterable[tuple[Leaf, tuple[Any, Any]]],
) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Return the lower and the upper bounds of columns by field id, those that exist."""
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for leaf, (low, high) in bounds:
        if isinstance(leaf.type, types.UUIDType) and not may_bound_uuids(low, high):
            continue
        low, high = _cut(leaf, low, high)
        lower[leaf.field_id] = value_to_bytes(leaf.type, low)
        if high is not None:
            upper[leaf.field_id] = value_to_bytes(leaf.type, high)
    return lower, upper


def _cut(leaf: Leaf, low: Any, high: Any) -> tuple[Any, Any]:
    if leaf.mode.kind != "truncate" or not isinstance(leaf.type, _CUT):
        return low, high
    return low[: leaf.mode.length], high_cut(high, leaf.mode.length)


class RowMetrics:
    """A collector of one file's metrics from its rows."""

    def __init__(self, schema: Schema, properties: Mapping[str, str]) -> None:
        self._leaves = [leaf for leaf in metric_leaves(schema, properties) if leaf.counts]
        self._record_count = 0
        self._nulls = {leaf.field_id: 0 for leaf in self._leaves}
        self._nans = {leaf.field_id: 0 for leaf in self._leaves if _is_float(leaf)}
        self._bounds: dict[int, tuple[Any, Any]] = {}
        self._boxes: dict[int, BoundingBox | None] = {
            leaf.field_id: BoundingBox()
            for leaf in self._leaves
            if leaf.has_bounds and isinstance(leaf.type, types.GeometryType)
        }

    def observe(self, rows: pa.Table) -> None:
        """Add rows of the file to the metrics."""
        self._record_count += rows.num_rows
        for leaf in self._leaves:
            column = _leaf_column(rows, leaf)
            self._nulls[leaf.field_id] += column.null_count
            if _is_float(leaf):
                nan = pc.is_nan(column)
                nans = pc.sum(nan).as_py() or 0
                self._nans[leaf.field_id] += nans
                if nans:
                    column = column.filter(pc.invert(nan))
            if (box := self._boxes.get(leaf.field_id)) is not None:
                self._boxes[leaf.field_id] = _extended(box, column)
            if leaf.bounds and (bounds := _least_and_greatest(leaf, column)) is not None:
                low, high = self._bounds.get(leaf.field_id, bounds)
                self._bounds[leaf.field_id] = (min(low, bounds[0]), max(high, bounds[1]))

    def finish(self) -> FileMetrics:
        """Return the metrics of the file; call this method after all rows were observed."""
        lower, upper = _serialized_bounds(
            (leaf, self._bounds[leaf.field_id])
            for leaf in self._leaves
            if leaf.field_id in self._bounds
        )
        for field_id, box in self._boxes.items():
            if box is not None and (ends := box.bounds()) is not None:
                lower[field_id], upper[field_id] = ends
        return FileMetrics(
            record_count=self._record_count,
            column_sizes={},
            value_counts={leaf.field_id: self._record_count for leaf in self._leaves},
            null_value_counts=self._nulls,
            nan_value_counts=self._nans,
            lower_bounds=lower,
            upper_bounds=upper,
            split_offsets=(),
        )


def _extended(box: BoundingBox, column: pa.ChunkedArray) -> BoundingBox | None:
    """Extend the box by a column of WKB; return None if a value is none."""
    try:
        for wkb in column.to_pylist():
            if wkb is not None:
                box.add_wkb(wkb)
    except ValueError:
        return None
    return box


def _is_float(leaf: Leaf) -> bool:
    return isinstance(leaf.type, FloatType | DoubleType)


def _least_and_greatest(leaf: Leaf, column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    if isinstance(leaf.type, StringType | BinaryType):
        # the texts of a column may together exceed 32-bit offsets
        column = column.cast(pa.large_binary())
    extremes = pc.min_max(column)
    if not extremes["min"].is_valid:
        return None
    low, high = (
        value_of(leaf.type, extremes["min"]),
        value_of(leaf.type, extremes["max"]),
    )
    if isinstance(leaf.type, StringType):
        return low.decode(), high.decode()
    if _is_float(leaf):
        # the bounds of a zero cover zeros of both signs
        return (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
    return low, high
