"""A rewrite whose groups are written elsewhere: its work as a list, and its commit afterwards.

The work and the commit may be in processes that share nothing but a metadata file, of which both
plan the same groups. What became of each piece of work travels as JSON.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec
import pyarrow as pa

from iceberg_pyspark import errors
from iceberg_pyspark.changes.outcomes import NeverSent
from iceberg_pyspark.errors import (
    ConcurrentChangeError,
    IcebergError,
    InvalidRequestError,
    StorageError,
)
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.spec.values import value_from_json, value_to_json
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.written_files import remove_files
from iceberg_pyspark.table.maintenance.rewrites.file_groups import FileGroup
from iceberg_pyspark.table.maintenance.rewrites.group_writer import GroupSteps, GroupWriter


@dataclass(frozen=True, kw_only=True)
class GroupPart:
    """Data files of the group of this number that are rewritten without the group's others."""

    number: int
    group: FileGroup


@dataclass(frozen=True, kw_only=True)
class WrittenPart:
    """What became of a part: its new files, or the class and the message of an error.

    `paths` are those of the files that were rewritten.
    """

    number: int
    paths: tuple[str, ...]
    files: tuple[DataFile, ...] = ()
    error: tuple[str, str] | None = None

    def text(self, partition: StructType) -> str:
        """Return the part as JSON; `partition` is the type of the new files' partition."""

        def plain(file: DataFile) -> DataFile:
            pairs = zip(partition.fields, file.partition, strict=True)
            return replace(file, partition=tuple(value_to_json(f.type, v) for f, v in pairs))

        part = replace(self, files=tuple(map(plain, self.files)))
        return msgspec.json.encode(part).decode()

    @classmethod
    def of_text(cls, text: str, partition: StructType) -> WrittenPart:
        """Return the part of a `text`."""

        def typed(file: DataFile) -> DataFile:
            pairs = zip(partition.fields, file.partition, strict=True)
            return replace(file, partition=tuple(value_from_json(f.type, v) for f, v in pairs))

        part = msgspec.json.decode(text, type=cls)
        return replace(part, files=tuple(map(typed, part.files)))


def parts_of(groups: Sequence[FileGroup], writer: GroupWriter) -> list[GroupPart]:
    """Return the work of all groups: a task for each new file, or for each group that is sorted."""
    parts = []
    for number, group in enumerate(groups):
        pieces = [group]
        if writer.order_of(group) is None:
            pieces = [
                replace(group, tasks=tasks, reasons=(), output_file_count=1)
                for tasks in group.parts()
            ]
        parts += [GroupPart(number=number, group=piece) for piece in pieces]
    return parts


def write_part(writer: GroupWriter, part: GroupPart, io: FileIO, *, attempt: int) -> WrittenPart:
    """Rewrite the files of a part; `attempt`, a number that no other attempt has, names its files.

    An error that leaves the part as it was is the result.
    """
    paths = tuple(t.file_path for t in part.group.tasks)
    steps = GroupSteps(number=attempt, group_count=0, add=lambda _: None)
    try:
        files = tuple(writer.write(part.group, steps, io, 1))
    except (IcebergError, OSError, pa.ArrowException) as e:
        name = type(e).__name__ if isinstance(e, IcebergError) else StorageError.__name__
        return WrittenPart(number=part.number, paths=paths, error=(name, str(e)))
    return WrittenPart(number=part.number, paths=paths, files=files)


@dataclass(kw_only=True)
class WrittenGroups:
    """A `GroupRunner` of groups that were written before, under the names of `write_id`."""

    write_id: str
    parts: Sequence[str]
    """The texts of the written parts."""

    _used: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Raise `InvalidRequestError` for an id that could be a part of others' files."""
        try:
            uuid.UUID(self.write_id)
        except ValueError:
            raise InvalidRequestError(f"{self.write_id!r} is no id of a write") from None

    @property
    def max_at_once(self) -> int:
        """See `GroupRunner`: nothing is left to do."""
        return 1

    def write(
        self, writer: GroupWriter, group: FileGroup, steps: GroupSteps, io: FileIO
    ) -> list[DataFile]:
        """Return the new files of a group; raise the error that one of its tasks had."""
        found = [part for part in self._parts(writer) if part.number == steps.number]
        paths = sorted(path for part in found for path in part.paths)
        if paths != sorted(t.file_path for t in group.tasks):
            raise ConcurrentChangeError(
                f"table {writer.writes.table}: the files of the rewrite are not those that were "
                "planned; run it again"
            )
        failed = [part.error for part in found if part.error is not None]
        if failed:
            name, message = failed[0]
            raise getattr(errors, name, StorageError)(message)
        self._used.add(steps.number)
        return [file for part in found for file in part.files]

    def remove_unused(self, writer: GroupWriter, io: FileIO) -> None:
        """Remove the new files of groups that no commit has got."""
        unused = [p for p in self._parts(writer) if p.number not in self._used]
        remove_files(io, [f.file_path for p in unused for f in p.files], NeverSent())

    def _parts(self, writer: GroupWriter) -> list[WrittenPart]:
        parts = [WrittenPart.of_text(text, writer.partition_type) for text in self.parts]
        for file in (f for part in parts for f in part.files):
            if self.write_id not in file.file_path.rpartition("/")[2]:
                raise InvalidRequestError(f"{file.file_path} is no file of this rewrite")
        return parts
