"""Plans which manifests a commit keeps, rewrites and writes, and with which entries.

Specification, "Manifests", "Manifest Entry Fields" and "Sequence Number Inheritance". The whole
plan is made before anything is written; `table/commits/commit_snapshot.py` carries it out. Each
planned manifest has a key that describes its content: a retry that plans an equal key reuses the
file.

Replaces manifests by new manifests with the same entries: no data file is added or removed.

Specification, "Manifests" and "Snapshots" (operation `replace`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from iceberg_pyspark.changes.removals import (
    DeleteFileId,
    Match,
    Origin,
    Removal,
    RemoveAll,
    RemoveFiles,
    RemoveNothing,
    RemovePartitions,
    RemoveWhere,
    delete_file_id,
)
from iceberg_pyspark.errors import ConcurrentChangeError, InvalidRequestError
from iceberg_pyspark.spec.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from iceberg_pyspark.spec.partitioning import partition_key
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata

SnapshotOperation = Literal["append", "replace", "overwrite", "delete"]
ReadEntries: TypeAlias = Callable[[ManifestFile], Iterable[ManifestEntry]]
ReadPaths: TypeAlias = Callable[[ManifestFile], Set[str]]
FindEntries: TypeAlias = Callable[[ManifestFile, Set[str]], Iterable[ManifestEntry]]


@dataclass(frozen=True, kw_only=True)
class SnapshotBase:
    """The base of a commit: the metadata, the head of the branch and its manifests.

    `read_entries` returns a manifest's entries with the inherited numbers filled in. `read_paths`
    is cheaper: it returns the paths of a manifest's live files and of the data files that its live
    delete files refer to; `find_entries` is the cheapest: it returns only the live entries that
    have or refer to one of some paths, maybe without their metrics. `read_manifests` returns the
    manifests of an earlier snapshot; `read_removed_entries` returns the entries that a snapshot
    removed from manifests that it did not rewrite. `fresh_paths` are the paths of files that this
    commit's writer created, so that no snapshot can contain them. `identity_of` returns the same
    text for all locations of one file.
    """

    metadata: TableMetadata
    parent: Snapshot | None
    manifests: tuple[ManifestFile, ...]
    read_entries: ReadEntries
    read_paths: ReadPaths
    find_entries: FindEntries
    read_manifests: Callable[[Snapshot], Sequence[ManifestFile]]
    read_removed_entries: Callable[[Snapshot, ManifestContent], Iterable[ManifestEntry]]
    identity_of: Callable[[str], str]
    fresh_paths: Set[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class NewManifest:
    """A manifest to write; a manifest of an earlier attempt with an equal `key` is used again.

    If `rewrites` is set, the entries are the live entries of that manifest, with the files
    `removed` marked DELETED. Otherwise all entries are ADDED or, with `is_existing`, EXISTING.
    Iterating over `entries` may read them from disk each time.
    """

    key: tuple[object, ...]
    content: ManifestContent
    spec_id: int
    entries: Collection[ManifestEntry]
    rewrites: ManifestFile | None = None
    removed: frozenset[DeleteFileId] = frozenset()
    is_existing: bool = False


@dataclass(frozen=True, kw_only=True)
class FilteredEntries(Collection[ManifestEntry]):
    """The live entries of a manifest, read at each iteration; files `removed` are DELETED."""

    manifest: ManifestFile
    read_entries: ReadEntries
    removed: frozenset[DeleteFileId]
    snapshot_id: int

    def __iter__(self) -> Iterator[ManifestEntry]:
        """Yield the entries in order."""
        for e in self.read_entries(self.manifest):
            if e.is_live:
                is_removed = delete_file_id(e.data_file) in self.removed
                yield as_deleted_entry(e, self.snapshot_id) if is_removed else as_existing(e)

    def __len__(self) -> int:
        """Return the number of entries."""
        return sum(1 for _ in self)

    def __contains__(self, entry: object) -> bool:
        """Return whether an equal entry is among them."""
        return any(e == entry for e in self)


@dataclass(frozen=True, kw_only=True)
class SnapshotPlan:
    """A planned snapshot: the manifests to write, the manifests that stay, and the changed files.

    `counts` are added to the summary beside the counts of files, and replace the counts of
    manifests.
    """

    operation: SnapshotOperation
    new: tuple[NewManifest, ...]
    unchanged_manifests: tuple[ManifestFile, ...]
    added_files: tuple[DataFile, ...] = ()
    removed_files: tuple[DataFile, ...] = ()
    merge: bool = True
    replaces_partitions: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FilteredManifests:
    """The parent's manifests after a removal, and the removed files."""

    rewritten: tuple[NewManifest, ...]
    unchanged_manifests: tuple[ManifestFile, ...]
    removed_files: tuple[DataFile, ...]


