"""The decoded entries of manifests, which stay in memory for later plans and commits.

Large tables of entries are compressed, in blocks of some thousand entries: a filter unpacks only
the columns that it needs, of the blocks that it cannot rule out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, compress
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from iceberg_pyspark.formats.encoding.decoded_files import DecodedCache
from iceberg_pyspark.formats.manifest_files.open_manifest import Decoder
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


class EntriesKey(NamedTuple):
    """What decoded entries depend on; the checksum of the file makes reused names safe.

    Without a partition type, the partitions may have any.
    """

    checksum: int
    manifest: ManifestFile
    drop_deleted: bool
    decoder: Decoder
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


class KnownEntries:
    """The entries of a manifest in order, in blocks, and small values that were computed of them.

    `dropped` are the positions in the manifest of the entries that were left out.
    """

    def __init__(
        self,
        blocks: Iterable[pa.Table | pa.Buffer],
        counts: Sequence[int],
        schema: pa.Schema,
        dropped: Numbers,
    ) -> None:
        """Take the blocks, each a table or packed, and the numbers of their entries."""
        self.key: EntriesKey | None = None
        self.dropped = dropped
        self._blocks = list(blocks)
        self._counts = counts
        self._schema = schema
        self._computed: dict[Hashable, Any] = {}

    @property
    def num_rows(self) -> int:
        """The number of entries."""
        return sum(self._counts)

    @cached_property
    def size(self) -> int:
        """The bytes of memory that the entries take."""
        sizes = (b.nbytes if isinstance(b, pa.Table) else b.size for b in self._blocks)
        return int(sum(sizes)) + self.dropped.nbytes

    @property
    def block_starts(self) -> Sequence[int]:
        """The position of the first entry of each block."""
        return list(accumulate(self._counts, initial=0))[:-1]

    def table(self, columns: Collection[str] | None = None, blocks: Mask | None = None) -> pa.Table:
        """Return the entries of the blocks in a mask, None for all.

        Columns that are not among `columns` may be missing.
        """
        chosen = self._blocks if blocks is None else list(compress(self._blocks, blocks))
        tables = [self._unpacked(block, columns) for block in chosen]
        if len(tables) == 1:
            return tables[0]
        return pa.concat_tables(tables) if tables else self._schema.empty_table()

    def computed(self, key: Hashable, compute: Callable[[], _T]) -> _T:
        """Return a value that is computed once for each key.

        Entries that were removed since, by `without`, may have been among those it was computed of.
        """
        if key not in self._computed:
            self._computed[key] = compute()
        value: _T = self._computed[key]
        return value

    def kept(self) -> KnownEntries:
        """Return the entries in the form that stays in memory."""
        if self.size <= _PLAIN_BYTES:
            return self
        blocks = (_packed(b) if isinstance(b, pa.Table) else b for b in self._blocks)
        kept = KnownEntries(blocks, self._counts, self._schema, self.dropped)
        kept.key = self.key
        kept._computed = self._computed
        return kept

    def without(self, removed: Mask, checksum: int) -> KnownEntries:
        """Return the entries of a manifest of these in which those of a mask are DELETED."""
        blocks = list(self._blocks)
        counts = list(self._counts)
        for i, start in enumerate(self.block_starts):
            stays = ~removed[start : start + counts[i]]
            if stays.all():
                continue
            block = self._unpacked(blocks[i]).filter(pa.array(stays))
            blocks[i] = block if isinstance(blocks[i], pa.Table) else _packed(block)
            counts[i] = block.num_rows
        left = KnownEntries(blocks, counts, self._schema, np.flatnonzero(removed))
        left.key = self.key and self.key._replace(checksum=checksum)
        left._computed = dict(self._computed)
        return left

    def _unpacked(
        self, block: pa.Table | pa.Buffer, columns: Collection[str] | None = None
    ) -> pa.Table:
        if isinstance(block, pa.Table):
            return block
        names = self._schema.names
        return _unpacked(
            block, [i for i, name in enumerate(names) if columns is None or name in columns]
        )


def in_blocks(table: pa.Table, dropped: Numbers) -> KnownEntries:
    """Return the entries of a table, as they were decoded; see `KnownEntries`."""
    starts = range(0, table.num_rows, BLOCK_ENTRIES)
    blocks = [table.slice(start, BLOCK_ENTRIES) for start in starts]
    return KnownEntries(blocks, [b.num_rows for b in blocks], table.schema, dropped)


def _packed(table: pa.Table) -> pa.Buffer:
    stream = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(stream, table.schema, options=options) as writer:
        # one batch, however the columns are cut
        writer.write_table(table.combine_chunks())
    return stream.getvalue()


def _unpacked(block: pa.Buffer, columns: Sequence[int]) -> pa.Table:
    options = pa.ipc.IpcReadOptions(included_fields=list(columns))
    return pa.ipc.open_stream(block, options=options).read_all()


_KNOWN: DecodedCache[KnownEntries] = DecodedCache(_CACHE_BYTES, lambda known: known.size)
_NEWEST: LruMap[Hashable, EntriesKey] = LruMap(_MOST_NEWEST)


def get_or_decode(io: FileIO, key: EntriesKey, decode: Callable[[], KnownEntries]) -> KnownEntries:
    """Return the known entries of a key, or of one that covers it; else decode and keep them."""
    known = find_known(io, key)
    if known is None:
        known = decode()
        keep(io, key, known)
    return known


def find_known(io: FileIO, key: EntriesKey) -> KnownEntries | None:
    """Return the known entries of a key, or of one that covers it, or None."""
    newest = _NEWEST.get(key.manifest_key)
    known = _KNOWN.get(io, key)
    if known is None and newest is not None and newest.covers(key):
        known = _KNOWN.get(io, newest)
    return known


def keep(io: FileIO, key: EntriesKey, entries: KnownEntries) -> None:
    """Keep entries for `get_or_decode`, also for keys that this one covers."""
    entries.key = key
    _KNOWN.put(io, key, entries.kept())
    _NEWEST.put(key.manifest_key, key)


def keep_written(
    io: FileIO, known: Mapping[str, KnownEntries], manifests: Iterable[ManifestFile]
) -> None:
    """Keep the entries of new manifests, by location, for the next plan.

    `manifests` have the numbers that the manifest list assigned.
    """
    for manifest in manifests:
        entries = known.get(manifest.manifest_path)
        if entries is not None and entries.key is not None:
            keep(io, entries.key._replace(manifest=manifest), entries)
