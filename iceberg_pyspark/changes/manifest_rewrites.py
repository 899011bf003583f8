"""Replaces manifests by new manifests with the same entries: no data file is added or removed.

Specification, "Manifests" and "Snapshots" (operation `replace`).
"""

from __future__ import annotations

from dataclasses import dataclass

from iceberg_pyspark.changes.manifest_changes import NewManifest, SnapshotBase, SnapshotPlan
from iceberg_pyspark.errors import ConcurrentChangeError
from iceberg_pyspark.spec.manifests import ManifestFile


@dataclass(frozen=True, kw_only=True)
class RewriteManifests:
    """A replacement of manifests by new ones with the same live entries, all EXISTING.

    Manifests that other commits add meanwhile stay. If one of `replaced_manifests` is no longer in
    the table, the commit raises `ConcurrentChangeError`.
    """

    replaced_manifests: tuple[ManifestFile, ...]
    new: tuple[NewManifest, ...]


def plan_manifest_rewrite(action: RewriteManifests, base: SnapshotBase) -> SnapshotPlan:
    """Return the plan of the rewrite on this base; raise `ConcurrentChangeError` on a conflict."""
    present = {m.part: _content_of(m) for m in base.manifests}
    missing = [
        m.manifest_path for m in action.replaced_manifests if present.get(m.part) != _content_of(m)
    ]
    if missing:
        raise ConcurrentChangeError(
            f"table {base.metadata.location}: {len(missing)} of the manifests to rewrite have "
            "changed or are no longer in it, among them "
            f"{min(missing)}; another commit replaced them: "
            "run the operation again"
        )
    replaced_manifests = {m.part for m in action.replaced_manifests}
    return SnapshotPlan(
        operation="replace",
        new=action.new,
        unchanged_manifests=tuple(
            m for m in base.manifests if m.part not in replaced_manifests and m.has_live_files
        ),
        merge=False,
        counts={
            "manifests-replaced": len(action.replaced_manifests),
            "entries-processed": sum(len(m.entries) for m in action.new),
        },
    )


def _content_of(manifest: ManifestFile) -> tuple[int | None, bytes | None]:
    """Return the manifest's values that its entries inherit.

    The first commit of version 3 assigns first row ids, and each snapshot sets its dead positions.
    """
    return manifest.first_row_id, manifest.dead_positions
