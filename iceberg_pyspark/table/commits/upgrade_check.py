"""Refuses upgrades to version 4 of tables whose delete files have paths without a scheme.

Specification of version 4, "Paths in Metadata": such paths have another meaning in version 4. An
upgrade only writes metadata, and position delete files keep the paths inside them.
"""

from __future__ import annotations

from iceberg_pyspark.changes.absolute_paths import with_schemes
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.spec.manifests import ManifestContent
from iceberg_pyspark.spec.relative_paths import RELATIVE_PATHS_VERSION
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.file_io import FileIO


def check_upgrade(io: FileIO, metadata: TableMetadata, version: int) -> None:
    """Refuse an upgrade after which the table's branches and tags could not be read.

    Older snapshots that cannot be read are refused when they are read.
    """
    if version < RELATIVE_PATHS_VERSION or metadata.format_version >= RELATIVE_PATHS_VERSION:
        return
    upgraded_metadata = with_schemes(metadata)
    paths: set[str] = set()
    for snapshot_id in {ref.snapshot_id for ref in metadata.refs.values()}:
        snapshot = upgraded_metadata.snapshot_by_id.get(snapshot_id)
        for manifest in [] if snapshot is None else read_snapshot_manifests(io, snapshot):
            if manifest.content is not ManifestContent.DELETES or manifest.manifest_path in paths:
                continue
            paths.add(manifest.manifest_path)
            try:
                read_entries(io, manifest, StructType(()))
            except UnsupportedFeatureError as e:
                raise InvalidRequestError(
                    f"table {metadata.location} cannot be upgraded to format version {version}: "
                    f"{e}; before the upgrade, run rewrite_position_delete_files with the option "
                    "rewrite-all in version 3, or rewrite_data_files in version 2"
                ) from e
