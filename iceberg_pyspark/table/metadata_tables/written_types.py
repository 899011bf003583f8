"""Determines the column types of a manifest's values.

After REPLACE TABLE these are the types of the manifest's own schema: the new table may give a
column another type, and older manifests keep their values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from iceberg_pyspark.formats.manifest_reader import read_manifest_header
from iceberg_pyspark.spec.manifests import ManifestFile
from iceberg_pyspark.spec.partitioning import PartitionSpec, partition_type, read_partition_type
from iceberg_pyspark.spec.retyped_columns import has_retyped_columns
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.file_io import FileIO


@dataclass(frozen=True, kw_only=True)
class WrittenTypes:
    """The types with which the manifests of a table were written."""

    specs: Mapping[int, PartitionSpec]
    schemas: Sequence[Schema] = field(repr=False)
    """The current schema, then the others."""

    is_retyped: bool
    """Whether a column has got another type, so that each manifest must say which types it has."""

    @staticmethod
    def of(metadata: TableMetadata) -> WrittenTypes:
        """Return the types of a table's manifests."""
        schemas = metadata.schemas_newest_first
        return WrittenTypes(
            specs=metadata.spec_by_id, schemas=schemas, is_retyped=has_retyped_columns(schemas)
        )

    def schemas_of(self, io: FileIO, manifest: ManifestFile) -> Sequence[Schema]:
        """Return the schemas in the order in which they apply to a manifest."""
        if not self.is_retyped or manifest.is_root:
            return self.schemas
        return (read_manifest_header(io, manifest.manifest_path).schema, *self.schemas)

    def partition_type(self, spec_id: int, schemas: Sequence[Schema]) -> StructType:
        """Return the type of the tuples of a manifest with these schemas."""
        spec = self.specs[spec_id]
        if self.is_retyped:
            return read_partition_type(spec, schemas)
        return partition_type(spec, schemas)
