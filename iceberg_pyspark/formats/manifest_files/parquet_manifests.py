"""Manifests in Parquet, as in tables of version 4: their rows as a raw table.

Columns are found by field id. The memory for the rows is estimated before they are decoded: the
footer has sizes and counts, the dictionaries have the longest values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark.errors import InvalidMetadataError, UnsupportedFeatureError
from iceberg_pyspark.formats.encoding.decoded_files import memory_limit, too_large
from iceberg_pyspark.formats.manifest_files.parquet_footers import (
    ColumnChunk,
    longest_value,
    read_row_groups,
)
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.content_entries import PROFILES, stats_field_id

_FIELD_ID = b"PARQUET:field_id"
_CONTENT_STATS = frozenset(profile.paths["content_stats"][0] for profile in PROFILES)
_MAX_DEPTH = 10
_ROWS_AT_ONCE = 65_536
_FEW_ROWS = 1_000
_DECODING = 4
"""The memory that pyarrow uses while it decodes a batch, as a multiple of the batch's size."""
_VALUE_BYTES = 16
"""The most memory of a fixed-width value, or of the reference to a longer value."""


def damage_error(location: str, why: str) -> InvalidMetadataError:
    """Return the error for a Parquet manifest that breaks its format."""
    return InvalidMetadataError(f"{location}: damaged Parquet manifest: {why}")