def may_list(base: SnapshotBase, origin: Origin | None) -> Callable[[ManifestFile], bool]:
    """Return whether a manifest of the base may list files of an origin; None: any may.

    Another commit may have moved the files to manifests that are not in the origin's snapshot.
    """
    found_in = None if origin is None else base.metadata.snapshot_by_id.get(origin.snapshot_id)
    if origin is None or found_in is None:
        return lambda m: True
    manifests = base.manifests if found_in == base.parent else base.read_manifests(found_in)
    others = {
        (m.part, m.dead_positions)
        for m in manifests
        if m.manifest_path not in origin.manifest_paths
    }
    return lambda m: (m.part, m.dead_positions) not in others


def filter_manifests(base: SnapshotBase, removal: Removal, snapshot_id: int) -> FilteredManifests:
    """Mark the files to remove as DELETED; manifests without removed files stay unchanged.

    Deletion vectors and file-scoped position deletes are removed with their data file.
    """
    if isinstance(removal, RemoveNothing):
        live = tuple(m for m in base.manifests if m.has_live_files)
        return FilteredManifests(rewritten=(), unchanged_manifests=live, removed_files=())
    data = [m for m in base.manifests if m.content is ManifestContent.DATA]
    deletes = [m for m in base.manifests if m.content is ManifestContent.DELETES]
    exactly = removal.data_paths if isinstance(removal, RemoveFiles) else None
    origin = removal.origin if isinstance(removal, RemoveFiles) else None
    searched = may_list(base, origin)
    data_result = _filter(data, base, _data_file_test(removal), snapshot_id, exactly, searched)
    removed_paths = frozenset(f.file_path for f in data_result.removed_files)
    delete_result = _filter(
        deletes,
        base,
        _delete_file_test(removal, removed_paths),
        snapshot_id,
        _paths_for_deletes(removal, removed_paths),
        searched,
    )
    if isinstance(removal, RemoveFiles):
        _check_no_file_is_missing(removal, data_result.removed_files, delete_result.removed_files)
    return FilteredManifests(
        rewritten=data_result.rewritten + delete_result.rewritten,
        unchanged_manifests=data_result.unchanged_manifests + delete_result.unchanged_manifests,
        removed_files=data_result.removed_files + delete_result.removed_files,
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
            "and may hold rows that do not; use a condition on partition columns that matches "
            "whole files, or first delete the rows, with Table.delete or DELETE FROM in Spark SQL"
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
    """Return paths of which every removed delete file has or references at least one.

    Returns None if the removal can also select delete files in other ways.
    """
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
    searched: Callable[[ManifestFile], bool],
) -> FilteredManifests:
    """Mark the entries for which `goes` is true as DELETED, in manifests that are `searched`.

    If `paths` is not None, it contains the path of each of these entries, and only entries with
    these paths are looked at.
    """
    rewritten: list[NewManifest] = []
    unchanged_manifests: list[ManifestFile] = []
    removed_files: list[DataFile] = []
    for manifest in manifests:
        if not manifest.has_live_files:
            continue
        entries: Iterable[ManifestEntry] = ()
        if paths is None:
            entries = base.read_entries(manifest)
        elif searched(manifest):
            entries = base.find_entries(manifest, paths)
        of_manifest = [e.data_file for e in entries if e.is_live and goes(e.data_file)]
        if not of_manifest:
            unchanged_manifests.append(manifest)
            continue
        removed = frozenset(delete_file_id(f) for f in of_manifest)
        removed_files.extend(of_manifest)
        rewritten.append(
            NewManifest(
                key=(
                    "filtered",
                    *manifest.part,
                    # Another commit may assign the manifest's first row id, from which the entries
                    # inherit ids.
                    manifest.first_row_id,
                    removed,
                ),
                content=manifest.content,
                spec_id=manifest.partition_spec_id,
                rewrites=manifest,
                removed=removed,
                entries=FilteredEntries(
                    manifest=manifest,
                    read_entries=base.read_entries,
                    removed=removed,
                    snapshot_id=snapshot_id,
                ),
            )
        )
    return FilteredManifests(
        rewritten=tuple(rewritten),
        unchanged_manifests=tuple(unchanged_manifests),
        removed_files=tuple(removed_files),
    )


