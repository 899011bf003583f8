"""Leaf manifests of version 4, and the entries of roots that this process wrote."""

from __future__ import annotations

from dataclasses import replace

from iceberg_pyspark.formats.roots.leaf_manifests import write_leaf_manifest
from iceberg_pyspark.formats.roots.written_roots import WrittenRoot
from iceberg_pyspark.spec.content_entries import ContentStatus
from iceberg_pyspark.spec.manifests import ManifestContent
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.content_entries import NO_FIELDS, TABLE, leaf_entry
from tests.support.manifests import NO_COLUMNS, a_file, deleted, existing


def test_the_smallest_sequence_number_is_that_of_live_entries() -> None:
    manifest = write_leaf_manifest(
        MemoryFileIO(),
        f"{TABLE}/metadata/leaf.parquet",
        [deleted(a_file(f"{TABLE}/data/a"), 1), existing(a_file(f"{TABLE}/data/b"), 3)],
        spec=PartitionSpec(spec_id=0),
        schema=NO_COLUMNS,
        partition_type=NO_FIELDS,
        table_location=TABLE,
        content=ManifestContent.DATA,
        snapshot_id=7,
    )
    assert manifest.min_sequence_number == 3


def test_a_removed_delete_manifest_belongs_to_no_data_manifest() -> None:
    entries = [
        replace(leaf_entry(status, path=name), referenced_file="data-leaf")
        for name, status in (("live", ContentStatus.EXISTING), ("removed", ContentStatus.DELETED))
    ]
    assert WrittenRoot(entries=entries, length=1).targets() == {"live": "data-leaf"}
