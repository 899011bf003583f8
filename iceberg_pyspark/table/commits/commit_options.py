"""Defines the user's options of a snapshot, in a module of its own that executors can import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from iceberg_pyspark.spec.snapshots import MAIN


@dataclass(frozen=True, kw_only=True)
class CommitOptions:
    """The target of a snapshot, and additional entries of its summary.

    `write_id` is written into the summary; None: a new id. `creates_branch`: a missing branch is
    created from main's snapshot. `stages_only`: no branch is moved to the snapshot, which waits to
    be published.
    """

    branch: str = MAIN
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    write_id: str | None = None
    creates_branch: bool = False
    stages_only: bool = False