def as_existing(entry: ManifestEntry) -> ManifestEntry:
    """Return the entry with status EXISTING; its snapshot id and sequence numbers are kept."""
    if entry.status is EntryStatus.EXISTING:
        return entry
    return replace(entry, status=EntryStatus.EXISTING)


def as_deleted_entry(entry: ManifestEntry, snapshot_id: int) -> ManifestEntry:
    """Return the entry with status DELETED and the snapshot's id; its sequence numbers are kept."""
    return replace(entry, status=EntryStatus.DELETED, snapshot_id=snapshot_id)


def _check_no_file_is_missing(
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
    """Return manifests of ADDED entries, one or more per content and partition spec.

    `sequence_number` is for data files that keep the data sequence number of the files they
    replace.
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
                    # The key says where the list is cut, since the next attempt may have another
                    # target size.
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
    """Yield the files in order, in chunks whose manifests have about the target size."""
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
    """Return the estimated bytes of an entry in a manifest; it only decides where a list is cut."""
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
    """Group the manifests, in order; every group of several manifests is to be merged into one.

    Manifests of one spec and content are packed to `target_size` from the oldest on, so that groups
    stay the same while new manifests arrive. The group with the newest manifest of its content is
    merged only once it has `min_count` members, so that a commit seldom writes more than its own
    manifests.
    """
    groups: dict[tuple[ManifestContent, int], list[int]] = {}
    newest: dict[ManifestContent, int] = {}
    for i, m in enumerate(manifests):
        groups.setdefault((m.content, m.partition_spec_id), []).append(i)
        newest.setdefault(m.content, i)
    bins: list[list[int]] = []
    for (content, _), members in groups.items():
        packs = _pack_from_end(members, [m.manifest_length for m in manifests], target_size)
        for one in packs:
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
    """Merge several manifests; ADDED and DELETED entries of this snapshot keep their status.

    `read_entries` must return the entries of this commit's own manifests as they were planned, with
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


@dataclass(frozen=True, kw_only=True)
class RewriteManifests:
    """A replacement of manifests by new ones with the same live entries, all EXISTING.

    Manifests that other commits add meanwhile stay. If one of `replaced_manifests` is no longer in
    the table, the commit raises `ConcurrentChangeError`.
    """

    replaced_manifests: tuple[ManifestFile, ...]
    new: tuple[NewManifest, ...]


def plan_manifest_rewrite(action: RewriteManifests, base: SnapshotBase) -> SnapshotPlan:
    """Return the plan of the rewrite on this base; raise `ConcurrentChangeError` on a conflict."""
    present = {m.part: _content_of(m) for m in base.manifests}
    missing = [
        m.manifest_path for m in action.replaced_manifests if present.get(m.part) != _content_of(m)
    ]
    if missing:
        raise ConcurrentChangeError(
            f"table {base.metadata.location}: {len(missing)} of the manifests to rewrite have "
            "changed or are no longer in it, among them "
            f"{min(missing)}; another commit replaced them: "
            "run the operation again"
        )
    replaced_manifests = {m.part for m in action.replaced_manifests}
    return SnapshotPlan(
        operation="replace",
        new=action.new,
        unchanged_manifests=tuple(
            m for m in base.manifests if m.part not in replaced_manifests and m.has_live_files
        ),
        merge=False,
        counts={
            "manifests-replaced": len(action.replaced_manifests),
            "entries-processed": sum(len(m.entries) for m in action.new),
        },
    )


def _content_of(manifest: ManifestFile) -> tuple[int | None, bytes | None]:
    """Return the manifest's values that its entries inherit.

    The first commit of version 3 assigns first row ids, and each snapshot sets its dead positions.
    """
    return manifest.first_row_id, manifest.dead_positions
