"""Finds the files that a snapshot removes from leaves without rewriting the leaves.

Proposal "Single-file commits": the positions in a manifest's new deletion vector that are not in
the vector that it replaces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from iceberg_pyspark.changes.manifest_changes import as_deleted_entry
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.formats.manifest_reader import entries_of
from iceberg_pyspark.formats.puffin.deletion_vectors import decode_deletion_vector
from iceberg_pyspark.formats.roots.root_manifests import read_base_root
from iceberg_pyspark.spec.manifests import ManifestContent, ManifestEntry
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.partition_types import partition_type_of


def removed_from_leaves(
    io: FileIO, metadata: TableMetadata, snapshot: Snapshot, content: ManifestContent
) -> Iterator[ManifestEntry]:
    """Yield the entries of leaves that the snapshot removed, with status DELETED and its id."""
    if snapshot.root_manifest is None:
        return
    changed_vectors = read_base_root(io, snapshot).changed_vectors
    for leaf in read_snapshot_manifests(io, snapshot):
        vector = changed_vectors.get(leaf.manifest_path)
        if leaf.is_root or leaf.content is not content or vector is None:
            continue
        entries = read_entries(
            io,
            replace(leaf, dead_positions=None, dead_count=0),
            partition_type_of(metadata, leaf, snapshot),
            drop_deleted=False,
            metrics="all",
        )
        positions = decode_deletion_vector(vector, leaf.manifest_path).to_array()
        for entry in entries_of(entries.take(pa.array(np.frombuffer(positions, np.uint64)))):
            yield as_deleted_entry(entry, snapshot.snapshot_id)
