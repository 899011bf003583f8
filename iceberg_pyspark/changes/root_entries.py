"""Plans the entries of a commit's root manifest, and the leaf manifests to write.

Proposal "Single-file commits". Files of the base's root stay in the root until there are too many;
then they move to leaf manifests. A leaf is not rewritten when a file of it is removed: the entry's
position is added to the deletion vector of the manifest. Everything is planned before a byte is
written; a retry plans again on the new base and uses leaves with an equal key again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from iceberg_pyspark.changes.manifest_changes import (
    NewManifest,
    SnapshotBase,
    SnapshotPlan,
    as_existing,
    chunks_of_size,
    plan_merge,
)
from iceberg_pyspark.changes.removals import DeleteFileId, delete_file_id
from iceberg_pyspark.spec.content_entries import (
    ContentStatus,
    LeafEntry,
    ManifestVectorEntry,
    RootEntry,
)
from iceberg_pyspark.spec.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    next_row_id_after,
)

MAX_INLINE_VECTOR_BYTES = 16 * 1024
"""A larger deletion vector of a manifest is put into a Puffin file, and its leaf is folded soon."""

_FOLDED_AT = 0.5
"""The fraction of dead entries from which on a leaf is rewritten without them (folded)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RootLimits:
    """The limits of a root manifest (`write.root.*`) and of merging leaves (`commit.manifest*`)."""

    max_data_entries: int
    max_delete_entries: int
    max_bytes: int
    target_size: int
    min_count_to_merge: int
    merges: bool


