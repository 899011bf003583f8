"""Sorts the live entries of many manifests by partition.

Specification, "Manifests" and "Scan Planning": a scan skips manifests by their partition ranges, so
narrow ranges mean fewer manifests to read. A million entries are too many for Python objects, so
they are stored as Arrow data in a temporary file. Only their sort keys, and the entries of one new
manifest, are in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_reader import entries_of
from iceberg_pyspark.planning.partition_codes import PartitionCodes
from iceberg_pyspark.spec.entry_columns import ENTRY_COLUMNS
from iceberg_pyspark.spec.manifests import EntryStatus, ManifestEntry, ManifestFile
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.threaded_map import threaded_map
from iceberg_pyspark.table.progress import Progress, no_progress, with_progress

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_BATCH_BYTES = 16 * 1024 * 1024
"""Small manifests are stored together, so that a new manifest comes from few batches."""


class ClusteredEntries:
    """The live entries of manifests of one spec, in the order of some partition fields.

    Use this context manager's entries before leaving it. Nulls come first; entries with equal
    values keep their order.
    """

    def __init__(
        self,
        io: FileIO,
        manifests: Sequence[ManifestFile],
        partition_type: StructType,
        sort_field_ids: Sequence[int],
        progress: Progress = no_progress,
    ) -> None:
        """Read the manifests and sort their entries by the named partition fields, or by all."""
        self._progress = progress
        self._folder = tempfile.TemporaryDirectory(prefix="iceberg-entries-")
        try:
            self._read(io, manifests, partition_type, sort_field_ids)
        except BaseException:
            self._folder.cleanup()
            raise

    def __enter__(self) -> ClusteredEntries:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def __len__(self) -> int:
        return len(self._order)

    def part(self, start: int, end: int) -> Collection[ManifestEntry]:
        """Return the entries from `start` to `end` in the new order; each iteration reads them."""
        return _Part(self, start, end) if start < end else ()

    @property
    def is_clustered(self) -> bool:
        """Whether the manifests already have the order: the values of no two overlap."""
        counts = self._counts[self._counts > 0]
        if not len(counts):
            return True
        starts = np.cumsum(counts) - counts
        least = np.minimum.reduceat(self._ranks, starts)
        greatest = np.maximum.reduceat(self._ranks, starts)
        order = np.lexsort((greatest, least))
        return bool((greatest[order][:-1] <= least[order][1:]).all())

    def _read(
        self,
        io: FileIO,
        manifests: Sequence[ManifestFile],
        partition_type: StructType,
        sort_field_ids: Sequence[int],
    ) -> None:
        self._path = str(Path(self._folder.name) / "entries.arrow")
        self._places: list[tuple[int, int]] = []
        keys: list[pa.Table] = []
        counts: list[int] = []
        waiting: list[pa.Table] = []
        waiting_bytes = 0
        firsts = [0]
        names = [str(i) for i in sort_field_ids] or [str(f.field_id) for f in partition_type.fields]
        with pa.OSFile(self._path, "wb") as file:

            def write_waiting() -> None:
                start = file.tell()
                table = _concat_tables(waiting)
                with pa.ipc.new_stream(file, table.schema) as writer:
                    writer.write_table(table)
                self._places.append((start, file.tell() - start))
                firsts.append(firsts[-1] + table.num_rows)
                waiting.clear()

            read = threaded_map(
                lambda m: read_entries(io, m, partition_type, metrics="all"), manifests
            )
            for table in with_progress(self._progress, "manifests read", read, len(manifests)):
                counts.append(table.num_rows)
                if not table.num_rows:
                    continue
                partition = table["partition"].combine_chunks()
                keys.append(pa.table({n: partition.field(n) for n in names}))
                waiting.append(_as_existing(table))
                waiting_bytes += table.nbytes
                if waiting_bytes >= _BATCH_BYTES:
                    write_waiting()
                    waiting_bytes = 0
            if waiting:
                write_waiting()
        self._firsts = np.array(firsts, np.int64)
        self._counts = np.array(counts, np.int64)
        self._order, self._ranks = _sort_entries(keys, int(self._counts.sum()))

    def table(self, start: int, end: int) -> pa.Table:
        """Return the entries from `start` to `end` in the new order, as columns."""
        rows = self._order[start:end]
        in_file = np.argsort(rows, kind="stable")
        ascending = rows[in_file]
        batches = np.searchsorted(self._firsts, ascending, side="right") - 1
        parts = []
        with pa.memory_map(self._path) as file:
            for batch in np.unique(batches).tolist():
                place, length = self._places[batch]
                file.seek(place)
                batch_table = pa.ipc.open_stream(file.read_buffer(length)).read_all()
                indices = ascending[batches == batch] - self._firsts[batch]
                parts.append(batch_table.take(pa.array(indices)))
        back = np.empty(len(rows), np.int64)
        back[in_file] = np.arange(len(rows))
        return _concat_tables(parts).take(pa.array(back))


@dataclass(frozen=True)
class _Part(Collection[ManifestEntry]):
    entries: ClusteredEntries
    start: int
    end: int

    def __iter__(self) -> Iterator[ManifestEntry]:
        return entries_of(self.entries.table(self.start, self.end))

    def __len__(self) -> int:
        return self.end - self.start

    def __contains__(self, entry: object) -> bool:
        return any(e == entry for e in self)


def _as_existing(table: pa.Table) -> pa.Table:
    status = pa.repeat(pa.scalar(int(EntryStatus.EXISTING), pa.int32()), table.num_rows)
    return table.set_column(ENTRY_COLUMNS.index("status"), "status", status)


def _concat_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables to one chunk; a field of unknown type may be all null in one table."""
    try:
        partitions = _table_of([t["partition"].combine_chunks() for t in tables])
        others = pa.concat_tables([t.drop_columns("partition") for t in tables]).combine_chunks()
    except pa.ArrowException as e:
        raise InvalidRequestError(
            f"the manifests store the values of one partition field as different types ({e}), so "
            "the right type is unknown; manifests of that spec cannot be rewritten"
        ) from e
    count = others.num_rows
    partition = (
        pa.StructArray.from_arrays(
            [c.combine_chunks() for c in partitions.columns], partitions.column_names
        )
        if partitions.num_columns
        else pa.array([{}] * count, pa.struct([]))
    )
    at = ENTRY_COLUMNS.index("partition")
    return others.add_column(at, "partition", partition)