class ParquetManifest:
    """A manifest file in Parquet; raises `InvalidMetadataError` for a damaged file."""

    def __init__(self, data: bytes, location: str) -> None:
        self.location = location
        self.size = len(data)
        self._data = data
        try:
            self._footer = footer = pq.read_metadata(pa.BufferReader(self._data))
            self._stored_schema = footer.schema
            self._schema = footer.schema.to_arrow_schema()
            # what Arrow itself puts there describes the columns, not the entries
            self._key_values: Mapping[bytes, bytes] = {
                k: v for k, v in (footer.metadata or {}).items() if k != b"ARROW:schema"
            }
            # the proposed rules of version 4 omit the key, and no earlier version has Parquet
            # manifests
            self.metadata: Mapping[str, str] = {
                "format-version": "4",
                **{k.decode(): v.decode() for k, v in self._key_values.items()},
            }
        except (pa.ArrowException, OSError, ValueError) as e:
            raise damage_error(location, str(e)) from e
        self.record_count: int = footer.num_rows
        self._rows_at_once = self._rows_within_bounds()

    null_field_ids: frozenset[int] = frozenset()
    """Always empty: a Parquet schema omits fields whose type has no values."""

    def damage_error(self, why: str) -> Exception:
        """Return the error for a manifest that breaks the rules of its format."""
        return damage_error(self.location, why)

    def written_types(self) -> dict[int, types.Type]:
        """Return the types of the fields in the file, by field id."""
        return dict(_written_types(self._schema))

    def raw_entries(
        self, decoder: object = "auto", *, stats_of: Collection[int] | None = None
    ) -> pa.Table:
        """Return the rows as a table of columns named `_<field id>`, at all depths.

        `decoder` is ignored: there is only one for Parquet. Content statistics of columns that are
        not in `stats_of` are left out; None requests all.
        """
        columns = None if stats_of is None else list(self._columns(stats_of))
        batches = list(self._batches(columns, self._rename_columns))
        if batches:
            return pa.Table.from_batches(batches)
        empty = pa.RecordBatch.from_pylist([], self._schema)
        return pa.Table.from_batches([self._rename_columns(empty)])

    def with_other_entries(self, change: Callable[[pa.Table], pa.Table]) -> bytes | None:
        """Return a file with the same schema and key-value metadata but other rows.

        `change` gets the rows with the columns of the file, and returns the other rows. The result
        is None if both are equal. Raises `UnsupportedFeatureError` if pyarrow cannot write the
        schema again.
        """
        rows = pa.Table.from_batches(self._batches(None, lambda batch: batch), self._schema)
        others = change(rows)
        if others.equals(rows):
            return None
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(
            sink,
            self._schema,
            compression="zstd",
            use_dictionary=False,
            write_statistics=False,
            store_schema=False,
            store_decimal_as_integer=True,
        ) as writer:
            writer.write_table(others)
            writer.add_key_value_metadata(self._key_values)
        data: bytes = sink.getvalue().to_pybytes()
        written_schema = pq.read_metadata(pa.BufferReader(data)).schema
        is_same = written_schema.to_arrow_schema().equals(self._schema, check_metadata=True)
        if not is_same or not written_schema.equals(self._stored_schema):
            raise UnsupportedFeatureError(
                f"{self.location}: its columns cannot be written again as they are; use the "
                "engine that wrote the file"
            )
        return data

    def _batches(
        self, columns: list[str] | None, form: Callable[[pa.RecordBatch], pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the form that `form` gives a batch; refuse files of too much memory."""
        room = memory_limit(self.size) // 3
        try:
            file = pq.ParquetFile(pa.BufferReader(self._data), metadata=self._footer)
            # to hand columns to threads takes longer than to decode a few rows
            batches = file.iter_batches(
                self._rows_at_once, columns=columns, use_threads=self.record_count > _FEW_ROWS
            )
            for batch in batches:
                room -= batch.nbytes
                if room < 0:
                    raise too_large(self.location, self.size)
                # refuse strings that are not valid UTF-8
                batch.validate(full=True)
                yield form(batch)
        except (pa.ArrowException, OSError, ValueError) as e:
            raise damage_error(self.location, str(e)) from e

    def _columns(self, stats_of: Collection[int]) -> Iterator[str]:
        """Yield the names of the columns to decode, in pyarrow's form."""
        ids = {stats_field_id(i) for i in stats_of}
        for field in self._schema:
            if field_id_of(field) in _CONTENT_STATS and pa.types.is_struct(field.type):
                yield from (f"{field.name}.{c.name}" for c in field.type if field_id_of(c) in ids)
            else:
                yield field.name

    def _rows_within_bounds(self) -> int:
        """Return how many rows to decode at once without exceeding the memory limit."""
        room = memory_limit(self.size) // 3
        size = 0
        per_row = 1.0
        try:
            # with pyarrow, some damaged footers would end the process
            groups = read_row_groups(memoryview(self._data))
        except (ValueError, IndexError) as e:
            raise damage_error(self.location, f"its footer: {e}") from e
        for group in groups:
            worst = group.byte_size
            size += worst
            for column in group.columns:
                worst += column.value_count * (_VALUE_BYTES + self._longest_value(column, room))
            per_row = max(per_row, worst / max(1, group.row_count))
        if size > room:
            raise too_large(self.location, self.size)
        return max(1, min(_ROWS_AT_ONCE, int(room / _DECODING / per_row)))

    def _longest_value(self, column: ColumnChunk, most: int) -> int:
        if not column.is_text or column.dictionary is None:
            # _VALUE_BYTES covers fixed widths, and the size of the row group covers plain values
            return 0
        try:
            return longest_value(memoryview(self._data), column.dictionary, column.codec, most)
        except (pa.ArrowException, OSError, ValueError, IndexError) as e:
            raise damage_error(self.location, f"the dictionary of a column: {e}") from e

    def _rename_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = self._by_id(zip(batch.schema, batch.columns, strict=True), 0)
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

    def _by_id(
        self, columns: Iterable[tuple[pa.Field, pa.Array]], depth: int
    ) -> dict[str, pa.Array]:
        if depth > _MAX_DEPTH:
            raise damage_error(self.location, f"its schema nests deeper than {_MAX_DEPTH}")
        out: dict[str, pa.Array] = {}
        for field, array in columns:
            field_id = field_id_of(field)
            if field_id is None:
                continue
            name = f"_{field_id}"
            if name in out:
                raise damage_error(self.location, f"field id {field_id} is twice in its schema")
            out[name] = self._plain(array, field.type, depth)
        return out

    def _plain(self, array: pa.Array, type_: pa.DataType, depth: int) -> pa.Array:
        """Return an array without names and extension types; maps become lists of pairs."""
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if pa.types.is_struct(array.type):
            children = self._by_id(zip(type_, array.flatten(), strict=True), depth + 1)
            mask = array.is_null() if array.null_count else None
            if not children:
                return pa.array(
                    [None if null else {} for null in array.is_null().to_pylist()], pa.struct([])
                )
            return pa.StructArray.from_arrays(list(children.values()), list(children), mask=mask)
        if pa.types.is_map(array.type):
            pairs = pa.StructArray.from_arrays(
                [
                    self._plain(array.keys, array.type.key_type, depth + 1),
                    self._plain(array.items, array.type.item_type, depth + 1),
                ],
                ["key", "value"],
            )
            mask = array.is_null() if array.null_count else None
            return pa.ListArray.from_arrays(array.offsets, pairs, mask=mask)
        return array


def field_id_of(field: pa.Field) -> int | None:
    """Return the field id of a column of a Parquet file, or None if it has none."""
    text = (field.metadata or {}).get(_FIELD_ID)
    return None if text is None or int(text) < 0 else int(text)


def _written_types(fields: Iterable[pa.Field]) -> Iterable[tuple[int, types.Type]]:
    for field in fields:
        field_id = field_id_of(field)
        if pa.types.is_struct(field.type):
            yield from _written_types(field.type)
        elif field_id is not None and (type_ := _primitive_type(field.type)) is not None:
            yield field_id, type_


def _primitive_type(type_: pa.DataType) -> types.Type | None:
    if isinstance(type_, pa.BaseExtensionType):
        return types.UUIDType() if type_.storage_type == pa.binary(16) else None
    if pa.types.is_decimal(type_):
        return types.DecimalType(precision=type_.precision, scale=type_.scale)
    if pa.types.is_fixed_size_binary(type_):
        return types.FixedType(length=type_.byte_width)
    if pa.types.is_timestamp(type_):
        nanoseconds, zone = type_.unit == "ns", type_.tz is not None
        return _TIMESTAMPS[nanoseconds, zone]
    return _PRIMITIVES.get(type_)


_PRIMITIVES: Mapping[pa.DataType, types.Type] = {
    pa.bool_(): types.BooleanType(),
    pa.int32(): types.IntegerType(),
    pa.int64(): types.LongType(),
    pa.float32(): types.FloatType(),
    pa.float64(): types.DoubleType(),
    pa.date32(): types.DateType(),
    pa.time64("us"): types.TimeType(),
    pa.string(): types.StringType(),
    pa.binary(): types.BinaryType(),
}
_TIMESTAMPS: Mapping[tuple[bool, bool], types.Type] = {
    (False, False): types.TimestampType(),
    (False, True): types.TimestamptzType(),
    (True, False): types.TimestampNsType(),
    (True, True): types.TimestamptzNsType(),
}
