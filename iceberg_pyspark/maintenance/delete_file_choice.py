"""Which position delete files are worth writing anew, by the JVM connector's options.

Files of a size outside of the wanted range are candidates; those of one partition are written
together where they are many or large enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.partitioning import PartitionKey, partition_key
from iceberg_pyspark.spec.property_types import LONG_MAX, BoolProperty, IntProperty

_TARGET_SIZE = 67_108_864
_TARGET = IntProperty("target-file-size-bytes", _TARGET_SIZE, 1, LONG_MAX)
_LEAST = "min-file-size-bytes"
_GREATEST = "max-file-size-bytes"
_COUNT = IntProperty("min-input-files", 5, 1)
_ALL = BoolProperty("rewrite-all", False)
WITHOUT_EFFECT = (
    "max-file-group-size-bytes",
    "max-concurrent-file-group-rewrites",
    "partial-progress.enabled",
    "partial-progress.max-commits",
    "rewrite-job-order",
)
"""Options of how Java divides the work, which is done in one commit here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFileOptions:
    """Sizes are in bytes; those that are not given follow from the target."""

    target_size: int = _TARGET_SIZE
    least_size: int = _TARGET_SIZE * 3 // 4
    greatest_size: int = _TARGET_SIZE * 9 // 5
    least_count: int = 5
    rewrite_all: bool = False

    @staticmethod
    def of(options: Mapping[str, str]) -> DeleteFileOptions:
        """Parse them; raises `InvalidRequestError` for one that is unknown or no good value."""
        known = (_TARGET.name, _LEAST, _GREATEST, _COUNT.name, _ALL.name, *WITHOUT_EFFECT)
        for name in options:
            if name not in known:
                raise InvalidRequestError(
                    f"rewrite_position_delete_files has no option '{name}'; its options are "
                    f"{', '.join(known)}"
                )
        target = _TARGET.of(options)
        chosen = DeleteFileOptions(
            target_size=target,
            least_size=IntProperty(_LEAST, target * 3 // 4, 0, LONG_MAX).of(options),
            greatest_size=IntProperty(_GREATEST, target * 9 // 5, 1, LONG_MAX).of(options),
            least_count=_COUNT.of(options),
            rewrite_all=_ALL.of(options),
        )
        if not chosen.least_size < target < chosen.greatest_size:
            raise InvalidRequestError(
                f"{_LEAST} ({chosen.least_size}) must be less than {_TARGET.name} ({target}), and "
                f"that less than {_GREATEST} ({chosen.greatest_size})"
            )
        return chosen


def chosen_groups(
    files: Iterable[DataFile], options: DeleteFileOptions
) -> list[tuple[DataFile, ...]]:
    """The position delete files to write anew, by partition."""
    groups: dict[tuple[int, PartitionKey], list[DataFile]] = {}
    for f in files:
        size = f.file_size_in_bytes
        if options.rewrite_all or not options.least_size <= size <= options.greatest_size:
            groups.setdefault((f.spec_id, partition_key(f.partition)), []).append(f)
    return [tuple(group) for group in groups.values() if _is_worth_it(group, options)]


def _is_worth_it(group: list[DataFile], options: DeleteFileOptions) -> bool:
    size = sum(f.file_size_in_bytes for f in group)
    several = len(group) > 1 and (len(group) >= options.least_count or size > options.target_size)
    return options.rewrite_all or several or size > options.greatest_size
