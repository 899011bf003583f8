"""Computes the gain of each maintenance procedure, and the command to run it.

Manifest rewrites and snapshot expiry return their own plans. Rewrites of data files and deletes are
counted by the rules of their plans, without an object for each file.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable
from iceberg_pyspark.catalogs.catalog_properties import (
    configured_properties,
    default_name,
    shown_properties,
)
from iceberg_pyspark.errors import IcebergError, UnsupportedFeatureError
from iceberg_pyspark.expressions.condition_text import sql_string
from iceberg_pyspark.spec.table_properties import DELETE_GRANULARITY
from iceberg_pyspark.sql_text.names import is_path, readable_name
from iceberg_pyspark.table.health.delete_file_counts import DeleteRewriteCount
from iceberg_pyspark.table.health.examination import Examination
from iceberg_pyspark.table.health.figures import ProcedureGain
from iceberg_pyspark.table.maintenance.table_maintenance import TableMaintenance

_FLAGS = ("uri", "warehouse")


@dataclass(frozen=True, kw_only=True)
class Gains:
    """The procedures of one table; orphan files are only searched for if `list_storage`."""

    catalog: Catalog
    table: LoadedTable
    maintenance: TableMaintenance
    examination: Examination
    list_storage: bool

    def all(self) -> Iterator[ProcedureGain]:
        """Yield the gain of each procedure, in the order in which they are best run."""
        yield self._of("rewrite_equality_deletes", self._equality_deletes)
        yield self._of("rewrite_position_delete_files", self._position_deletes)
        yield self._of("rewrite_data_files", self._data_files)
        yield self._of("rewrite_manifests", self._manifests)
        yield self._of("expire_snapshots", self._snapshots)
        yield self._of("remove_orphan_files", self._orphans)

    def _of(self, procedure: str, ask: Callable[[], _Gain]) -> ProcedureGain:
        try:
            gain = ask()
        except IcebergError as e:
            gain = _Gain(effect="not known", problem=str(e))
        return ProcedureGain(
            procedure=procedure,
            is_worthwhile=gain.is_worthwhile,
            what=gain.effect,
            files_before=gain.before,
            files_after=gain.after,
            is_upper_bound=gain.is_upper_bound,
            bytes=gain.bytes,
            problem=gain.problem,
            call=sql_call(self.catalog, self.table, procedure),
            command=shell_command(self.catalog, self.table, procedure),
        )

    def _data_files(self) -> _Gain:
        if self.table.plan_scan is not None:
            raise UnsupportedFeatureError(
                "its catalog's server plans its scans; rewrite it with an engine of the server's"
            )
        count = self.examination.rewrite
        groups = "1 group" if count.groups == 1 else f"{count.groups:,} groups"
        return _Gain(
            effect=f"{groups} of files, written together" if count.files else "nothing to do",
            before=count.files,
            after=count.new_files,
            bytes=count.bytes,
            is_worthwhile=count.files > 0,
        )

    def _position_deletes(self) -> _Gain:
        metadata = self.table.metadata
        per_file = DELETE_GRANULARITY.of(metadata.properties) == "file"
        count = self.examination.delete_files.position_rewrite(per_file=per_file)
        becomes = "deletion vectors" if metadata.format_version >= 3 else "fewer delete files"
        return _deletes(count, f"position deletes become {becomes}")

    def _equality_deletes(self) -> _Gain:
        count = self.examination.delete_files.equality_rewrite()
        return _deletes(count, "equality deletes become deletes by position")

    def _manifests(self) -> _Gain:
        plan = self.maintenance.rewrite_manifests(dry_run=True)
        before, after = plan.rewritten_manifests_count, plan.added_manifests_count
        return _Gain(
            effect="manifests of few partitions each" if before else "nothing to do",
            before=before,
            after=after,
            is_worthwhile=before > 0,
        )

    def _snapshots(self) -> _Gain:
        plan = self.maintenance.expire_snapshots(dry_run=True)
        files = (
            plan.deleted_data_files_count
            + plan.deleted_position_delete_files_count
            + plan.deleted_equality_delete_files_count
            + plan.deleted_manifest_files_count
            + plan.deleted_manifest_lists_count
            + plan.deleted_statistics_files_count
        )
        snapshots = plan.expired_snapshots_count
        return _Gain(
            effect=f"snapshots go: {snapshots:,}; and the files that only they have"
            if snapshots
            else "nothing to do",
            before=files,
            after=0,
            is_worthwhile=snapshots > 0 or bool(plan.expired_refs),
        )

    def _orphans(self) -> _Gain:
        if not self.list_storage:
            return _Gain(effect="only a listing of the storage tells")
        count = len(self.maintenance.remove_orphan_files(dry_run=True).orphan_file_locations)
        return _Gain(
            effect="files that nothing needs go" if count else "nothing to do",
            before=count,
            after=0,
            is_worthwhile=count > 0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gain:
    effect: str
    before: int | None = None
    after: int | None = None
    bytes: int | None = None
    is_worthwhile: bool = False
    is_upper_bound: bool = False
    problem: str | None = None


def _deletes(count: DeleteRewriteCount, effect: str) -> _Gain:
    return _Gain(
        effect=effect if count.files else "nothing to do",
        before=count.files,
        after=count.added_at_most,
        bytes=count.bytes,
        is_worthwhile=count.files > 0,
        is_upper_bound=count.files > 0,
    )


def sql_call(catalog: Catalog, table: LoadedTable, procedure: str) -> str | None:
    """Return the procedure call in Spark SQL, or None for a table at a path, without catalog."""
    identifier = table.identifier
    if not identifier.namespace:
        return None
    name = readable_name(identifier.levels)
    return (
        f"CALL {readable_name((catalog.name, 'system'))}.{procedure}(table => {sql_string(name)})"
    )


def shell_command(catalog: Catalog, table: LoadedTable, procedure: str) -> str:
    """Return the shell command of the procedure, with the catalog's properties except secrets."""
    identifier = table.identifier
    command = ["maintain", procedure.replace("_", "-")]
    if not identifier.namespace and is_path(identifier.name):
        return shlex.join(["iceberg-py", *command, identifier.name])
    name = readable_name(identifier.levels)
    return shlex.join(["iceberg-py", *_options(catalog), *command, name])


def _options(catalog: Catalog) -> Iterator[str]:
    """Yield the options that identify the catalog, except those that the configuration sets."""
    if catalog.name != default_name(os.environ):
        yield f"--catalog={catalog.name}"
    properties_of_catalog = configured_properties(catalog.name, os.environ)
    properties = shown_properties(catalog.properties)
    for key, value in catalog.properties.items():
        if properties_of_catalog.get(key) == value or properties[key] != value:
            continue
        yield f"--{key}={value}" if key in _FLAGS else f"--property={key}={value}"
