"""What a commit removes from the files of a snapshot, and where the files are known to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.partitioning import PartitionKey

Match = Literal["all", "some", "none"]
DeleteFileId: TypeAlias = tuple[str, int | None]
"""The path and content offset of a delete file: several deletion vectors share one Puffin file."""


@dataclass(frozen=True, slots=True)
class RemoveNothing:
    """A removal of no files."""


@dataclass(frozen=True, slots=True)
class RemoveAll:
    """A removal of all data files and delete files."""


@dataclass(frozen=True, slots=True)
class RemovePartitions:
    """A removal of all files of partitions, each a spec id and the tuple's `partition_key`."""

    partitions: frozenset[tuple[int, PartitionKey]]


@dataclass(frozen=True, slots=True)
class RemoveWhere:
    """A removal of data files whose rows all match; a partly matching file is an error.

    `match` says which rows of a data file match; `description` is the filter as SQL.
    """

    match: Callable[[DataFile], Match]
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The snapshot in which a plan found files, and all its manifests that list them."""

    snapshot_id: int
    manifest_paths: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFiles:
    """A removal of the listed files; a file that is not live is a `ConcurrentChangeError`.

    The files are searched for in every manifest; with an `origin` only in its manifests, and in
    those that its snapshot does not have.
    """

    data_paths: frozenset[str] = frozenset()
    delete_files: frozenset[DeleteFileId] = frozenset()
    origin: Origin | None = None


Removal: TypeAlias = RemoveNothing | RemoveAll | RemovePartitions | RemoveWhere | RemoveFiles


def delete_file_id(f: DataFile) -> DeleteFileId:
    """Return the identity of a delete file or deletion vector: its path and content offset."""
    return (f.file_path, f.content_offset)
