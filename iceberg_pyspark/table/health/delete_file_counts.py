"""Counts the delete files of a snapshot by kind, and the files that a rewrite would leave.

The plan of a scan tells which data files a delete file applies to. Only the rows tell which rows it
deletes, so the number of files that a rewrite writes is an upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.planning.scan_tasks import DeleteFileRef
from iceberg_pyspark.spec.manifests import FileContent
from iceberg_pyspark.table.health.figures import DeleteFileFigures
from iceberg_pyspark.table.maintenance.rewrites.delete_file_choice import DeleteFileOptions
from iceberg_pyspark.table.maintenance.rewrites.partition_numbers import Numbers

_COLUMNS = (
    "content",
    "file_format",
    "file_path",
    "content_offset",
    "content_size_in_bytes",
    "file_size_in_bytes",
    "record_count",
)
_VECTORS, _POSITIONS, _EQUALITY = range(3)


@dataclass(slots=True)
class _Kind:
    files: int = 0
    bytes: int = 0
    records: int = 0
    dangling_files: int = 0
    dangling_bytes: int = 0


@dataclass(slots=True)
class _Group:
    files: int = 0
    bytes: int = 0
    data_files: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRewriteCount:
    """The delete files that a rewrite removes, their bytes, and an upper bound of new files."""

    files: int
    bytes: int
    added_at_most: int


class DeleteFileCounts:
    """Counts of delete files; call `add_candidates`, then `apply` per data file, then `add`."""

    def __init__(self, format_version: int) -> None:
        self._version = format_version
        self._applied_identities: set[int] = set()
        self._kinds = (_Kind(), _Kind(), _Kind())
        self._groups: dict[int, _Group] = {}
        self._group_of: dict[int, int] = {}
        self._options = DeleteFileOptions.of({})
        self._with_positions = 0
        self._with_equality = 0

    def add_candidates(self, entries: pa.Table, partitions: Numbers) -> None:
        """Add the entries of a delete manifest that `rewrite_position_delete_files` may choose.

        This matters in version 2, where the choice depends on sizes and partitions; a rewrite in
        version 3 takes all position delete files.
        """
        if self._version >= 3:
            return
        sizes = self._options.sizes
        rows = (
            pc.equal(entries["content"], int(FileContent.POSITION_DELETES)),
            pc.not_equal(entries["file_format"], "puffin"),
            pc.or_(
                pc.less(entries["file_size_in_bytes"], sizes.least),
                pc.greater(entries["file_size_in_bytes"], sizes.greatest),
            ),
        )
        is_candidate = pc.and_(pc.and_(rows[0], rows[1]), rows[2])
        candidates = entries.filter(is_candidate)
        offsets = candidates["content_offset"].to_pylist()
        for path, offset, partition in zip(
            candidates["file_path"].to_pylist(),
            offsets,
            partitions[is_candidate.to_numpy()].tolist(),
            strict=True,
        ):
            self._group_of[_identity(path, offset)] = partition

    def apply(self, deletes: Sequence[DeleteFileRef]) -> None:
        """Count the deletes that apply to one data file."""
        identities = [_identity(d.file_path, d.content_offset) for d in deletes]
        self._applied_identities.update(identities)
        for number in {self._group_of[i] for i in identities if i in self._group_of}:
            self._groups.setdefault(number, _Group()).data_files += 1
        self._with_equality += any(d.content is FileContent.EQUALITY_DELETES for d in deletes)
        self._with_positions += any(
            d.content is FileContent.POSITION_DELETES and not d.is_deletion_vector for d in deletes
        )

    def add(self, entries: pa.Table) -> None:
        """Count the entries of one delete manifest."""
        columns = [entries[name].to_pylist() for name in _COLUMNS]
        for content, format_, path, offset, blob_size, file_size, records in zip(
            *columns, strict=True
        ):
            is_vector = content == FileContent.POSITION_DELETES and format_ == "puffin"
            size = blob_size if is_vector and blob_size is not None else file_size
            identity = _identity(path, offset)
            is_applied = identity in self._applied_identities
            if content == FileContent.EQUALITY_DELETES:
                kind = self._kinds[_EQUALITY]
            else:
                kind = self._kinds[_VECTORS if is_vector else _POSITIONS]
            kind.files += 1
            kind.bytes += size
            kind.records += records
            kind.dangling_files += not is_applied
            kind.dangling_bytes += 0 if is_applied else size
            if is_applied and identity in self._group_of:
                group = self._groups[self._group_of[identity]]
                group.files += 1
                group.bytes += size

    def by_kind(self) -> tuple[DeleteFileFigures, DeleteFileFigures, DeleteFileFigures]:
        """Return the counts of deletion vectors, position deletes and equality deletes."""
        vectors, positions, equality = (
            DeleteFileFigures(
                files=k.files, bytes=k.bytes, records=k.records, dangling_files=k.dangling_files
            )
            for k in self._kinds
        )
        return vectors, positions, equality

    def position_rewrite(self, *, per_file: bool) -> DeleteRewriteCount:
        """Return the effect of `rewrite_position_delete_files`; `per_file`: one per data file.

        Dangling delete files are removed without a replacement.
        """
        vectors, positions = self._kinds[_VECTORS], self._kinds[_POSITIONS]
        files = vectors.dangling_files + positions.dangling_files
        size = vectors.dangling_bytes + positions.dangling_bytes
        added_count = 0
        if self._version >= 3:
            files += positions.files - positions.dangling_files
            size += positions.bytes - positions.dangling_bytes
            added_count = self._with_positions
        else:
            for group in self._groups.values():
                fewer = group.data_files if per_file else 1
                if self._options.sizes.gain(group.files, group.bytes) and fewer < group.files:
                    files += group.files
                    size += group.bytes
                    added_count += fewer
        return DeleteRewriteCount(files=files, bytes=size, added_at_most=added_count)

    def equality_rewrite(self) -> DeleteRewriteCount:
        """Return the effect of `rewrite_equality_deletes`."""
        equality = self._kinds[_EQUALITY]
        return DeleteRewriteCount(
            files=equality.files, bytes=equality.bytes, added_at_most=self._with_equality
        )


def _identity(path: str, offset: int | None) -> int:
    """Return a delete file's identity in eight bytes: a table may have as many as data files."""
    return hash((path, offset))
