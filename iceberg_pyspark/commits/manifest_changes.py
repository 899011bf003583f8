"""Plans which manifests a commit keeps, rewrites and writes, and with which entries.

Specification, "Manifests", "Manifest Entry Fields" and "Sequence Number Inheritance". The whole
plan is made before anything is written; `table/changes/commit_snapshot.py` carries it out. Each
planned manifest has a key that describes its content: a retry that plans an equal key reuses the
file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from iceberg_pyspark.errors import ConcurrentChangeError, InvalidRequestError
from iceberg_pyspark.spec.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from iceberg_pyspark.spec.partitioning import PartitionKey, partition_key
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata

SnapshotOperation = Literal["append", "replace", "overwrite", "delete"]
Match = Literal["all", "some", "none"]
ReadEntries: TypeAlias = Callable[[ManifestFile], Iterable[ManifestEntry]]
ReadPaths: TypeAlias = Callable[[ManifestFile], Set[str]]
DeleteFileId: TypeAlias = tuple[str, int | None]
"""Path and content offset: several deletion vectors share one Puffin file."""


@dataclass(frozen=True, kw_only=True)
class SnapshotBase:
    """The base of a commit: the metadata, the head of the branch and its manifests.

    `read_entries` gives a manifest's entries with inherited numbers filled in; `read_paths`, which
    is cheap, the paths of its live files and of the data files that deletes among them are for;
    `read_manifests` the manifests of an earlier snapshot, `read_removed` the entries that it took
    out of manifests that stay as they are. `fresh_paths` are those of files that
    this commit's writer made: no snapshot can have them. `spellings_of` a path are all locations of
    the same file.
    """

    metadata: TableMetadata
    parent: Snapshot | None
    manifests: tuple[ManifestFile, ...]
    read_entries: ReadEntries
    read_paths: ReadPaths
    read_manifests: Callable[[Snapshot], Sequence[ManifestFile]]
    read_removed: Callable[[Snapshot, ManifestContent], Iterable[ManifestEntry]]
    spellings_of: Callable[[str], Collection[str]]
    fresh_paths: Set[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class NewManifest:
    """A manifest to write; `key` is equal exactly when a manifest of an earlier attempt will do.

    `rewrites` is the manifest whose live entries these are, those that go marked DELETED; None: the
    entries are all ADDED or, with `is_existing`, all EXISTING. `entries` may be read from disk each
    time.
    """

    key: tuple[object, ...]
    content: ManifestContent
    spec_id: int
    entries: Collection[ManifestEntry]
    rewrites: ManifestFile | None = None
    is_existing: bool = False


@dataclass(frozen=True, kw_only=True)
class SnapshotPlan:
    """A snapshot in the making: manifests to write, manifests that stay, and what changed.

    `counts` go into the summary besides those of files, and instead of those of manifests.
    """

    operation: SnapshotOperation
    new: tuple[NewManifest, ...]
    unchanged: tuple[ManifestFile, ...]
    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    merge: bool = True
    replaces_partitions: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RemoveNothing:
    """Every file stays."""


@dataclass(frozen=True, slots=True)
class RemoveAll:
    """Every data and delete file goes."""


@dataclass(frozen=True, slots=True)
class RemovePartitions:
    """Everything in these partitions goes: spec id and `partition_key` of the tuple."""

    partitions: frozenset[tuple[int, PartitionKey]]


@dataclass(frozen=True, slots=True)
class RemoveWhere:
    """Data files all of whose rows match go; one of which only some do is an error.

    `match` answers for a data file; `description` is the filter as the user wrote it.
    """

    match: Callable[[DataFile], Match]
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFiles:
    """Exactly these files go; one that is not live any more is a `ConcurrentChangeError`."""

    data_paths: frozenset[str] = frozenset()
    delete_files: frozenset[DeleteFileId] = frozenset()


Removal: TypeAlias = RemoveNothing | RemoveAll | RemovePartitions | RemoveWhere | RemoveFiles


def delete_file_id(f: DataFile) -> DeleteFileId:
    """The identity of a delete file or deletion vector."""
    return (f.file_path, f.content_offset)


@dataclass(frozen=True, kw_only=True)
class FilteredManifests:
    """The parent's manifests after a removal."""

    rewritten: tuple[NewManifest, ...]
    unchanged: tuple[ManifestFile, ...]
    removed: tuple[DataFile, ...]


