"""What a user may say about any snapshot; apart from its commit, for executors get it too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from iceberg_pyspark.spec.snapshots import MAIN


@dataclass(frozen=True, kw_only=True)
class CommitOptions:
    """Where a snapshot goes, and what its summary says besides counts.

    `write_id` stands in the summary; None: a new one. `creates_branch`: a branch that is not there
    begins at main's snapshot. `stages_only`: no branch gets the snapshot, it waits to be published.
    """

    branch: str = MAIN
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    write_id: str | None = None
    creates_branch: bool = False
    stages_only: bool = False
