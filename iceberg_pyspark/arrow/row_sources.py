"""Turns the rows that a program has into record batches, and keeps a stream to read it again."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Annotated, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrays import batch_bytes
from iceberg_pyspark.arrow.arrow_schemas import takable_type
from iceberg_pyspark.errors import InvalidRequestError


@runtime_checkable
class ArrowStream(Protocol):
    """Rows that a library gives by Arrow's C stream: frames of Polars and pandas, scans."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the stream."""


@runtime_checkable
class Scannable(Protocol):
    """A dataset of pyarrow."""

    def scanner(self) -> Any:
        """Return a scanner of all rows."""


Rows: TypeAlias = Annotated[
    pa.Table
    | pa.RecordBatch
    | pa.RecordBatchReader
    | ArrowStream
    | Scannable
    | Iterable[pa.RecordBatch],
    "an Arrow table, batch or reader, a pandas or Polars frame, a pyarrow dataset, "
    "or an iterable of Arrow batches",
]

_MEMORY_BYTES = 256 * 1024 * 1024
"""The rows of a stream that are kept in memory; further rows go to a temporary file."""

RowNumbers: TypeAlias = npt.NDArray[np.int64]


def batches_of(rows: Rows) -> tuple[pa.Schema | None, Iterable[pa.RecordBatch]]:
    """Return the schema (None: an iterable without batches) and the batches, a list if they are in
    memory.
    """
    if isinstance(rows, pa.RecordBatch):
        return rows.schema, [rows]
    library = type(rows).__module__.partition(".")[0]
    if library == "pyspark":
        # one of Spark Connect seems to have every method
        raise InvalidRequestError(
            "the rows are a DataFrame of Spark: write it by df.write.format('iceberg-py')"
            ".mode('append').save(...), or give its rows as df.toArrow()"
        )
    if library == "pandas":
        # the stream of a frame has its index as a column
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    if isinstance(rows, pa.Table):
        return rows.schema, rows.to_batches()
    if isinstance(rows, pa.RecordBatchReader):
        return rows.schema, rows
    if isinstance(rows, Scannable):
        reader = rows.scanner().to_reader()
        return reader.schema, reader
    if isinstance(rows, ArrowStream):
        reader = pa.RecordBatchReader.from_stream(rows)
        return reader.schema, reader
    batches = map(_batch, rows)
    first = next(batches, None)
    return (None, []) if first is None else (first.schema, chain([first], batches))


def _batch(item: object) -> pa.RecordBatch:
    if isinstance(item, pa.RecordBatch):
        return item
    raise InvalidRequestError(
        f"the rows have an element of type {type(item).__name__}; give Arrow batches"
    )


class KeptRows:
    """Rows that can be read several times, in order or by number.

    The rows of a stream beyond some memory are kept in a temporary file, which is mapped to memory
    and has no name.
    """

    def __init__(self, rows: Rows, default_schema: pa.Schema) -> None:
        schema, batches = batches_of(rows)
        self._given_schema = default_schema if schema is None else schema
        self.schema = pa.schema([f.with_type(takable_type(f.type)) for f in self._given_schema])
        self._batches: list[pa.RecordBatch] = []
        is_in_memory = isinstance(rows, pa.Table | pa.RecordBatch)
        self._keep(batches, None if is_in_memory else _MEMORY_BYTES)
        self._starts = np.cumsum([0, *(b.num_rows for b in self._batches)])
        self.num_rows = int(self._starts[-1])

    def batches(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the number of the first row of each batch, and the batch."""
        yield from zip(self._starts.tolist(), self._batches, strict=False)

    def take(self, numbers: RowNumbers) -> pa.RecordBatch:
        """Return the rows with these numbers, in this order."""
        if not len(numbers):
            return pa.RecordBatch.from_pylist([], self.schema)
        places = np.searchsorted(self._starts, numbers, side="right") - 1
        if places[0] == places[-1] and (places == places[0]).all():
            place = int(places[0])
            return self._batches[place].take(pa.array(numbers - self._starts[place]))
        order = np.argsort(places, kind="stable")
        ends = np.flatnonzero(np.diff(places[order], append=-1)) + 1
        parts, start = [], 0
        for end in ends.tolist():
            of_batch = order[start:end]
            place = int(places[of_batch[0]])
            in_batch = pa.array(numbers[of_batch] - self._starts[place])
            parts.append(self._batches[place].take(in_batch))
            start = end
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_batches(parts).take(pa.array(back))

    def _keep(self, batches: Iterable[pa.RecordBatch], memory_bytes: int | None) -> None:
        kept = 0
        remaining = iter(batches)
        for given in remaining:
            batch = self._converted(given)
            if batch.num_rows:
                self._batches.append(batch)
                kept += batch_bytes(batch)
            if memory_bytes is not None and kept >= memory_bytes:
                self._batches += self._in_a_file(remaining)

    def _in_a_file(self, batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
        with tempfile.NamedTemporaryFile(prefix="iceberg-rows-") as file:
            with pa.ipc.new_file(file, self.schema) as writer:
                for batch in batches:
                    writer.write_batch(self._converted(batch))
            file.flush()
            # the mapping outlives the name
            reader = pa.ipc.open_file(pa.memory_map(file.name))
            read = (reader.get_batch(i) for i in range(reader.num_record_batches))
            return [batch for batch in read if batch.num_rows]

    def _converted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not batch.schema.equals(self._given_schema):
            raise InvalidRequestError(
                "the batches of the rows differ: the first has "
                f"{_describe(self._given_schema)}, another {_describe(batch.schema)}; cast them to "
                "one schema"
            )
        columns = [
            pc.run_end_decode(c) if pa.types.is_run_end_encoded(c.type) else c
            for c in batch.columns
        ]
        columns = [
            c if c.type == f.type else c.cast(f.type)
            for c, f in zip(columns, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _describe(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in schema)
