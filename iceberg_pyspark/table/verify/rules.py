"""Defines the rules by name, each with a sentence that must be true.

Findings contain the names, so the names must not change.
"""

from __future__ import annotations

from collections.abc import Mapping

RULES_OF_TABLES: Mapping[str, str] = {
    "known-snapshot": "branches, tags, the snapshot log and the current snapshot id refer to "
    "snapshots in the table metadata",
    "unique-snapshot-id": "no two snapshots have the same id",
    "known-schema": "the schema that a snapshot names is in the table metadata",
    "known-partition-spec": "the partition spec of a manifest is in the table metadata",
    "snapshot-sequence-number": "the sequence number of a snapshot is greater than that of its "
    "parent, and at most the table's last sequence number",
    "snapshot-row-ids": "the row id ranges of snapshots do not overlap, and are below the table's "
    "next-row-id",
    "file-exists": "files to which the metadata refers exist",
    "file-length": "files are as long as the metadata says",
    "readable": "manifest lists, root manifests, manifests and deletion vectors can be read",
    "manifest-counts": "the counts of a manifest in the manifest list equal those of its entries",
    "sequence-number-range": "the sequence number of an entry is at most that of its manifest, "
    "which is at most that of the snapshot; the minimum sequence number of a manifest is at most "
    "those of its live entries",
    "one-entry-per-file": "a file or deletion vector is live at most once in a snapshot",
    "one-vector-per-data-file": "a data file has at most one live deletion vector",
    "vector-applies": "a deletion vector is not older than its data file",
    "row-ids": "the row id ranges of live data files do not overlap, and are below next-row-id",
    "valid-schema": "schemas have the types, defaults, field ids, names and identifier fields "
    "that the format version allows",
    "retention-of-refs": "only branches have min-snapshots-to-keep and max-snapshot-age-ms, "
    "and main has no max-ref-age-ms",
    "history-order": "the snapshot log and the metadata log are in order of time, and not later "
    "than the table's last update, up to a minute",
    "statistics-of-snapshot": "statistics, and statistics of partitions, are of snapshots in the "
    "table metadata, and each snapshot has at most one file of each",
    "encrypted": "the manifest lists, manifests and files of a table with encryption.key-id are "
    "encrypted",
    "partition-summaries": "the partition values of a manifest's live files are within the "
    "summaries in the manifest list",
    "column-metrics": "the counts of a column are not negative, nulls and NaNs are values, and its "
    "lower bound is not above its upper bound",
    "vector-partition": "a deletion vector has the partition and the spec of its data file",
    "vector-of-live-file": "the data file of a live deletion vector is live in the same snapshot",
    "summary-totals": "the totals in the summary of a snapshot are those of its live files",
    "vector-iff-type": "an entry contains the place of a deletion vector if and only if it is the "
    "entry of a vector",
    "equality-ids-iff-equality-deletes": "an entry has equality_ids if and only if its file "
    "contains equality deletes",
    "first-row-id-of-data": "only entries of data files and data manifests have first_row_id",
}
RULES_OF_ROOT_MANIFESTS: Mapping[str, str] = {
    "root-manifest-xor-manifest-list": "a snapshot has either a manifest list or, from version 4 "
    "on, a root manifest",
    "timestamp-after-parent": "a snapshot with a root manifest is later than its parent",
    "file-content": "the key-value metadata of a manifest states its content correctly: root, data "
    "or delete",
    "types-in-root": "only a root contains entries of manifests and of manifest deletion vectors",
    "leaf-content": "a data leaf contains only data files, and a delete leaf only deletes",
    "known-status": "an entry has a status that its form of root manifest defines",
    "vector-place": "the deletion vector of a data file is in a Puffin file; the deletion vector "
    "of a manifest is in a Puffin file or inline",
    "manifest-stats-iff-manifest": "an entry has all fields of manifest_stats if it is the entry "
    "of a manifest, and none otherwise",
    "sort-order-of-data": "only entries of data files have sort_order_id",
    "referenced-file": "the entry of a vector names the file to which the vector applies; entries "
    "of other files, except delete manifests, name no file",
    "location": "an entry has a location, unless its vector is inline",
    "file-size-iff-location": "an entry has a file size if and only if it has a location",
    "file-format": "the content type of the file allows its format",
    "partition-spec-id": "an entry has a partition spec: entries of a leaf have the spec of the "
    "leaf, and the vector of a manifest has the spec of the manifest",
    "explicit-in-root": "entries of a root inherit no values",
    "inherit-in-leaf": "ADDED entries of a leaf inherit their numbers from the leaf's entry in the "
    "root",
    "explicit-in-leaf": "entries of a leaf that are not ADDED inherit no values",
    "manifest-sequence-numbers": "both sequence numbers of a manifest equal that of the commit "
    "that wrote the manifest",
    "added-by-this-snapshot": "an ADDED entry has the id and the sequence number of the snapshot",
    "existing-is-older": "an EXISTING entry of a file was added by an earlier snapshot",
    "deleted-by-this-snapshot": "a DELETED entry has the id of the snapshot that removes it",
    "vector-sequence-number": "an ADDED vector has the sequence number of the commit",
    "record-count": "record_count is the number of entries of a manifest, or the number of "
    "positions of a vector",
    "manifest-stats": "manifest_stats equal the counts of the leaf's entries",
    "content-stats": "the column statistics in the root's entry for a leaf hold for every entry of "
    "the leaf",
    "tight-bounds": "an entry with tight_bounds has both bounds of the column, if it has values; "
    "the tight bounds of a leaf are the least and greatest of its entries' tight bounds, and no "
    "deletion vector of the manifest applies",
    "no-mixed-leaf": "a leaf whose entry is ADDED contains only ADDED entries; any other new leaf "
    "contains only EXISTING entries",
    "no-deleted-leaf": "a manifest is never DELETED: its deletion vector marks its removed files",
    "one-live-manifest-vector": "a manifest has at most one live deletion vector",
    "vector-of-live-manifest": "the manifest of a live manifest deletion vector is live in the "
    "same root",
    "vector-positions": "the positions of a vector are within its manifest or data file",
    "cumulative-manifest-vector": "the deletion vector of a manifest contains all positions of the "
    "manifest's previous vector",
    "manifest-vector-replacement": "the deletion vector of a manifest is either carried over, or "
    "DELETED in the root that replaces it",
    "affinity": "a delete manifest that names a data manifest contains only vectors of files of "
    "that data manifest, and the data manifest is live in the same root",
    "parent-removals-recorded": "a removed file that had its entry in the parent's root has a "
    "DELETED entry",
    "leaf-contents-kept": "a file that was in a leaf of the parent is removed only by the deletion "
    "vector of the leaf",
    "additions-recorded": "a file that the parent did not have has an ADDED entry",
    "added-is-new": "the parent did not have the file of an ADDED entry",
    "deleted-was-live": "the file or vector of a DELETED entry was live in the parent, and the "
    "file is not live in this snapshot",
    "existing-unchanged": "carried-over entries keep their ids and sequence numbers",
    "vector-removed-with-data-file": "the deletion vector of a removed data file is removed too",
    "first-row-id-walk": "row ids are assigned in the order of the root's entries, beginning with "
    "the snapshot's first-row-id",
}
