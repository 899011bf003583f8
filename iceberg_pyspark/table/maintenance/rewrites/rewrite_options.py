"""Options of rewrites, with Java's defaults, and the position delete files that they choose.

Files outside of the size range are candidates. The candidates of one partition are rewritten
together if they are numerous or large enough.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.partitioning import PartitionKey, partition_key
from iceberg_pyspark.spec.property_types import LONG_MAX, BoolProperty, IntProperty, TableProperty


class RewriteReason(Enum):
    """The reason for which a rewrite chooses a data file; the value is the phrase of a plan.

    A file has one reason, the first of this list that applies: deletes alone are worth a rewrite,
    a small file only in a group with others.
    """

    ALL_FILES = "rewrite of all files"
    MANY_DELETE_FILES = "many delete files"
    MANY_DELETED_ROWS = "many deleted rows"
    TOO_SMALL = "too small"
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGroup:
    """Data files that a rewrite would write together, of `bytes_count` bytes in total.

    `partition` is written as the folders of partitions are, such as `day=2026-01-01`, and empty for
    a table without partitions; it is None for files of other partition specs than that of the new
    files. `new_files_count` is the approximate number of new files of one partition. `reasons` has
    the number of files by the phrase of their reason.
    """

    partition: str | None
    data_files_count: int
    bytes_count: int
    new_files_count: int
    reasons: Mapping[str, int]


REWRITE_ALL = BoolProperty("rewrite-all", False)
_TARGET = IntProperty("target-file-size-bytes", 0, 1, LONG_MAX)
_LEAST = IntProperty("min-file-size-bytes", 0, 0, LONG_MAX)
_GREATEST = IntProperty("max-file-size-bytes", 0, 1, LONG_MAX)
_MIN_INPUT_FILES = IntProperty("min-input-files", 5, 1)
SHARED_OPTIONS = (_TARGET, _LEAST, _GREATEST, _MIN_INPUT_FILES, REWRITE_ALL)


def check_options(
    procedure: str,
    options: Mapping[str, str],
    properties: Collection[TableProperty],
    without_effect: Collection[str] = (),
) -> None:
    """Raise `InvalidRequestError` for an unknown option or a wrong value."""
    by_name = {option.name: option for option in properties}
    for name, text in options.items():
        if name in without_effect:
            continue
        option = by_name.get(name)
        if option is None:
            raise InvalidRequestError(
                f"{procedure} has no option '{name}'; its options are "
                f"{', '.join((*by_name, *without_effect))}"
            )
        if (problem := option.problem(text)) is not None:
            raise InvalidRequestError(f"{procedure}: {name}={text} {problem}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSizes:
    """The wanted file sizes in bytes, and the number of other files that is worth a rewrite."""

    target: int
    least: int
    greatest: int
    min_input_files: int

    @staticmethod
    def of(procedure: str, options: Mapping[str, str], default_target: int) -> WantedSizes:
        """Return the sizes in checked options; missing sizes follow from the target."""
        target = _TARGET.of({_TARGET.name: str(default_target), **options})
        sizes = WantedSizes(
            target=target,
            least=_LEAST.of({_LEAST.name: str(target * 3 // 4), **options}),
            greatest=_GREATEST.of({_GREATEST.name: str(target * 9 // 5), **options}),
            min_input_files=_MIN_INPUT_FILES.of(options),
        )
        if not sizes.least < target < sizes.greatest:
            raise InvalidRequestError(
                f"{procedure}: {_LEAST.name} ({sizes.least}) must be less than {_TARGET.name} "
                f"({target}), and that less than {_GREATEST.name} ({sizes.greatest})"
            )
        return sizes

    def has(self, size: int) -> bool:
        """Return whether a file of that size need not be rewritten."""
        return self.least <= size <= self.greatest

    def gain(self, count: int, size: int) -> bool:
        """Return whether `count` files of `size` bytes in total are worth a rewrite."""
        is_worth_merging = count > 1 and (count >= self.min_input_files or size > self.target)
        return is_worth_merging or size > self.greatest


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