def _table_of(partitions: Sequence[pa.StructArray]) -> pa.Table:
    tables = [pa.table(p.flatten(), names=[f.name for f in p.type]) for p in partitions]
    return pa.concat_tables(tables, promote_options="default")


def _sort_entries(keys: Sequence[pa.Table], count: int) -> tuple[Numbers, Numbers]:
    """Return the sorted entry numbers, and each entry's rank, which is equal for equal values."""
    if not keys or not keys[0].num_columns:
        return np.arange(count), np.zeros(count, np.int64)
    table = pa.concat_tables(keys, promote_options="default").combine_chunks()
    columns = [(str(i), c) for i, c in enumerate(table.columns) if not pa.types.is_null(c.type)]
    if not columns:
        return np.arange(count), np.zeros(count, np.int64)
    values = dict(columns)
    # a null sorts before every value
    validity = {f"{name}?": column.is_valid() for name, column in columns}
    sort_keys = [(n, "ascending") for name in values for n in (f"{name}?", name)]
    order = np.asarray(pc.sort_indices(pa.table(values | validity), sort_keys=sort_keys), np.int64)
    arrays = [column.combine_chunks() for column in values.values()]
    codes = PartitionCodes(pa.StructArray.from_arrays(arrays, list(values))).codes[order]
    ranks = np.empty(count, np.int64)
    ranks[order] = np.concatenate(([0], np.cumsum(codes[1:] != codes[:-1])))
    return order, ranks
