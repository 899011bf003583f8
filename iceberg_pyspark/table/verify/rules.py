"""Defines the rules by name, each with a sentence that must be true.

Findings contain the names, so the names must not change.
"""

from __future__ import annotations

from collections.abc import Mapping

RULES_OF_TABLES: Mapping[str, str] = {
    "known-snapshot": "branches, tags, the snapshot log and the current snapshot name snapshots "
    "of the metadata",
    "unique-snapshot-id": "no two snapshots have one id",
    "known-schema": "the schema that a snapshot names is one of the metadata's",
    "known-partition-spec": "the partition spec of a manifest is one of the metadata's",
    "snapshot-sequence-number": "sequence numbers of snapshots are above their parents' and at "
    "most the table's last one",
    "snapshot-row-ids": "snapshots have first row ids of ranges that do not overlap, below the "
    "table's next-row-id",
    "file-exists": "files that the metadata needs are there",
    "file-length": "files are as long as the metadata says",
    "readable": "manifest lists, root manifests, manifests and deletion vectors can be read",
    "manifest-counts": "the counts of a manifest in its list are those of its entries",
    "sequence-number-range": "sequence numbers of entries are at most those of their manifest, "
    "and those at most the snapshot's; the least one of a manifest is at most its live entries'",
    "one-entry-per-file": "a file or deletion vector is live once in a snapshot",
    "one-vector-per-data-file": "a data file has at most one live deletion vector",
    "vector-applies": "a deletion vector is not older than its data file",
    "row-ids": "live data files have row ids of ranges that do not overlap, below next-row-id",
}
RULES_OF_ROOT_MANIFESTS: Mapping[str, str] = {
    "root-manifest-xor-manifest-list": "a snapshot has a root manifest, since version 4, or a "
    "manifest list",
    "timestamp-after-parent": "a snapshot with a root manifest is later than its parent",
    "file-content": "a manifest says in its key-value metadata what it is: root, data or delete",
    "types-in-root": "entries of manifests and of their deletion vectors are in the root alone",
    "leaf-content": "a leaf of data has data files alone, one of deletes has deletes alone",
    "known-status": "an entry has a status of its profile",
    "vector-iff-type": "an entry says where a vector is if and only if it stands for one",
    "vector-place": "a deletion vector of a data file is at a place in a Puffin file, one of a "
    "manifest is there or inline",
    "manifest-stats-iff-manifest": "an entry has all of manifest_stats if and only if it stands "
    "for a manifest",
    "equality-ids-iff-equality-deletes": "equality_ids are with equality deletes alone",
    "sort-order-of-data": "sort_order_id is of data files alone",
    "first-row-id-of-data": "first_row_id is of data files and data manifests alone",
    "referenced-file": "vectors say which file they are of; other files say none",
    "location": "an entry has a location, but for an inline vector, which has none",
    "file-size-iff-location": "an entry has a file size if and only if it has a location",
    "file-format": "the format of the file is one that its content type may have",
    "partition-spec-id": "an entry has the partition spec of its file: in a leaf that of the "
    "leaf's own entry, of a manifest's vector that of the manifest",
    "explicit-in-root": "entries of a root inherit nothing",
    "inherit-in-leaf": "ADDED entries of a leaf inherit their numbers from the leaf's own entry",
    "explicit-in-leaf": "entries of a leaf that are not ADDED inherit nothing",
    "manifest-sequence-numbers": "a manifest's two sequence numbers are that of the commit that "
    "wrote it",
    "added-by-this-snapshot": "an ADDED entry has this snapshot's id and sequence number",
    "existing-is-older": "an EXISTING entry of a file is of a snapshot before",
    "deleted-by-this-snapshot": "a DELETED entry has the id of the snapshot that removes it",
    "vector-sequence-number": "an ADDED vector has the sequence number of the commit",
    "record-count": "record_count of a manifest is how many entries it has, of a vector how many "
    "positions",
    "manifest-stats": "manifest_stats are those of the leaf's entries",
    "content-stats": "what a leaf's own entry says of columns holds for every entry of the leaf",
    "tight-bounds": "tight_bounds come with both bounds; a leaf's are those of its entries, and no "
    "vector of the manifest applies",
    "no-mixed-leaf": "a leaf has only ADDED entries if it was added, only EXISTING ones else",
    "no-deleted-leaf": "a manifest is never DELETED: its files are, by a vector of the manifest",
    "one-live-manifest-vector": "a manifest has at most one live deletion vector",
    "vector-of-live-manifest": "a live vector of a manifest has its live manifest beside it",
    "vector-positions": "the positions of a vector are within its manifest or data file",
    "cumulative-manifest-vector": "a manifest's vector has all positions of the one before",
    "manifest-vector-replacement": "a manifest's vector that is not carried over is DELETED in "
    "the root that replaces it",
    "affinity": "a delete manifest for a data manifest has vectors of that one's files alone, and "
    "the data manifest is live beside it",
    "parent-removals-recorded": "a file that was among the parent root's own entries and is gone "
    "has a DELETED entry",
    "leaf-contents-kept": "a file that was in a leaf of the parent goes by a vector of the leaf",
    "additions-recorded": "a file that the parent did not have is in an ADDED entry",
    "added-is-new": "a file in an ADDED entry is none that the parent had",
    "deleted-was-live": "a DELETED entry is of what the parent had and this snapshot has not",
    "existing-unchanged": "what is carried over keeps its numbers",
    "vector-removed-with-data-file": "a data file that is removed takes its deletion vector along",
    "first-row-id-walk": "row ids are given out in the order of the root's entries, from the "
    "snapshot's first-row-id on",
}
RULES: Mapping[str, str] = {**RULES_OF_TABLES, **RULES_OF_ROOT_MANIFESTS}
