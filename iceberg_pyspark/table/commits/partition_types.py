"""Determines the types of partition values, also of those that only a manifest defines."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.formats.manifest_reader import read_partition_types
from iceberg_pyspark.spec.manifests import ManifestFile
from iceberg_pyspark.spec.partitioning import partition_type, untyped_fields, with_types_of
from iceberg_pyspark.spec.retyped_columns import SchemasOfManifests
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.file_io import FileIO


def common_partition_type(
    io: FileIO, manifests: Sequence[ManifestFile], metadata: TableMetadata, spec_id: int
) -> StructType | None:
    """Return the partition type of a spec; types that the schemas lack come from the manifests.

    Returns None if the manifests disagree.
    """
    spec = metadata.spec_by_id[spec_id]
    type_ = partition_type(spec, metadata.schemas_newest_first)
    untyped_ids = untyped_fields(spec, type_)
    if not untyped_ids:
        return type_
    types = [read_partition_types(io, m.manifest_path, m.key_metadata) for m in manifests]
    return with_types_of(types, untyped_ids, type_)


def ambiguous_types(table: object, spec_id: int) -> InvalidRequestError:
    """Return the error for manifests of a spec that disagree about the partition type."""
    return InvalidRequestError(
        f"table {table}: manifests of partition spec {spec_id} store the values of one field as "
        "different types, so the right type is unknown; files of this spec can be read, but not "
        "added, and its manifests cannot be rewritten"
    )


def partition_type_of(
    metadata: TableMetadata,
    manifest: ManifestFile,
    snapshot: Snapshot | None,
    columns: Collection[int] = (),
) -> StructType:
    """Return the partition type of a manifest's spec; raise `InvalidMetadataError` if unknown.

    `snapshot` has the manifest. Raises `InvalidRequestError` if the manifest is from before the
    table was replaced, and its tuples, or `columns` in its files, have other types.
    """
    spec = metadata.spec_by_id.get(manifest.partition_spec_id)
    if spec is None:
        raise InvalidMetadataError(
            f"{manifest.manifest_path} has partition spec {manifest.partition_spec_id}, which "
            f"table {metadata.location} does not have"
        )
    schemas_of_manifests = SchemasOfManifests(metadata, metadata.current_schema, snapshot)
    schemas_of_manifests.check_partitions(manifest, spec)
    schemas_of_manifests.check_columns(manifest, spec, columns)
    return partition_type(spec, metadata.schemas_newest_first)


def has_other_types(
    metadata: TableMetadata, manifests: Sequence[ManifestFile], snapshot: Snapshot | None
) -> bool:
    """Return whether columns got other types since one of the snapshot's manifests was written."""
    schemas_of_manifests = SchemasOfManifests(metadata, metadata.current_schema, snapshot)
    return any(schemas_of_manifests.retyped_since(m) for m in manifests)
