"""Chooses the position delete files to rewrite, by the options of the JVM connector.

Files outside of the size range are candidates. The candidates of one partition are rewritten
together if they are numerous or large enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.partitioning import PartitionKey, partition_key
from iceberg_pyspark.table.maintenance.rewrites.rewrite_options import (
    REWRITE_ALL,
    SHARED_OPTIONS,
    WantedSizes,
    check_options,
)

_PROCEDURE = "rewrite_position_delete_files"
_TARGET_SIZE = 67_108_864
WITHOUT_EFFECT = (
    "max-file-group-size-bytes",
    "max-concurrent-file-group-rewrites",
    "partial-progress.enabled",
    "partial-progress.max-commits",
    "rewrite-job-order",
)
"""Options for how Java divides the work; here, the work is done in one commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFileOptions:
    """The options of a rewrite of position delete files."""

    sizes: WantedSizes
    rewrite_all: bool

    @staticmethod
    def of(options: Mapping[str, str]) -> DeleteFileOptions:
        """Parse the options; raise `InvalidRequestError` for an unknown option or a wrong value."""
        check_options(_PROCEDURE, options, SHARED_OPTIONS, WITHOUT_EFFECT)
        return DeleteFileOptions(
            sizes=WantedSizes.of(_PROCEDURE, options, _TARGET_SIZE),
            rewrite_all=REWRITE_ALL.of(options),
        )


def chosen_groups(
    files: Iterable[DataFile], options: DeleteFileOptions
) -> list[tuple[DataFile, ...]]:
    """Return the position delete files to rewrite, grouped by partition."""
    groups: dict[tuple[int, PartitionKey], list[DataFile]] = {}
    for f in files:
        if options.rewrite_all or not options.sizes.has(f.file_size_in_bytes):
            groups.setdefault((f.spec_id, partition_key(f.partition)), []).append(f)
    return [
        tuple(group)
        for group in groups.values()
        if options.rewrite_all
        or options.sizes.gain(len(group), sum(f.file_size_in_bytes for f in group))
    ]
