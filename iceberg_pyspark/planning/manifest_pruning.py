"""Prunes manifests by their partition summaries.

Specification, "Scan Planning": the row predicate is projected through the partition spec of each
manifest, not through the current spec. Leaves of root manifests with data files are also pruned by
their column statistics, with the rules for files, and leaves of deletes by the data manifest that
they are for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.expressions.file_filters import compile_manifest_filter
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.expressions.projection import project_inclusive, project_strict
from iceberg_pyspark.expressions.rewriting import columns_of
from iceberg_pyspark.planning.entry_filter import PartitionLeaves, matching_metrics
from iceberg_pyspark.spec.entry_columns import FILTER_METRICS, metric_column
from iceberg_pyspark.spec.manifests import ManifestContent, ManifestFile, PartitionFieldSummary
from iceberg_pyspark.spec.partitioning import PartitionSpec, read_partition_type
from iceberg_pyspark.spec.retyped_columns import SchemasOfManifests
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import StructType


@dataclass(frozen=True, kw_only=True)
class SpecFilter:
    """A predicate projected through one spec.

    `inclusive` is false only for partitions without a matching row; `strict` is true only for
    partitions in which every row matches; `may_match` evaluates a manifest's summaries.
    `leaves` projects single leaves.
    """

    spec: PartitionSpec
    partition_type: StructType
    inclusive: Predicate
    strict: Predicate
    may_match: Callable[[tuple[PartitionFieldSummary, ...] | None], bool]
    leaves: PartitionLeaves


class SpecFilters:
    """The filters of a table's specs, created on first use."""

    def __init__(
        self,
        metadata: TableMetadata,
        predicate: Predicate,
        schemas: Sequence[Schema] = (),
        snapshot: Snapshot | None = None,
    ) -> None:
        """Filter by a predicate that is bound to the first of the schemas.

        The order of the schemas also decides about the types of partition values; by default, the
        table's newest schema is first. `snapshot` has the manifests.
        """
        self._metadata = metadata
        self._schemas = schemas or metadata.schemas_newest_first
        self.predicate = predicate
        self.schemas_of_manifests = SchemasOfManifests(metadata, self._schemas[0], snapshot)
        self._filters: dict[tuple[int, int | None], SpecFilter] = {}

    def of(self, manifest: ManifestFile) -> SpecFilter:
        """Return the filter for a manifest's spec; an unknown spec raises.

        If columns got other types since the manifest was written, the partition type is that of the
        manifest's time; a predicate on such a column raises `InvalidRequestError`.
        """
        if not self.schemas_of_manifests.retyped_since(manifest):
            return self.of_spec(manifest.partition_spec_id, manifest.manifest_path)
        spec = self._metadata.spec_by_id.get(manifest.partition_spec_id)
        self.schemas_of_manifests.check_columns(manifest, spec, columns_of(self.predicate))
        schema = self.schemas_of_manifests.schema_of(manifest)
        return self._of(manifest.partition_spec_id, manifest.manifest_path, schema)

    def of_spec(self, spec_id: int, where: str) -> SpecFilter:
        """Return the filter for a spec id; an error for an unknown spec begins with `where`."""
        return self._of(spec_id, where, None)

    def _of(self, spec_id: int, where: str, schema: Schema | None) -> SpecFilter:
        key = (spec_id, None if schema is None else schema.schema_id)
        if key not in self._filters:
            spec = self._metadata.spec_by_id.get(spec_id)
            if spec is None:
                spec_ids = ", ".join(str(i) for i in self._metadata.spec_by_id)
                raise InvalidMetadataError(
                    f"{where}: partition spec {spec_id} is not in the table's "
                    f"metadata, which has {spec_ids}"
                )
            self._filters[key] = self._project(spec, schema)
        return self._filters[key]

    def _project(self, spec: PartitionSpec, schema: Schema | None) -> SpecFilter:
        schemas = self._schemas if schema is None else (schema, *self._schemas)
        type_ = read_partition_type(spec, schemas)
        inclusive = project_inclusive(self.predicate, spec, type_)
        return SpecFilter(
            spec=spec,
            partition_type=type_,
            inclusive=inclusive,
            strict=project_strict(self.predicate, spec, type_),
            may_match=compile_manifest_filter(inclusive, type_),
            leaves=PartitionLeaves(spec, type_),
        )


def prune_manifests(manifests: list[ManifestFile], filters: SpecFilters) -> list[ManifestFile]:
    """Return the manifests that may contain a live file with a matching row."""
    candidates = [
        m for m in manifests if m.has_live_files and filters.of(m).may_match(m.partitions)
    ]
    # The statistics of a leaf of deletes do not say which columns its equality deletes compare.
    with_columns = [m for m in candidates if m.columns and m.content is ManifestContent.DATA]
    if not with_columns or isinstance(filters.predicate, AlwaysTrue):
        return candidates
    may_match = matching_metrics(_as_files(with_columns, filters.predicate), filters.predicate)
    without = {m.part for m, may in zip(with_columns, may_match.tolist(), strict=True) if not may}
    return [m for m in candidates if m.part not in without]


def without_needless_deletes(
    deletes: Sequence[ManifestFile],
    data: Sequence[ManifestFile],
    pruned_data: Sequence[ManifestFile],
) -> list[ManifestFile]:
    """Return the delete manifests that may apply to a file of the pruned data manifests.

    `data` are all data manifests of the snapshot. Proposal "Single-file commits": a delete manifest
    with an affinity has only deletion vectors of files in one data manifest. An affinity to a
    manifest that the snapshot does not have says nothing.
    """
    needless = {m.manifest_path for m in data} - {m.manifest_path for m in pruned_data}
    return [m for m in deletes if m.data_manifest not in needless]


def _as_files(manifests: Sequence[ManifestFile], predicate: Predicate) -> pa.Table:
    """Return the manifests as an entry table of files, with the predicate's metrics."""
    summaries_by_manifest = [{c.field_id: c for c in m.columns} for m in manifests]
    columns: dict[str, list[Any]] = {"record_count": [_row_count(m) for m in manifests]}
    types = {"record_count": pa.int64()}
    for field_id in columns_of(predicate):
        for metric in FILTER_METRICS:
            name = metric_column(metric, field_id)
            types[name] = pa.binary() if metric.endswith("bounds") else pa.int64()
            columns[name] = [
                None if (c := of.get(field_id)) is None else getattr(c, metric.removesuffix("s"))
                for of in summaries_by_manifest
            ]
    return pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})


def _row_count(m: ManifestFile) -> int:
    """Return the number of rows in the manifest's files, or -1 if it is unknown."""
    counts = (m.added_rows_count, m.existing_rows_count, m.deleted_rows_count)
    return -1 if None in counts else sum(c or 0 for c in counts)
