"""Rewrites manifests: fewer manifests, each with the files of few partitions.

Specification, "Manifests" and "Scan Planning": a scan skips manifests by their partition ranges, so
narrow ranges mean fewer manifests to read. The number of new manifests is computed from the size of
an entry in a manifest, which is measured on some entries, so that a second run computes the same
number and does nothing.

Entries are sorted by partition. A million entries are too many for Python objects, so they are
stored as Arrow data in a temporary file. Only their sort keys, and the entries of one new manifest,
are in memory.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.changes.manifest_changes import NewManifest, RewriteManifests
from iceberg_pyspark.errors import ConcurrentChangeError, InvalidRequestError
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_lists import manifests_to_build_on
from iceberg_pyspark.formats.manifest_reader import entries_of
from iceberg_pyspark.formats.manifest_writer import write_manifest
from iceberg_pyspark.planning.partition_codes import PartitionCodes
from iceberg_pyspark.spec.entry_columns import ENTRY_COLUMNS
from iceberg_pyspark.spec.manifests import (
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import (
    COMMIT_NUM_RETRIES,
    MANIFEST_COMPRESSION,
    MANIFEST_TARGET_SIZE,
)
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.storage.threaded_map import threaded_map
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.commit_snapshot import ROOT_MANIFESTS_VERSION
from iceberg_pyspark.table.commits.maintained_table import MaintainedTable
from iceberg_pyspark.table.commits.new_data import partition_spec
from iceberg_pyspark.table.commits.partition_types import (
    ambiguous_types,
    common_partition_type,
    partition_type_of,
)
from iceberg_pyspark.table.progress import Progress, no_progress, with_progress

_MEASURED_ENTRIES = 4096
_COMMITTING_PHASE = "new manifests committed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenManifests:
    """The number of manifests that a rewrite replaced, and the number of new manifests."""

    rewritten_manifests_count: int = 0
    added_manifests_count: int = 0


class ManifestRewrite:
    """One rewrite of the manifests of one partition spec."""

    def __init__(
        self, table: MaintainedTable, *, spec_id: int | None, sort_by: Sequence[str]
    ) -> None:
        self._table = table
        self._spec_id = spec_id
        self._sort_by = sort_by

    def run(self, *, dry_run: bool = False) -> tuple[LoadedTable, RewrittenManifests]:
        """Rewrite manifests; return the committed table and the counts. `dry_run` only counts."""
        tries = 0
        while True:
            newest = self._table.newest()
            try:
                return self._run_once(newest, dry_run)
            except ConcurrentChangeError:
                # Every other commit replaces the root manifest that is rewritten here, so try
                # again.
                has_roots = newest.metadata.format_version >= ROOT_MANIFESTS_VERSION
                if not has_roots or tries >= COMMIT_NUM_RETRIES.of(newest.metadata.properties):
                    raise
            tries += 1

    def _run_once(
        self, newest: LoadedTable, dry_run: bool
    ) -> tuple[LoadedTable, RewrittenManifests]:
        with ExitStack() as batches_on_disk:
            replaced_manifests: list[ManifestFile] = []
            new: list[NewManifest] = []
            for group, manifests in self._groups(newest.metadata, batches_on_disk):
                replaced_manifests += group
                new += manifests
            result = RewrittenManifests(
                rewritten_manifests_count=len(replaced_manifests), added_manifests_count=len(new)
            )
            if not replaced_manifests or dry_run:
                return newest, result
            t = self._table
            t.progress(_COMMITTING_PHASE, 0, len(new))
            action = RewriteManifests(replaced_manifests=tuple(replaced_manifests), new=tuple(new))
            new_table = commit_action(t.catalog, newest, t.io, action, clock=t.clock)
            t.progress(_COMMITTING_PHASE, len(new), len(new))
            return new_table, result

    def _groups(
        self, metadata: TableMetadata, batches_on_disk: ExitStack
    ) -> Iterator[tuple[list[ManifestFile], list[NewManifest]]]:
        """Yield manifests to replace and their replacements; delete manifests come last."""
        spec = partition_spec(self._table.name, metadata, self._spec_id)
        sort_field_ids = self._sort_fields(spec)
        snapshot = metadata.current_snapshot
        present = [] if snapshot is None else manifests_to_build_on(self._table.io, snapshot)
        target = MANIFEST_TARGET_SIZE.of(metadata.properties)
        has_content_entries = metadata.format_version >= ROOT_MANIFESTS_VERSION
        for content in ManifestContent:
            group = [
                m
                for m in present
                if m.content is content
                and m.partition_spec_id == spec.spec_id
                and not (has_content_entries and self._has_files_of_positions(m))
            ]
            if not group or (len(group) == 1 and group[0].manifest_length <= target):
                continue
            for manifest in group:
                columns = metadata.current_schema.field_by_id
                type_ = partition_type_of(metadata, manifest, snapshot, columns)
            entries = batches_on_disk.enter_context(
                ClusteredEntries(
                    self._table.io,
                    group,
                    type_,
                    sort_field_ids,
                    self._table.progress,
                )
            )
            count = self._manifest_count(entries, group, spec, metadata)
            if len(group) == count and entries.is_clustered:
                continue
            ends = [len(entries) * (i + 1) // count for i in range(count)]
            yield (
                group,
                [
                    NewManifest(
                        key=("clustered", content, spec.spec_id, i),
                        content=content,
                        spec_id=spec.spec_id,
                        entries=entries.part(start, end),
                        is_existing=True,
                    )
                    for i, (start, end) in enumerate(zip([0, *ends], ends, strict=False))
                ],
            )

    def _has_files_of_positions(self, manifest: ManifestFile) -> bool:
        """Return whether a manifest has position delete files, which have no content entries."""
        if manifest.content is ManifestContent.DATA or manifest.is_root:
            return False
        entries = read_entries(self._table.io, manifest, StructType(()))
        is_of_positions = pc.equal(entries["content"], int(FileContent.POSITION_DELETES))
        is_file = pc.not_equal(entries["file_format"], "puffin")
        return bool(pc.any(pc.and_(is_of_positions, is_file)).as_py())

    def _sort_fields(self, spec: PartitionSpec) -> list[int]:
        ids = {f.name: f.field_id for f in spec.fields}
        unknown = [name for name in self._sort_by if name not in ids]
        if unknown:
            raise InvalidRequestError(
                f"table {self._table.name}: manifests cannot be sorted by "
                f"{', '.join(unknown)}; the partition fields of spec {spec.spec_id} are "
                f"{', '.join(ids) or 'none'}"
            )
        return [ids[name] for name in self._sort_by]

    def _manifest_count(
        self,
        entries: ClusteredEntries,
        group: Sequence[ManifestFile],
        spec: PartitionSpec,
        metadata: TableMetadata,
    ) -> int:
        """Return the number of manifests that the entries fill."""
        sample_count = min(len(entries), _MEASURED_ENTRIES)
        if not sample_count:
            return 0
        type_ = common_partition_type(self._table.io, group, metadata, spec.spec_id)
        if type_ is None:
            raise ambiguous_types(self._table.name, spec.spec_id)

        def size_of(count: int) -> int:
            return write_manifest(
                MemoryFileIO(),
                "mem://measured",
                entries.part(0, count),
                spec=spec,
                schema=metadata.current_schema,
                partition_type=type_,
                format_version=metadata.format_version,
                content=group[0].content,
                snapshot_id=0,
                codec=MANIFEST_COMPRESSION.of(metadata.properties),
            ).manifest_length

        per_entry = (size_of(sample_count) - size_of(0)) / sample_count
        target = MANIFEST_TARGET_SIZE.of(metadata.properties)
        return min(math.ceil(len(entries) * per_entry / target), len(entries))


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
                lambda m: read_entries(io, m, partition_type, metrics="all"),
                manifests,
                lambda m: m.manifest_path,
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