@dataclass(frozen=True, kw_only=True)
class BaseRoot:
    """The parts of a base's root manifest other than files and leaves; all empty without a root.

    `vectors` maps a leaf's location to its live deletion vectors. `targets` maps a delete
    manifest's location to that of the data manifest its deletes are for. `length` is the root's
    size in bytes.
    """

    location: str | None = None
    length: int = 0
    vectors: Mapping[str, tuple[ManifestVectorEntry, ...]] = field(default_factory=dict)
    targets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class NewLeaf:
    """A leaf manifest to write; all its entries have the status `status`.

    `target` is the key of the new data manifest that its deletion vectors are for.
    """

    manifest: NewManifest
    status: ContentStatus
    target: tuple[object, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class MaskedLeaf:
    """A leaf of which entries are removed; `dead` are the positions of all its removed entries."""

    leaf: ManifestFile
    replaced_vectors: tuple[ManifestVectorEntry, ...]
    dead: Set[int]


@dataclass(frozen=True, kw_only=True)
class RootPlan:
    """A planned root manifest.

    `unchanged_leaves` have their deletion vectors with them. `rows` are the entries of data and
    delete files, in order. `targets` is as in `BaseRoot`.
    """

    unchanged_leaves: tuple[tuple[ManifestFile, tuple[ManifestVectorEntry, ...]], ...]
    masked_leaves: tuple[MaskedLeaf, ...]
    new_leaves: tuple[NewLeaf, ...]
    rows: tuple[ManifestEntry, ...]
    targets: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class FinishedRoot:
    """The entries of a root as they are written; `added_rows` is the snapshot's `added-rows`."""

    entries: tuple[RootEntry, ...]
    added_rows: int


def plan_root(
    plan: SnapshotPlan,
    base: SnapshotBase,
    root: BaseRoot,
    limits: RootLimits,
    *,
    is_own: Callable[[int], bool],
    dead_positions: Callable[[ManifestFile], Set[int]],
    may_merge: Callable[[Sequence[ManifestFile]], bool],
) -> RootPlan:
    """Plan the root manifest of a planned snapshot.

    `is_own` says whether the root holds files of a partition spec; other files go to leaves.
    `dead_positions` returns the positions of a leaf's removed entries. `may_merge` says whether
    leaves of one spec may be merged.
    """
    return _RootPlanning(plan, base, root, limits, is_own, dead_positions, may_merge).plan()


class _RootPlanning:
    """The computation of one plan; see `plan_root`."""

    def __init__(
        self,
        plan: SnapshotPlan,
        base: SnapshotBase,
        root: BaseRoot,
        limits: RootLimits,
        is_own: Callable[[int], bool],
        dead_positions: Callable[[ManifestFile], Set[int]],
        may_merge: Callable[[Sequence[ManifestFile]], bool],
    ) -> None:
        self._plan = plan
        self._base = base
        self._root = root
        self._limits = limits
        self._is_own = is_own
        self._dead_positions = dead_positions
        self._may_merge = may_merge
        self._carried_entries: dict[ManifestContent, list[ManifestEntry]] = {
            c: [] for c in ManifestContent
        }
        self._removed_entries: list[ManifestEntry] = []
        self._new_manifests: dict[ManifestContent, list[NewManifest]] = {
            c: [] for c in ManifestContent
        }
        self._leaves: list[ManifestFile] = []
        self._masked_leaves: list[MaskedLeaf] = []
        self._new_leaves: list[NewLeaf] = []

    def plan(self) -> RootPlan:
        for manifest in self._plan.unchanged_manifests:
            if manifest.is_root:
                self._carry(self._base.read_entries(manifest), manifest.content)
            else:
                self._leaves.append(manifest)
        for new in self._plan.new:
            self._sort_in(new)
        rows = self._pop_rows_of_new_manifests()
        self._flush({c: sum(len(m.entries) for m in rows[c]) for c in ManifestContent})
        leaves = self._merge()
        return RootPlan(
            unchanged_leaves=tuple(
                (m, self._root.vectors.get(m.manifest_path, ())) for m in leaves
            ),
            masked_leaves=tuple(self._masked_leaves),
            new_leaves=tuple(self._new_leaves),
            rows=(
                *self._carried_entries[ManifestContent.DATA],
                *self._carried_entries[ManifestContent.DELETES],
                *self._removed_entries,
                *(e for c in ManifestContent for m in rows[c] for e in m.entries),
            ),
            targets=self._root.targets,
        )

    def _carry(self, entries: Iterable[ManifestEntry], content: ManifestContent) -> None:
        self._carried_entries[content] += [as_existing(e) for e in entries if e.is_live]

    def _sort_in(self, new: NewManifest) -> None:
        if new.is_existing:
            self._new_leaves.append(NewLeaf(manifest=new, status=ContentStatus.EXISTING))
        elif new.rewrites is None:
            self._new_manifests[new.content].append(new)
        elif new.rewrites.is_root:
            self._carry(new.entries, new.content)
            self._removed_entries += [e for e in new.entries if not e.is_live]
        else:
            removed_ids = {delete_file_id(e.data_file) for e in new.entries if not e.is_live}
            self._masked_leaves.append(self._masked_leaf(new.rewrites, removed_ids))

    def _masked_leaf(self, leaf: ManifestFile, removed_ids: set[DeleteFileId]) -> MaskedLeaf:
        before = self._dead_positions(leaf)
        dead = set(before)
        positions = _positions_besides(before)
        for position, entry in zip(positions, self._base.read_entries(leaf), strict=False):
            if entry.is_live and delete_file_id(entry.data_file) in removed_ids:
                dead.add(position)
        return MaskedLeaf(
            leaf=leaf, replaced_vectors=self._root.vectors.get(leaf.manifest_path, ()), dead=dead
        )

    def _pop_rows_of_new_manifests(self) -> dict[ManifestContent, list[NewManifest]]:
        """Return the added manifests that become rows of the root; the rest becomes leaves."""
        limits = self._limits
        most = {
            ManifestContent.DATA: limits.max_data_entries,
            ManifestContent.DELETES: limits.max_delete_entries,
        }
        rows: dict[ManifestContent, list[NewManifest]] = {c: [] for c in ManifestContent}
        for content, manifests in self._new_manifests.items():
            fits = sum(len(m.entries) for m in manifests) <= most[content]
            for m in manifests:
                if fits and self._is_own(m.spec_id):
                    rows[content].append(m)
                else:
                    self._new_leaves.append(NewLeaf(manifest=m, status=ContentStatus.ADDED))
        return rows

    def _flush(self, added_counts: Mapping[ManifestContent, int]) -> None:
        """Move files of the base's root to leaves if the root is full or has no place for them."""
        limits = self._limits
        leaf_of: dict[str, tuple[object, ...]] = {}
        data = self._pop_moved_entries(ManifestContent.DATA, added_counts, limits.max_data_entries)
        for leaf in self._flush_entries(data, ManifestContent.DATA):
            self._new_leaves.append(leaf)
            leaf_of |= {e.data_file.file_path: leaf.manifest.key for e in leaf.manifest.entries}
        by_target: dict[tuple[object, ...] | None, list[ManifestEntry]] = {}
        for e in self._pop_moved_entries(
            ManifestContent.DELETES, added_counts, limits.max_delete_entries
        ):
            by_target.setdefault(leaf_of.get(e.data_file.referenced_data_file or ""), []).append(e)
        for target, entries in by_target.items():
            for leaf in self._flush_entries(entries, ManifestContent.DELETES, target):
                self._new_leaves.append(replace(leaf, target=target))

    def _pop_moved_entries(
        self, content: ManifestContent, added_counts: Mapping[ManifestContent, int], most: int
    ) -> list[ManifestEntry]:
        """Remove the base's own files that do not stay in the root, and return their entries."""
        carried_entries = self._carried_entries[content]
        is_full = (
            self._root.length >= self._limits.max_bytes
            or len(carried_entries) + added_counts[content] > most
        )
        stays = [not is_full and self._is_own(e.data_file.spec_id) for e in carried_entries]
        self._carried_entries[content] = [
            e for e, stay in zip(carried_entries, stays, strict=True) if stay
        ]
        return [e for e, stay in zip(carried_entries, stays, strict=True) if not stay]

    def _flush_entries(
        self,
        entries: Sequence[ManifestEntry],
        content: ManifestContent,
        target: tuple[object, ...] | None = None,
    ) -> Iterator[NewLeaf]:
        specs: dict[int, list[ManifestEntry]] = {}
        for e in entries:
            specs.setdefault(e.data_file.spec_id, []).append(e)
        for spec_id, of_spec in sorted(specs.items()):
            by_id = {delete_file_id(e.data_file): e for e in of_spec}
            files = [e.data_file for e in of_spec]
            for chunk in chunks_of_size(files, self._limits.target_size):
                ids = tuple(map(delete_file_id, chunk))
                manifest = NewManifest(
                    # within one base, the ids of the files determine the entries
                    key=("flushed", self._root.location, content, spec_id, target, ids),
                    content=content,
                    spec_id=spec_id,
                    entries=tuple(by_id[i] for i in ids),
                    is_existing=True,
                )
                yield NewLeaf(manifest=manifest, status=ContentStatus.EXISTING)

    def _merge(self) -> list[ManifestFile]:
        """Return the leaves that stay; drop leaves without live entries, merge small or dead ones.

        A leaf counts as dead if about half of its entries were removed before this commit: an entry
        that this commit removes must not disappear by folding.
        """
        alive = [m for m in self._leaves if self._live_count(m) != 0]
        if not self._limits.merges:
            return alive
        groups = plan_merge(
            alive,
            target_size=self._limits.target_size,
            min_count=self._limits.min_count_to_merge,
        )
        leaves: list[ManifestFile] = []
        for group in groups:
            is_folded = any(map(self._is_folded, group))
            if (len(group) == 1 and not is_folded) or not self._may_merge(group):
                leaves += group
                continue
            entries = [e for m in group for e in self._base.read_entries(m) if e.is_live]
            if any(_is_file_of_positions(e) for e in entries):
                # from version 4 on, no manifest may contain position delete files
                leaves += group
                continue
            manifest = NewManifest(
                key=(
                    "merged",
                    *((m.manifest_path, m.first_row_id, m.dead_positions) for m in group),
                ),
                content=group[0].content,
                spec_id=group[0].partition_spec_id,
                entries=tuple(map(as_existing, entries)),
                is_existing=True,
            )
            self._new_leaves.append(NewLeaf(manifest=manifest, status=ContentStatus.EXISTING))
        return leaves

    def _live_count(self, m: ManifestFile) -> int | None:
        """Return the number of live entries of a leaf, or None if it is unknown."""
        counts = (m.added_files_count, m.existing_files_count)
        if None in counts or m.deleted_files_count is None:
            return None
        if not m.deleted_files_count:
            return sum(c or 0 for c in counts) - len(self._dead_positions(m))
        return sum(e.is_live for e in self._base.read_entries(m))

    def _is_folded(self, m: ManifestFile) -> bool:
        if m.dead_positions is None:
            return False
        dead = len(self._dead_positions(m))
        counts = (m.added_files_count, m.existing_files_count, m.deleted_files_count)
        total = sum(c or 0 for c in counts)
        return dead >= _FOLDED_AT * total or len(m.dead_positions) > MAX_INLINE_VECTOR_BYTES


def finished_root(
    plan: RootPlan,
    leaves: Mapping[tuple[object, ...], ManifestFile],
    *,
    snapshot_id: int,
    sequence_number: int,
    first_row_id: int,
    vector_entry: Callable[[MaskedLeaf], ManifestVectorEntry],
    with_counts_and_bounds: Callable[[ManifestFile], ManifestFile],
) -> FinishedRoot:
    """Return the root's entries with the numbers that are known only at commit time.

    `leaves` maps keys to the new leaves as they were written; `vector_entry` makes the new deletion
    vector of a leaf. `first_row_id` is the table's `next-row-id`, from which data files and
    manifests without a first row id get one, in order.
    """
    numbering = _Numbering(snapshot_id, sequence_number, first_row_id)
    entries: list[RootEntry] = []
    for leaf, vectors in plan.unchanged_leaves:
        m = numbering.leaf(with_counts_and_bounds(leaf))
        entries.append(LeafEntry(status=ContentStatus.EXISTING, manifest=m))
        entries += [replace(v, status=ContentStatus.EXISTING) for v in vectors]
    for masked_leaf in plan.masked_leaves:
        m = numbering.leaf(with_counts_and_bounds(masked_leaf.leaf))
        entries.append(LeafEntry(status=ContentStatus.EXISTING, manifest=m))
        entries += [
            replace(v, status=ContentStatus.DELETED, snapshot_id=snapshot_id)
            for v in masked_leaf.replaced_vectors
        ]
        entries.append(vector_entry(masked_leaf))
    for new in plan.new_leaves:
        m = numbering.leaf(leaves[new.manifest.key], is_numbered=_all_numbered(new))
        entries.append(LeafEntry(status=new.status, manifest=m))
    entries = _with_targets(entries, plan, leaves)
    entries += [numbering.row(e) for e in plan.rows]
    return FinishedRoot(entries=tuple(entries), added_rows=numbering.next_row_id - first_row_id)


def _with_targets(
    entries: Sequence[RootEntry], plan: RootPlan, leaves: Mapping[tuple[object, ...], ManifestFile]
) -> list[RootEntry]:
    """Set the data manifest of each delete manifest, if the root has that data manifest."""
    targets = dict(plan.targets)
    for new in plan.new_leaves:
        if new.target is not None:
            targets[leaves[new.manifest.key].manifest_path] = leaves[new.target].manifest_path
    present = {e.manifest.manifest_path for e in entries if isinstance(e, LeafEntry)}
    return [
        replace(e, referenced_file=targets[e.manifest.manifest_path])
        if isinstance(e, LeafEntry) and targets.get(e.manifest.manifest_path) in present
        else e
        for e in entries
    ]


class _Numbering:
    """A counter that assigns the commit's snapshot id, sequence number and row ids to entries."""

    def __init__(self, snapshot_id: int, sequence_number: int, first_row_id: int) -> None:
        self._snapshot_id = snapshot_id
        self._sequence_number = sequence_number
        self.next_row_id = first_row_id

    def leaf(self, m: ManifestFile, *, is_numbered: bool = False) -> ManifestFile:
        """Return the leaf with its numbers; `is_numbered`: all its entries have row ids already."""
        number = self._sequence_number
        if m.sequence_number == UNASSIGNED_SEQUENCE_NUMBER:
            is_unassigned = m.min_sequence_number == UNASSIGNED_SEQUENCE_NUMBER
            least = number if is_unassigned else m.min_sequence_number
            m = replace(m, sequence_number=number, min_sequence_number=least)
        if m.content is ManifestContent.DELETES or m.first_row_id is not None:
            return m
        m = replace(m, first_row_id=self.next_row_id)
        if not is_numbered:
            self._advance((m.added_rows_count or 0) + (m.existing_rows_count or 0), m.manifest_path)
        return m

    def row(self, e: ManifestEntry) -> ManifestEntry:
        if e.status is not EntryStatus.ADDED:
            return e
        number = self._sequence_number
        file = e.data_file
        if file.content is FileContent.DATA and file.first_row_id is None:
            file = replace(file, first_row_id=self.next_row_id)
            self._advance(file.record_count, file.file_path)
        return replace(
            e,
            snapshot_id=self._snapshot_id,
            sequence_number=number if e.sequence_number is None else e.sequence_number,
            file_sequence_number=number,
            data_file=file,
        )

    def _advance(self, count: int, where: str) -> None:
        self.next_row_id = next_row_id_after(self.next_row_id, count, where)


def _all_numbered(new: NewLeaf) -> bool:
    return new.status is ContentStatus.EXISTING and all(
        e.data_file.first_row_id is not None for e in new.manifest.entries
    )


def _positions_besides(dead: Set[int]) -> Iterator[int]:
    """Yield the positions of the entries that remain when `dead` positions are left out."""
    position = 0
    while True:
        if position not in dead:
            yield position
        position += 1


def _is_file_of_positions(e: ManifestEntry) -> bool:
    file = e.data_file
    return file.content is FileContent.POSITION_DELETES and not file.is_deletion_vector