def filter_manifests(base: SnapshotBase, removal: Removal, snapshot_id: int) -> FilteredManifests:
    """Mark the files to remove as DELETED; manifests without any of them stay as they are.

    Deletion vectors and file-scoped position deletes go with their data file.
    """
    if isinstance(removal, RemoveNothing):
        live = tuple(m for m in base.manifests if m.has_live_files)
        return FilteredManifests(rewritten=(), unchanged=live, removed=())
    data = [m for m in base.manifests if m.content is ManifestContent.DATA]
    deletes = [m for m in base.manifests if m.content is ManifestContent.DELETES]
    exactly = removal.data_paths if isinstance(removal, RemoveFiles) else None
    data_result = _filter(data, base, _data_file_test(removal), snapshot_id, exactly)
    removed_paths = frozenset(f.file_path for f in data_result.removed)
    delete_result = _filter(
        deletes,
        base,
        _delete_file_test(removal, removed_paths),
        snapshot_id,
        _paths_for_deletes(removal, removed_paths),
    )
    if isinstance(removal, RemoveFiles):
        _check_all_found(removal, data_result.removed, delete_result.removed)
    return FilteredManifests(
        rewritten=data_result.rewritten + delete_result.rewritten,
        unchanged=data_result.unchanged + delete_result.unchanged,
        removed=data_result.removed + delete_result.removed,
    )


def _data_file_test(removal: Removal) -> Callable[[DataFile], bool]:
    match removal:
        case RemoveAll():
            return lambda f: True
        case RemovePartitions(partitions=partitions):
            return lambda f: (f.spec_id, partition_key(f.partition)) in partitions
        case RemoveWhere(match=match, description=description):
            return lambda f: _matches_entirely(f, match, description)
        case RemoveFiles(data_paths=paths):
            return lambda f: f.file_path in paths
        case RemoveNothing():
            return lambda f: False


def _matches_entirely(f: DataFile, match: Callable[[DataFile], Match], description: str) -> bool:
    answer = match(f)
    if answer == "some":
        raise InvalidRequestError(
            f"cannot remove whole files where {description}: {f.file_path} holds rows that match "
            "and may hold rows that do not; delete the rows instead"
        )
    return answer == "all"


def _delete_file_test(
    removal: Removal, removed_paths: frozenset[str]
) -> Callable[[DataFile], bool]:
    def dangles(f: DataFile) -> bool:
        return f.referenced_data_file is not None and f.referenced_data_file in removed_paths

    match removal:
        case RemoveAll():
            return lambda f: True
        case RemovePartitions(partitions=partitions):
            return lambda f: (f.spec_id, partition_key(f.partition)) in partitions or dangles(f)
        case RemoveFiles(delete_files=ids):
            return lambda f: delete_file_id(f) in ids or dangles(f)
        case _:
            return dangles


def _paths_for_deletes(removal: Removal, removed_paths: frozenset[str]) -> frozenset[str] | None:
    """One of these a delete file that goes has, or is for; None where there are other reasons."""
    match removal:
        case RemoveFiles(delete_files=ids):
            return removed_paths | {path for path, _ in ids}
        case RemoveWhere():
            return removed_paths
        case _:
            return None


def _filter(
    manifests: Sequence[ManifestFile],
    base: SnapshotBase,
    goes: Callable[[DataFile], bool],
    snapshot_id: int,
    paths: frozenset[str] | None,
) -> FilteredManifests:
    """Entries for which `goes` holds go; they have one of `paths`, unless that is None."""
    rewritten: list[NewManifest] = []
    unchanged: list[ManifestFile] = []
    removed: list[DataFile] = []
    for manifest in manifests:
        if not manifest.has_live_files:
            continue
        if paths is not None and base.read_paths(manifest).isdisjoint(paths):
            unchanged.append(manifest)
            continue
        live = [e for e in base.read_entries(manifest) if e.is_live]
        going = [goes(e.data_file) for e in live]
        if not any(going):
            unchanged.append(manifest)
            continue
        of_manifest = [e.data_file for e, out in zip(live, going, strict=True) if out]
        removed.extend(of_manifest)
        rewritten.append(
            NewManifest(
                key=(
                    "filtered",
                    *manifest.part,
                    # which another commit may give it, and by it its entries
                    manifest.first_row_id,
                    frozenset(delete_file_id(f) for f in of_manifest),
                ),
                content=manifest.content,
                spec_id=manifest.partition_spec_id,
                rewrites=manifest,
                entries=tuple(
                    as_deleted(e, snapshot_id) if out else as_existing(e)
                    for e, out in zip(live, going, strict=True)
                ),
            )
        )
    return FilteredManifests(
        rewritten=tuple(rewritten),
        unchanged=tuple(unchanged),
        removed=tuple(removed),
    )


def as_existing(entry: ManifestEntry) -> ManifestEntry:
    """The entry carried over: its own snapshot id and sequence numbers, written out."""
    if entry.status is EntryStatus.EXISTING:
        return entry
    return replace(entry, status=EntryStatus.EXISTING)


def as_deleted(entry: ManifestEntry, snapshot_id: int) -> ManifestEntry:
    """The entry deleted by a snapshot: that snapshot's id, the file's own sequence numbers."""
    return replace(entry, status=EntryStatus.DELETED, snapshot_id=snapshot_id)


