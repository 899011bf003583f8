"""Checks a root manifest against its parent's: the entries must say what changed.

Only differences are read: leaves that both snapshots have with the same removed positions have the
same files.

Checks that row ids are assigned in the order of a root's entries, from the first id on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pyroaring import BitMap64

from iceberg_pyspark.formats.puffin.deletion_vectors import (
    decode_deletion_vector,
    encode_deletion_vector,
)
from iceberg_pyspark.spec.content_entries import ContentStatus, ContentType
from iceberg_pyspark.spec.manifests import FileContent, ManifestContent, ManifestFile
from iceberg_pyspark.table.verify.findings import Report
from iceberg_pyspark.table.verify.live_files import (
    Files,
    Numbers,
    ReadLive,
    files_of,
    id_of,
    path_at,
    rows_in,
)
from iceberg_pyspark.table.verify.roots.entry_rules import StoredEntry
from iceberg_pyspark.table.verify.roots.root_rules import Root


def row_id_problems(
    root: Root,
    parent_row_ids: Mapping[str, int | None],
    *,
    all_have_ids: Callable[[StoredEntry], bool],
    next_row_id: int | None,
) -> Iterator[tuple[int | None, str]]:
    """Yield the position of an entry with wrong row ids (None: the snapshot) and a description.

    `parent_row_ids` maps locations to first row ids of the parent's data manifests. `all_have_ids`
    says whether all entries of a new data manifest have row ids of their own. `next_row_id` is the
    table's, or None if there are later snapshots.
    """
    start = root.snapshot.first_row_id
    if start is None:
        yield None, "the snapshot has no first-row-id"
        return
    cursor = start
    for e in root.entries:
        first = e["first_row_id"]
        if not e.is_live or first is None:
            continue
        if e.type is ContentType.DATA and e.status is ContentStatus.ADDED:
            if first != cursor:
                yield e.ordinal, f"first_row_id is {first}, the next one was {cursor}"
            cursor = first + e["record_count"]
        elif e.type is ContentType.DATA_MANIFEST and parent_row_ids.get(e["location"]) is None:
            if first != cursor:
                yield e.ordinal, f"first_row_id is {first}, the next one was {cursor}"
            if not all_have_ids(e):
                cursor = first + (e["added_rows_count"] or 0) + (e["existing_rows_count"] or 0)
    added_rows = root.snapshot.added_rows
    if added_rows is not None and start + added_rows != cursor:
        yield None, f"added-rows is {added_rows}, and {cursor - start} were given"
    elif next_row_id is not None and next_row_id != cursor:
        yield None, f"the table's next-row-id is {next_row_id}, the next one was {cursor}"


_OF_FILES = (ContentType.DATA, ContentType.DELETION_VECTOR, ContentType.EQUALITY_DELETES)
_SAME = ("snapshot_id", "sequence_number", "file_sequence_number", "record_count")


@dataclass(frozen=True, kw_only=True)
class RootChange:
    """A root, and the manifests of its snapshot and of its parent (none without a parent).

    `parent` is the parent's root, or None if the parent has a manifest list or does not exist.
    """

    root: Root
    manifests: Sequence[ManifestFile]
    parent: Root | None
    parent_manifests: Sequence[ManifestFile]
    read: ReadLive
    report: Report

    def check(self) -> None:
        """Report the problems."""
        before = {m.manifest_path: m for m in self.parent_manifests if not m.is_root}
        after = {m.manifest_path: m for m in self.manifests if not m.is_root}
        self._carried_leaves(before, after)
        self._manifest_vectors(after)
        masked_files = self._masked_files(before, after)
        old = files_of(
            (m for m in self.parent_manifests if m.is_root or m.manifest_path not in after),
            self.read,
        )
        new = files_of(
            (m for m in self.manifests if m.is_root or m.manifest_path not in before), self.read
        )
        self._files(old, new, masked_files)

    def _add(self, rule: str, problem: str, entry: StoredEntry | None = None) -> None:
        self.report.add(
            rule,
            self.root.snapshot.snapshot_id,
            self.root.location,
            problem,
            None if entry is None else entry.ordinal,
        )

    # --- manifests ---

    def _carried_leaves(
        self, before: Mapping[str, ManifestFile], after: Mapping[str, ManifestFile]
    ) -> None:
        entries = self.root.live_manifests()
        for path, m in after.items():
            old, entry = before.get(path), entries.get(path)
            if old is None or entry is None:
                continue
            if entry.status is ContentStatus.ADDED:
                self._add("added-is-new", f"the parent has the manifest {path}", entry)
            # A first row id that the parent lacks is assigned by this snapshot.
            first_row_id = m.first_row_id if old.first_row_id is None else old.first_row_id
            values = {
                "snapshot_id": (old.added_snapshot_id, m.added_snapshot_id),
                "sequence_number": (old.sequence_number, m.sequence_number),
                "partition_spec_id": (old.partition_spec_id, m.partition_spec_id),
                "first_row_id": (first_row_id, m.first_row_id),
            }
            for name, (was, is_now) in values.items():
                if was != is_now:
                    self._add("existing-unchanged", f"{name} of {path} was {was}", entry)

    def _manifest_vectors(self, after: Mapping[str, ManifestFile]) -> None:
        """Check that the parent's vectors are carried over or DELETED if their manifest stays."""
        old = {} if self.parent is None else self.parent.live_vectors()
        deleted_leaves: dict[str, StoredEntry] = {}
        for e in self.root.of_types(ContentType.MANIFEST_DELETION_VECTOR):
            leaf = e["referenced_file"]
            if e.status is ContentStatus.DELETED:
                deleted_leaves[leaf] = e
                if leaf not in old or self._old_positions(old[leaf]) != self._positions(e):
                    self._add("deleted-was-live", f"no such vector of {leaf} was live", e)
            elif e.status is ContentStatus.EXISTING and (
                leaf not in old
                or self._old_positions(old[leaf]) != self._positions(e)
                or any(old[leaf][r] != e[r] for r in ("snapshot_id", "sequence_number"))
            ):
                self._add("existing-unchanged", f"the parent has no such vector of {leaf}", e)
        live = self.root.live_vectors()
        for leaf in old:
            is_carried = leaf in live and live[leaf].status is ContentStatus.EXISTING
            if leaf in after and not is_carried and leaf not in deleted_leaves:
                self._add(
                    "manifest-vector-replacement", f"the parent's vector of {leaf} is not DELETED"
                )

    def _positions(self, entry: StoredEntry) -> BitMap64 | None:
        return self.root.vectors.get(entry.ordinal)

    def _old_positions(self, entry: StoredEntry) -> BitMap64 | None:
        assert self.parent is not None
        return self.parent.vectors.get(entry.ordinal)

    def _masked_files(
        self, before: Mapping[str, ManifestFile], after: Mapping[str, ManifestFile]
    ) -> Files:
        """Return the files that this snapshot's manifest deletion vectors remove."""
        manifests: list[ManifestFile] = []
        for path, m in after.items():
            old = before.get(path)
            if old is None or old.dead_positions == m.dead_positions:
                continue
            was, is_now = _dead(old), _dead(m)
            if was - is_now:
                self._add(
                    "cumulative-manifest-vector",
                    f"{len(was - is_now)} entries of {path} are live again",
                    self.root.live_vectors().get(path),
                )
            if is_now - was:
                entries = range(self.root.live_manifests()[path]["record_count"])
                others = BitMap64(entries) - (is_now - was)
                manifests.append(replace(old, dead_positions=encode_deletion_vector(others)))
        return files_of(manifests, self.read)

    # --- files ---

    def _files(self, old: Files, new: Files, masked_files: Files) -> None:
        parent_ids = np.concatenate([old.column("id"), masked_files.column("id")])
        child_ids = new.column("id")
        own = [e for e in self.root.of_types(*_OF_FILES) if e["location"] is not None]
        added_entries = {_id(e): e for e in own if e.status is ContentStatus.ADDED}
        deleted_entries = {_id(e): e for e in own if e.status is ContentStatus.DELETED}
        for i, e in added_entries.items():
            if _is_in(i, parent_ids):
                self._add("added-is-new", f"the parent has {e['location']}", e)
        for i, e in deleted_entries.items():
            if not _is_in(i, parent_ids) or _is_in(i, child_ids):
                problem = "is live still" if _is_in(i, child_ids) else "was not live in the parent"
                self._add("deleted-was-live", f"{e['location']} {problem}", e)
        self._new_files(new, parent_ids, added_entries)
        self._removed_files(old, child_ids, deleted_entries)
        self._check_unchanged_files(old, new)
        self._vectors_without_data_files(old, masked_files, child_ids)

    def _new_files(
        self, new: Files, parent_ids: Numbers, added_entries: Mapping[int, StoredEntry]
    ) -> None:
        in_added_leaves = {
            e["location"]
            for e in self.root.live_manifests().values()
            if e.status is ContentStatus.ADDED
        }
        ids = new.column("id")
        is_in_parent = rows_in(ids, parent_ids)
        is_in_entries = rows_in(ids, list(added_entries))
        start = 0
        for manifest, count in new.of:
            rows = slice(start, start + count)
            start += count
            if manifest.is_root or manifest.manifest_path not in in_added_leaves:
                wrong = np.flatnonzero(~is_in_parent[rows] & ~is_in_entries[rows])
                rule, problem = "additions-recorded", "the parent does not have, and is not ADDED"
            else:
                wrong = np.flatnonzero(is_in_parent[rows])
                rule, problem = "added-is-new", "the parent has, and is in an ADDED leaf"
            if len(wrong):
                path = path_at(new, start - count + int(wrong[0]), self.read)
                self._add(rule, f"{path}, {_count_phrase(wrong)}{problem}")

    def _removed_files(
        self, old: Files, child_ids: Numbers, deleted_entries: Mapping[int, StoredEntry]
    ) -> None:
        ids = old.column("id")
        wrong = ~rows_in(ids, child_ids) & ~rows_in(ids, list(deleted_entries))
        start = 0
        for manifest, count in old.of:
            rows = np.flatnonzero(wrong[start : start + count])
            start += count
            if len(rows):
                path = path_at(old, start - count + int(rows[0]), self.read)
                if manifest.is_root:
                    self._add(
                        "parent-removals-recorded", f"{path}, {_count_phrase(rows)}has no entry"
                    )
                else:
                    self._add(
                        "leaf-contents-kept",
                        f"{path}, {_count_phrase(rows)}was in {manifest.manifest_path} and is gone",
                    )

    def _check_unchanged_files(self, old: Files, new: Files) -> None:
        """Check files that moved between roots and leaves, or stayed in the root."""
        ids, at_old, at_new = np.intersect1d(
            old.column("id"), new.column("id"), return_indices=True
        )
        del ids
        for name in (*_SAME, "first_row_id"):
            was, is_now = old.column(name)[at_old], new.column(name)[at_new]
            is_other = was != is_now
            if name == "first_row_id":
                is_other &= was >= 0
            for i in np.flatnonzero(is_other)[:1].tolist():
                path = path_at(new, int(at_new[i]), self.read)
                self._add("existing-unchanged", f"{name} of {path} was {was[i]}, is {is_now[i]}")

    def _vectors_without_data_files(
        self, old: Files, masked_files: Files, child_ids: Numbers
    ) -> None:
        removed_ids = []
        for files in (old, masked_files):
            is_data = files.column("content") == FileContent.DATA
            removed_ids.append(
                files.column("id")[is_data & ~rows_in(files.column("id"), child_ids)]
            )
        ids = np.concatenate(removed_ids)
        if not len(ids):
            return
        deletes = (m for m in self.manifests if m.content is ManifestContent.DELETES)
        for manifest in deletes:
            files = files_of([manifest], self.read)
            for row in np.flatnonzero(rows_in(files.column("target"), ids)).tolist():
                target = self.read(manifest)["referenced_data_file"][row].as_py()
                self._add(
                    "vector-removed-with-data-file",
                    f"{target} is gone, and its deletion vector is live in "
                    f"{manifest.manifest_path}",
                )


def _id(entry: StoredEntry) -> int:
    return id_of(entry["location"], entry["vector_offset"])


def _is_in(id_: int, ids: Numbers) -> bool:
    return bool((ids == id_).any())


def _count_phrase(rows: Numbers) -> str:
    return "" if len(rows) == 1 else f"one of {len(rows)} such, "


def _dead(manifest: ManifestFile) -> BitMap64:
    if manifest.dead_positions is None:
        return BitMap64()
    return decode_deletion_vector(manifest.dead_positions, manifest.manifest_path)


def known_row_ids(manifests: Iterable[ManifestFile]) -> dict[str, int | None]:
    """Return the first row ids of data manifests by location."""
    return {
        m.manifest_path: m.first_row_id
        for m in manifests
        if not m.is_root and m.content is ManifestContent.DATA
    }
