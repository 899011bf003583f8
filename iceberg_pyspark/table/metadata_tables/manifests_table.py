"""Implements the metadata tables `manifests` (one snapshot) and `all_manifests` (all snapshots)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.spec import types as ice
from iceberg_pyspark.spec.manifests import ManifestContent, ManifestFile
from iceberg_pyspark.spec.partitioning import source_type
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.transforms import human_value
from iceberg_pyspark.spec.values import value_from_bytes
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.metadata_tables.entry_values import WrittenTypes
from iceberg_pyspark.table.metadata_tables.rows import KnownRows, arrow_of_rows

_COUNTS = (
    (5, "added_data_files_count"),
    (6, "existing_data_files_count"),
    (7, "deleted_data_files_count"),
    (15, "added_delete_files_count"),
    (16, "existing_delete_files_count"),
    (17, "deleted_delete_files_count"),
)


def manifests_schema(*, of_all_snapshots: bool) -> Schema:
    """Return the columns of `manifests` or, with `of_all_snapshots`, of `all_manifests`.

    As in Java, the two tables differ in the columns that may be null.
    """
    strict = not of_all_snapshots

    def column(
        field_id: int, name: str, type_: ice.PrimitiveType, required: bool = True
    ) -> ice.NestedField:
        return ice.NestedField(field_id=field_id, name=name, type=type_, required=required)

    summary = ice.StructType(
        (
            column(10, "contains_null", ice.BooleanType()),
            column(11, "contains_nan", ice.BooleanType(), of_all_snapshots),
            column(12, "lower_bound", ice.StringType(), False),
            column(13, "upper_bound", ice.StringType(), False),
        )
    )
    fields = (
        column(14, "content", ice.IntegerType()),
        column(1, "path", ice.StringType()),
        column(2, "length", ice.LongType()),
        column(3, "partition_spec_id", ice.IntegerType(), strict),
        column(4, "added_snapshot_id", ice.LongType(), strict),
        *(column(i, name, ice.IntegerType(), strict or i > 7) for i, name in _COUNTS),
        ice.NestedField(
            field_id=8,
            name="partition_summaries",
            type=ice.ListType(element_id=9, element_type=summary, element_required=True),
            required=strict,
        ),
    )
    if of_all_snapshots:
        fields += (
            column(18, "reference_snapshot_id", ice.LongType()),
            column(19, "key_metadata", ice.BinaryType(), False),
        )
    return Schema(fields=fields)


@dataclass(frozen=True, kw_only=True)
class ManifestRows:
    """A reader of snapshots; it yields one row per manifest in the manifest list."""

    schema: Schema
    written_types: WrittenTypes
    schema_of: Mapping[int, Schema]
    """The schema of each snapshot if columns got other types; otherwise empty."""

    def read(self, io: FileIO, task: Snapshot, projection: Schema) -> Iterator[pa.RecordBatch]:
        """Yield the manifests of one snapshot."""
        manifests = read_snapshot_manifests(io, task)
        rows = arrow_of_rows(self.schema, (self._row(m, task) for m in manifests))
        yield from KnownRows(schema=self.schema).read(io, rows, projection)

    def _row(self, m: ManifestFile, snapshot: Snapshot) -> dict[str, Any]:
        counts = (m.added_files_count, m.existing_files_count, m.deleted_files_count)
        none = (0, 0, 0)
        counts_of_files = counts + none if m.content is ManifestContent.DATA else none + counts
        row = {
            "content": int(m.content),
            "path": m.manifest_path,
            "length": m.manifest_length,
            "partition_spec_id": m.partition_spec_id,
            "added_snapshot_id": m.added_snapshot_id,
            **dict(zip((name for _, name in _COUNTS), counts_of_files, strict=True)),
            "partition_summaries": self._summaries(m, snapshot),
            "reference_snapshot_id": snapshot.snapshot_id,
            "key_metadata": m.key_metadata,
        }
        return {f.name: row[f.name] for f in self.schema.fields}

    def _summaries(self, m: ManifestFile, snapshot: Snapshot) -> list[dict[str, Any]] | None:
        if m.partitions is None:
            required = self.schema.find("partition_summaries").required
            return [] if required else None
        spec = self.written_types.specs[m.partition_spec_id]
        if len(spec.fields) != len(m.partitions):
            raise InvalidMetadataError(
                f"{m.manifest_path}: its manifest list has {len(m.partitions)} partition summaries "
                f"for it, which do not match partition spec {m.partition_spec_id} of the table"
            )
        # the list is read without its manifests; their snapshots may have expired
        ids = (m.added_snapshot_id, snapshot.snapshot_id)
        own = [self.schema_of[i] for i in ids if i is not None and i in self.schema_of]
        schemas = (*own, *self.written_types.schemas)
        types = self.written_types.partition_type(m.partition_spec_id, schemas)
        summaries = []
        for field, result, summary in zip(spec.fields, types.fields, m.partitions, strict=True):
            source = source_type(field, schemas)
            bounds = [
                human_value(
                    field.transform,
                    source,
                    None if bound is None else _bound_value(result.type, bound),
                )
                for bound in (summary.lower_bound, summary.upper_bound)
            ]
            summaries.append(
                {
                    "contains_null": summary.contains_null,
                    "contains_nan": summary.contains_nan,
                    "lower_bound": bounds[0],
                    "upper_bound": bounds[1],
                }
            )
        return summaries


def _bound_value(type_: ice.Type, bound: bytes) -> Any:
    """Return the bound's value, or its bytes if the type is unknown."""
    return bound if isinstance(type_, ice.UnknownType) else value_from_bytes(type_, bound)
