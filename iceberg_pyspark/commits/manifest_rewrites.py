"""Replaces manifests by others with the same entries: no data file is added or removed.

Specification, "Manifests" and "Snapshots" (operation `replace`).
"""

from __future__ import annotations

from dataclasses import dataclass

from iceberg_pyspark.commits.manifest_changes import NewManifest, SnapshotBase, SnapshotPlan
from iceberg_pyspark.errors import ConcurrentChangeError
from iceberg_pyspark.spec.manifests import ManifestFile


@dataclass(frozen=True, kw_only=True)
class RewriteManifests:
    """Put new manifests in place of others; their live entries are the same, all EXISTING.

    Manifests that other commits add meanwhile stay; one of `replaced` that is not there any more
    is a `ConcurrentChangeError`.
    """

    replaced: tuple[ManifestFile, ...]
    new: tuple[NewManifest, ...]


def plan_manifest_rewrite(action: RewriteManifests, base: SnapshotBase) -> SnapshotPlan:
    """The rewrite on this base."""
    present = {m.part: _content_of(m) for m in base.manifests}
    missing = [m.manifest_path for m in action.replaced if present.get(m.part) != _content_of(m)]
    if missing:
        raise ConcurrentChangeError(
            f"table {base.metadata.location}: {len(missing)} of the manifests to rewrite have "
            "changed or are no longer in it, among them "
            f"{min(missing)}; another commit replaced them: "
            "run the operation again"
        )
    replaced = {m.part for m in action.replaced}
    return SnapshotPlan(
        operation="replace",
        new=action.new,
        unchanged=tuple(m for m in base.manifests if m.part not in replaced and m.has_live_files),
        merge=False,
        counts={
            "manifests-replaced": len(action.replaced),
            "entries-processed": sum(len(m.entries) for m in action.new),
        },
    )


def _content_of(manifest: ManifestFile) -> tuple[int | None, bytes | None]:
    """The values that the entries of a manifest inherit.

    First row ids come with the first commit of version 3; dead positions are those of a snapshot.
    """
    return manifest.first_row_id, manifest.dead_positions
