"""Determines a table's health in one pass over the manifests of its current snapshot.

Manifests are read one after the other as columns, and only a few integers are kept per data file.
The plan of a scan tells which deletes apply to which file (specification, "Scan Planning"). Only
the rows tell which rows a delete file deletes, so the number of files that a rewrite writes is an
upper bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.expressions.predicates import AlwaysTrue
from iceberg_pyspark.formats.manifest_columns import entries_of_manifests, read_entries
from iceberg_pyspark.planning.scan_plan import PlannedFiles, ScanPlan
from iceberg_pyspark.planning.scan_tasks import DeleteFileRef
from iceberg_pyspark.spec.manifests import FileContent, ManifestContent, ManifestFile
from iceberg_pyspark.spec.partitioning import source_type
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import human_value
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.threaded_map import threaded_map
from iceberg_pyspark.table.commits.partition_types import partition_type_of
from iceberg_pyspark.table.health.figures import (
    Bucket,
    DeleteFileFigures,
    Deletes,
    FileSizes,
    PartitionHealth,
    Partitions,
)
from iceberg_pyspark.table.maintenance.rewrites.file_groups import RewriteOptions, has_many_deletes
from iceberg_pyspark.table.maintenance.rewrites.rewrite_count import (
    Counter64,
    Numbers,
    PartitionNumbers,
    RewriteCount,
    partition_values,
)
from iceberg_pyspark.table.maintenance.rewrites.rewrite_options import DeleteFileOptions

_KIB = 1024
_SIZE_EDGES = tuple(64 * _KIB * 4**i for i in range(9))
"""The edges between the buckets of file sizes: 64 KiB, 256 KiB, ... 4 GiB."""
_DELETE_EDGES = (1, 2, 5, 10, 100)


class Examination:
    """The figures from the manifests of a snapshot; the constructor reads the manifests.

    `rewrite` counts the files that `rewrite_data_files` would take, `delete_files` the delete
    files.
    """

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        manifests: Sequence[ManifestFile],
        options: RewriteOptions,
        snapshot: Snapshot | None,
    ) -> None:
        """Read the manifests of a snapshot, and compute the figures."""
        self._io = io
        self._metadata = metadata
        self._manifests = manifests
        self._options = options
        self._snapshot = snapshot
        self._numbers = PartitionNumbers()
        self._files, self._bytes = Counter64(), Counter64()
        self._records, self._small = Counter64(), Counter64()
        self._sizes: list[Numbers] = [np.zeros(0, np.int64)]
        self._formats: Counter[str] = Counter()
        self._record_count = 0
        self._delete_counts: Counter[int] = Counter()
        self._delete_count_bytes: Counter[int] = Counter()
        self._over_ratio = 0
        self.rewrite = RewriteCount(options, metadata.default_spec_id)
        self.delete_files = _DeleteFileCounts(metadata.format_version)
        plan = ScanPlan(
            metadata=metadata,
            manifests=manifests,
            predicate=AlwaysTrue(),
            read_entries=partial(entries_of_manifests, io),
            snapshot=snapshot,
        )
        for spec_id, entries in self._entries_of(ManifestContent.DELETES):
            self.delete_files.add_candidates(entries, self._numbers_of(entries, spec_id))
        for planned_files in plan.files():
            self._add(planned_files)
        self.rewrite.finish()
        for _, entries in self._entries_of(ManifestContent.DELETES):
            self.delete_files.add(entries)

    def file_sizes(self) -> FileSizes:
        """Return the data files by size."""
        sizes = np.concatenate(self._sizes)
        target_sizes = self._options.sizes
        large = sizes[sizes > target_sizes.greatest]
        small = sizes[sizes < target_sizes.least]
        return FileSizes(
            files=len(sizes),
            bytes=int(sizes.sum()),
            records=self._record_count,
            smallest=int(sizes.min()) if len(sizes) else None,
            median=_median(sizes),
            largest=int(sizes.max()) if len(sizes) else None,
            target=target_sizes.target,
            min_file_size=target_sizes.least,
            max_file_size=target_sizes.greatest,
            small_files=len(small),
            small_bytes=int(small.sum()),
            large_files=len(large),
            large_bytes=int(large.sum()),
            files_by_size=_buckets(_SIZE_EDGES, sizes, sizes),
            files_by_format=dict(sorted(self._formats.items())),
        )

    def deletes(self) -> Deletes:
        """Return the figures of deletes in delete files."""
        counts = np.array(list(self._delete_counts), np.int64)
        files = np.array(list(self._delete_counts.values()), np.int64)
        sizes = np.array([self._delete_count_bytes[n] for n in self._delete_counts], np.int64)
        vectors, positions, equality = self.delete_files.by_kind()
        deleted_count = vectors.records + positions.records
        return Deletes(
            deletion_vectors=vectors,
            position_deletes=positions,
            equality_deletes=equality,
            data_files_with_deletes=int(files[counts > 0].sum()),
            most_deletes_of_a_file=int(counts.max()) if len(counts) else 0,
            deleted_ratio=min(deleted_count / self._record_count, 1.0)
            if self._record_count
            else 0.0,
            files_over_ratio=self._over_ratio,
            files_by_deletes=_buckets(_DELETE_EDGES, counts, sizes, files),
        )

    def partitions(self, top: int) -> Partitions:
        """Return the partitions, and the `top` ones by bytes and by files."""
        count = len(self._numbers)
        files, sizes = self._files.first(count), self._bytes.first(count)
        # a partition with delete files only does not count
        present = np.flatnonzero(files)
        if not len(present):
            return Partitions()
        by_size = present[np.argsort(-sizes[present], kind="stable")][:top]
        by_files = present[np.argsort(-files[present], kind="stable")][:top]
        largest = self._partitions_of({*by_size.tolist(), *by_files.tolist()})
        greatest, mean = int(sizes[present].max()), float(sizes[present].mean())
        return Partitions(
            count=len(present),
            median_bytes=_median(sizes[present]),
            mean_bytes=int(mean),
            greatest_bytes=greatest,
            skew=greatest / mean if mean > 0 else None,
            largest=tuple(largest[n] for n in by_size.tolist()),
            most_files=tuple(largest[n] for n in by_files.tolist()),
        )

    def _add(self, planned_files: PlannedFiles) -> None:
        entries = planned_files.entries
        sizes: Numbers = entries["file_size_in_bytes"].to_numpy()
        records: Numbers = entries["record_count"].to_numpy()
        partitions = self._numbers_of(entries, planned_files.spec.spec_id)
        self._sizes.append(sizes.copy())
        self._record_count += int(records.sum())
        for pair in pc.value_counts(entries["file_format"]).to_pylist():
            self._formats[pair["values"]] += pair["counts"]
        self._files.add(partitions)
        self._bytes.add(partitions, sizes)
        self._records.add(partitions, records)
        self._small.add(partitions[sizes < self._options.sizes.least])
        self.rewrite.add(planned_files, partitions)
        self._add_deletes(planned_files.deletes, sizes, records)

    def _add_deletes(
        self, deletes: Mapping[int, tuple[DeleteFileRef, ...]], sizes: Numbers, records: Numbers
    ) -> None:
        without = len(sizes) - len(deletes)
        self._delete_counts[0] += without
        self._delete_count_bytes[0] += int(sizes.sum())
        for row, refs in deletes.items():
            size = int(sizes[row])
            self._delete_counts[len(refs)] += 1
            self._delete_count_bytes[len(refs)] += size
            self._delete_count_bytes[0] -= size
            self._over_ratio += has_many_deletes(refs, int(records[row]), self._options)
            self.delete_files.apply(refs)

    def _entries_of(self, content: ManifestContent) -> Iterator[tuple[int, pa.Table]]:
        """Yield the spec id and the entries of each manifest."""
        manifests = [m for m in self._manifests if m.content is content]
        tables = threaded_map(self._read, manifests, lambda m: m.manifest_path)
        for manifest, table in zip(manifests, tables, strict=True):
            yield manifest.partition_spec_id, table

    def _read(self, manifest: ManifestFile) -> pa.Table:
        type_ = partition_type_of(self._metadata, manifest, self._snapshot)
        return read_entries(self._io, manifest, type_)

    def _numbers_of(self, entries: pa.Table, spec_id: int) -> Numbers:
        return self._numbers.of(spec_id, entries["partition"].combine_chunks())

    def _partitions_of(self, numbers: set[int]) -> dict[int, PartitionHealth]:
        """Read the values of some partitions again, and return these partitions by number."""
        by_number: dict[int, PartitionHealth] = {}
        for spec_id, entries in self._entries_of(ManifestContent.DATA):
            partitions = self._numbers_of(entries, spec_id)
            distinct, rows = np.unique(partitions, return_index=True)
            for number, row in zip(distinct.tolist(), rows.tolist(), strict=True):
                if number in numbers and number not in by_number:
                    one = entries["partition"].combine_chunks().slice(row, 1)
                    by_number[number] = self._partition(number, spec_id, one)
            if len(by_number) == len(numbers):
                break
        return by_number

    def _partition(self, number: int, spec_id: int, partition: pa.StructArray) -> PartitionHealth:
        metadata = self._metadata
        (values,) = partition_values(partition)
        schemas = metadata.schemas_newest_first
        fields = zip(metadata.spec_by_id[spec_id].fields, values, strict=True)
        # folder names would escape some characters, which people cannot read easily
        path = "/".join(
            f"{f.name}={human_value(f.transform, source_type(f, schemas), v)}" for f, v in fields
        )
        return PartitionHealth(
            spec_id=spec_id,
            partition=path,
            files=int(self._files.first(number + 1)[number]),
            bytes=int(self._bytes.first(number + 1)[number]),
            records=int(self._records.first(number + 1)[number]),
            small_files=int(self._small.first(number + 1)[number]),
        )


def _median(values: Numbers) -> int | None:
    return int(np.median(values)) if len(values) else None


def _buckets(
    edges: Sequence[int], values: Numbers, sizes: Numbers, files: Numbers | None = None
) -> tuple[Bucket, ...]:
    """Count the values between the edges; `files` is the number of files per value."""
    places = np.searchsorted(np.array(edges), values, side="right")
    counts = np.ones(len(values), np.int64) if files is None else files
    most = len(edges)
    in_place = np.bincount(places, counts, most + 1).astype(np.int64)
    bytes_in_place = np.zeros(most + 1, np.int64)
    np.add.at(bytes_in_place, places, sizes)
    bounds = [0, *edges]
    return tuple(
        Bucket(
            at_least=least,
            less_than=bounds[i + 1] if i < most else None,
            files=int(in_place[i]),
            bytes=int(bytes_in_place[i]),
        )
        for i, least in enumerate(bounds)
    )


_COLUMNS = (
    "content",
    "file_format",
    "file_path",
    "content_offset",
    "content_size_in_bytes",
    "file_size_in_bytes",
    "record_count",
)
_VECTORS, _POSITIONS, _EQUALITY = range(3)


@dataclass(slots=True)
class _Kind:
    files: int = 0
    bytes: int = 0
    records: int = 0
    dangling_files: int = 0
    dangling_bytes: int = 0


@dataclass(slots=True)
class _Group:
    files: int = 0
    bytes: int = 0
    data_files: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRewriteCount:
    """The delete files that a rewrite removes, their bytes, and an upper bound of new files."""

    files: int
    bytes: int
    added_at_most: int


class _DeleteFileCounts:
    """Counts of delete files; call `add_candidates`, then `apply` per data file, then `add`."""

    def __init__(self, format_version: int) -> None:
        self._version = format_version
        self._applied_identities: set[int] = set()
        self._kinds = (_Kind(), _Kind(), _Kind())
        self._groups: dict[int, _Group] = {}
        self._group_of: dict[int, int] = {}
        self._options = DeleteFileOptions.of({})
        self._with_positions = 0
        self._with_equality = 0

    def add_candidates(self, entries: pa.Table, partitions: Numbers) -> None:
        """Add the entries of a delete manifest that `rewrite_position_delete_files` may choose.

        This matters in version 2, where the choice depends on sizes and partitions; a rewrite in
        version 3 takes all position delete files.
        """
        if self._version >= 3:
            return
        sizes = self._options.sizes
        rows = (
            pc.equal(entries["content"], int(FileContent.POSITION_DELETES)),
            pc.not_equal(entries["file_format"], "puffin"),
            pc.or_(
                pc.less(entries["file_size_in_bytes"], sizes.least),
                pc.greater(entries["file_size_in_bytes"], sizes.greatest),
            ),
        )
        is_candidate = pc.and_(pc.and_(rows[0], rows[1]), rows[2])
        candidates = entries.filter(is_candidate)
        offsets = candidates["content_offset"].to_pylist()
        for path, offset, partition in zip(
            candidates["file_path"].to_pylist(),
            offsets,
            partitions[is_candidate.to_numpy()].tolist(),
            strict=True,
        ):
            self._group_of[_identity(path, offset)] = partition

    def apply(self, deletes: Sequence[DeleteFileRef]) -> None:
        """Count the deletes that apply to one data file."""
        identities = [_identity(d.file_path, d.content_offset) for d in deletes]
        self._applied_identities.update(identities)
        for number in {self._group_of[i] for i in identities if i in self._group_of}:
            self._groups.setdefault(number, _Group()).data_files += 1
        self._with_equality += any(d.content is FileContent.EQUALITY_DELETES for d in deletes)
        self._with_positions += any(
            d.content is FileContent.POSITION_DELETES and not d.is_deletion_vector for d in deletes
        )

    def add(self, entries: pa.Table) -> None:
        """Count the entries of one delete manifest."""
        columns = [entries[name].to_pylist() for name in _COLUMNS]
        for content, format_, path, offset, blob_size, file_size, records in zip(
            *columns, strict=True
        ):
            is_vector = content == FileContent.POSITION_DELETES and format_ == "puffin"
            size = blob_size if is_vector and blob_size is not None else file_size
            identity = _identity(path, offset)
            is_applied = identity in self._applied_identities
            if content == FileContent.EQUALITY_DELETES:
                kind = self._kinds[_EQUALITY]
            else:
                kind = self._kinds[_VECTORS if is_vector else _POSITIONS]
            kind.files += 1
            kind.bytes += size
            kind.records += records
            kind.dangling_files += not is_applied
            kind.dangling_bytes += 0 if is_applied else size
            if is_applied and identity in self._group_of:
                group = self._groups[self._group_of[identity]]
                group.files += 1
                group.bytes += size

    def by_kind(self) -> tuple[DeleteFileFigures, DeleteFileFigures, DeleteFileFigures]:
        """Return the counts of deletion vectors, position deletes and equality deletes."""
        vectors, positions, equality = (
            DeleteFileFigures(
                files=k.files, bytes=k.bytes, records=k.records, dangling_files=k.dangling_files
            )
            for k in self._kinds
        )
        return vectors, positions, equality

    def position_rewrite(self, *, per_file: bool) -> DeleteRewriteCount:
        """Return the effect of `rewrite_position_delete_files`; `per_file`: one per data file.

        Dangling delete files are removed without a replacement.
        """
        vectors, positions = self._kinds[_VECTORS], self._kinds[_POSITIONS]
        files = vectors.dangling_files + positions.dangling_files
        size = vectors.dangling_bytes + positions.dangling_bytes
        added_count = 0
        if self._version >= 3:
            files += positions.files - positions.dangling_files
            size += positions.bytes - positions.dangling_bytes
            added_count = self._with_positions
        else:
            for group in self._groups.values():
                fewer = group.data_files if per_file else 1
                if self._options.sizes.gain(group.files, group.bytes) and fewer < group.files:
                    files += group.files
                    size += group.bytes
                    added_count += fewer
        return DeleteRewriteCount(files=files, bytes=size, added_at_most=added_count)

    def equality_rewrite(self) -> DeleteRewriteCount:
        """Return the effect of `rewrite_equality_deletes`."""
        equality = self._kinds[_EQUALITY]
        return DeleteRewriteCount(
            files=equality.files, bytes=equality.bytes, added_at_most=self._with_equality
        )


def _identity(path: str, offset: int | None) -> int:
    """Return a delete file's identity in eight bytes: a table may have as many as data files."""
    return hash((path, offset))