def _check_all_found(
    removal: RemoveFiles, data: Sequence[DataFile], deletes: Sequence[DataFile]
) -> None:
    missing = removal.data_paths - {f.file_path for f in data}
    missing |= {path for path, _ in removal.delete_files - {delete_file_id(f) for f in deletes}}
    if missing:
        raise ConcurrentChangeError(
            f"{len(missing)} of the files to remove are no longer in the table, among them "
            f"{min(missing)}; another commit removed them: run the operation again"
        )


def added_manifests(
    files: Sequence[DataFile],
    snapshot_id: int,
    *,
    target_size: int,
    sequence_number: int | None = None,
) -> tuple[NewManifest, ...]:
    """Manifests of ADDED entries, one or more per content and spec.

    `sequence_number` is for files that keep the data sequence number of those they replace.
    """
    groups: dict[tuple[ManifestContent, int], list[DataFile]] = {}
    for f in files:
        content = ManifestContent.DATA if f.content is FileContent.DATA else ManifestContent.DELETES
        groups.setdefault((content, f.spec_id), []).append(f)
    manifests: list[NewManifest] = []
    for (content, spec_id), members in sorted(groups.items(), key=lambda item: item[0]):
        start = 0
        for chunk in chunks_of_size(members, target_size):
            start += len(chunk)
            manifests.append(
                NewManifest(
                    # where it is cut, since the target may be another one for the next attempt
                    key=("added", content, spec_id, start - len(chunk), start),
                    content=content,
                    spec_id=spec_id,
                    entries=tuple(
                        ManifestEntry(
                            status=EntryStatus.ADDED,
                            snapshot_id=snapshot_id,
                            sequence_number=(
                                sequence_number if content is ManifestContent.DATA else None
                            ),
                            data_file=f,
                        )
                        for f in chunk
                    ),
                )
            )
    return tuple(manifests)


def chunks_of_size(files: Sequence[DataFile], target_size: int) -> Iterable[list[DataFile]]:
    """The files in order, as many together as a manifest of about that size has."""
    chunk: list[DataFile] = []
    size = 0
    for f in files:
        size += _estimated_size(f)
        if chunk and size > target_size:
            yield chunk
            chunk, size = [], _estimated_size(f)
        chunk.append(f)
    if chunk:
        yield chunk


def _estimated_size(f: DataFile) -> int:
    """About what an entry takes in a manifest: only where to cut depends on it."""
    counts = (f.column_sizes, f.value_counts, f.null_value_counts, f.nan_value_counts)
    bounds = (f.lower_bounds, f.upper_bounds)
    return (
        60
        + len(f.file_path)
        + sum(5 * len(m) for m in counts if m)
        + sum(3 + len(v) for m in bounds if m for v in m.values())
    )


def plan_merge(
    manifests: Sequence[ManifestFile], *, target_size: int, min_count: int
) -> tuple[tuple[ManifestFile, ...], ...]:
    """Groups of manifests, in order; a group of several is to be written as one.

    Manifests of one spec and content are packed to `target_size` from the oldest on, so that
    groups stay as they are while new manifests come. The group that holds the newest one of its
    content waits until it has `min_count` members, so that a commit seldom writes more than its
    own.
    """
    groups: dict[tuple[ManifestContent, int], list[int]] = {}
    newest: dict[ManifestContent, int] = {}
    for i, m in enumerate(manifests):
        groups.setdefault((m.content, m.partition_spec_id), []).append(i)
        newest.setdefault(m.content, i)
    bins: list[list[int]] = []
    for (content, _), members in groups.items():
        packed = _pack_from_end(members, [m.manifest_length for m in manifests], target_size)
        for one in packed:
            too_few = newest[content] in one and len(one) < min_count
            bins.extend([[i] for i in one] if too_few else [one])
    return tuple(tuple(manifests[i] for i in one) for one in sorted(bins))


def _pack_from_end(
    members: Sequence[int], sizes: Sequence[int], target_size: int
) -> list[list[int]]:
    groups: list[list[int]] = []
    current: list[int] = []
    size = 0
    for i in reversed(members):
        if current and size + sizes[i] > target_size:
            groups.append(current[::-1])
            current, size = [], 0
        current.append(i)
        size += sizes[i]
    if current:
        groups.append(current[::-1])
    return groups


def merged_manifest(
    group: Sequence[ManifestFile], read_entries: ReadEntries, snapshot_id: int
) -> NewManifest:
    """One manifest in place of several: what this snapshot added or deleted still says so.

    `read_entries` must give the entries of this commit's own manifests as they were planned, their
    sequence numbers not yet assigned.
    """
    entries: list[ManifestEntry] = []
    for e in (e for manifest in group for e in read_entries(manifest)):
        if e.snapshot_id == snapshot_id and e.status is not EntryStatus.EXISTING:
            entries.append(e)
        elif e.is_live:
            entries.append(as_existing(e))
    return NewManifest(
        key=("merged", *((m.manifest_path, m.first_row_id) for m in group)),
        content=group[0].content,
        spec_id=group[0].partition_spec_id,
        entries=tuple(entries),
    )
