"""The decoded entries of manifests, which stay in memory for later plans and commits.

Large tables of entries are compressed, in blocks of some thousand entries: a filter unpacks only
the columns that it needs, of the blocks that it cannot rule out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from iceberg_pyspark.formats.encoding.decoded_files import DecodedCache
from iceberg_pyspark.spec.manifests import ManifestFile
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.lru_map import LruMap

BLOCK_ENTRIES = 8192
"""The number of entries of each block, except the last."""
_CACHE_BYTES = 80 * 1024 * 1024
_PLAIN_BYTES = 1024 * 1024
"""Decoded entries that take more memory are kept compressed, to about a tenth."""
_MOST_NEWEST = 10_000

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
_T = TypeVar("_T")


class KnownEntries:
    """The entries of a manifest in order, in blocks, and small values that were computed of them.

    `dropped` are the positions in the manifest of the entries that were left out.
    """

    def __init__(self, table: pa.Table, dropped: Numbers) -> None:
        self.dropped = dropped
        self.num_rows: int = table.num_rows
        self._content: pa.Table | pa.Buffer = table
        self._computed: dict[Hashable, Any] = {}

    @property
    def size(self) -> int:
        """The bytes of memory that the entries take."""
        kept = self._content
        return int(kept.nbytes if isinstance(kept, pa.Table) else kept.size) + self.dropped.nbytes

    @property
    def block_starts(self) -> range:
        """The position of the first entry of each block."""
        return range(0, self.num_rows, BLOCK_ENTRIES)

    def table(self, columns: Collection[str] | None = None, blocks: Mask | None = None) -> pa.Table:
        """Return the entries of the blocks in a mask, None for all; likewise the columns."""
        starts = list(self.block_starts)
        if blocks is not None:
            starts = [starts[i] for i in np.flatnonzero(blocks)]
        if isinstance(self._content, pa.Buffer):
            return _unpacked(self._content, columns, [i // BLOCK_ENTRIES for i in starts])
        table = self._content
        if columns is not None:
            table = table.select([name for name in table.column_names if name in columns])
        if len(starts) == len(self.block_starts):
            return table
        parts = (table.slice(start, BLOCK_ENTRIES) for start in starts)
        return pa.concat_tables([table.slice(0, 0), *parts])

    def computed(self, key: Hashable, compute: Callable[[], _T]) -> _T:
        """Return a value that is computed once for each key."""
        if key not in self._computed:
            self._computed[key] = compute()
        value: _T = self._computed[key]
        return value

    def kept(self) -> KnownEntries:
        """Return the entries in the form that stays in memory."""
        kept = KnownEntries(self._content, self.dropped)
        kept._content = _packed(self._content)
        kept._computed = self._computed
        return kept


def _packed(table: pa.Table) -> pa.Table | pa.Buffer:
    if table.nbytes <= _PLAIN_BYTES:
        return table
    stream = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(stream, table.schema, options=options) as writer:
        for start in range(0, table.num_rows, BLOCK_ENTRIES):
            # one batch each, however the columns are cut
            writer.write_table(table.slice(start, BLOCK_ENTRIES).combine_chunks())
    return stream.getvalue()


def _unpacked(data: pa.Buffer, columns: Collection[str] | None, blocks: Sequence[int]) -> pa.Table:
    options = pa.ipc.IpcReadOptions()
    if columns is not None:
        names = pa.ipc.open_file(data).schema.names
        options.included_fields = [i for i, name in enumerate(names) if name in columns]
    file = pa.ipc.open_file(data, options=options)
    return pa.Table.from_batches([file.get_batch(i) for i in blocks], file.schema)


class EntriesKey(NamedTuple):
    """What decoded entries depend on; the checksum of the file makes reused names safe.

    Without a partition type, the partitions may have any.
    """

    checksum: int
    manifest: ManifestFile
    drop_deleted: bool
    decoder: str
    partition_type: StructType | None
    metrics: frozenset[int] | Literal["all"]

    @property
    def manifest_key(self) -> Hashable:
        """What the entries depend on apart from their columns."""
        return self[:4]

    def covers(self, wanted: EntriesKey) -> bool:
        """Return whether entries of this key have the columns of another with its values."""
        has_metrics = not wanted.metrics or (
            self.metrics != "all" and wanted.metrics != "all" and wanted.metrics <= self.metrics
        )
        return has_metrics and wanted.partition_type in (None, self.partition_type)


_KNOWN: DecodedCache[KnownEntries] = DecodedCache(_CACHE_BYTES, lambda known: known.size)
_NEWEST: LruMap[Hashable, EntriesKey] = LruMap(_MOST_NEWEST)


def get_or_decode(io: FileIO, key: EntriesKey, decode: Callable[[], KnownEntries]) -> KnownEntries:
    """Return the known entries of a key, or of one that covers it; else decode and keep them."""
    newest = _NEWEST.get(key.manifest_key)
    known = _KNOWN.get(io, key)
    if known is None and newest is not None and newest.covers(key):
        known = _KNOWN.get(io, newest)
    if known is None:
        known = decode()
        _KNOWN.put(io, key, known.kept())
        _NEWEST.put(key.manifest_key, key)
    return known
