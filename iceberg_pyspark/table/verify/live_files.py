"""Holds the live files of a snapshot as a few integers each, and checks them and their set.

Paths are compared by 64-bit hashes, so that a table of many files needs little memory; two of a
million paths have the same hash about once in tens of millions of tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceberg_pyspark.errors import InvalidMetadataError, StorageError
from iceberg_pyspark.formats.puffin.deletion_vectors import read_deletion_vector
from iceberg_pyspark.spec.manifests import FileContent, ManifestFile
from iceberg_pyspark.storage.encryption.encrypted_io import decrypted
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.threaded_map import threaded_map
from iceberg_pyspark.table.verify.findings import Problem, Report

Numbers = npt.NDArray[np.int64]
_NONE = -1


@dataclass(frozen=True, slots=True)
class Files:
    """Live files of some manifests: `values` has one row per file, with the columns of `COLUMNS`.

    `of` lists the manifests in row order, each with its number of rows.
    """

    values: Numbers
    of: tuple[tuple[ManifestFile, int], ...]

    def column(self, name: str) -> Numbers:
        """Return one number of each file."""
        return self.values[:, COLUMNS.index(name)]

    def take(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> Numbers:
        """Return the values of the selected rows."""
        return self.values[rows]

    def place(self, row: int) -> tuple[ManifestFile, int]:
        """Return the manifest of a file, and the number of live files before it in there."""
        for manifest, count in self.of:
            if row < count:
                return manifest, row
            row -= count
        raise IndexError(row)


COLUMNS = (
    *("id", "target", "content", "snapshot_id", "sequence_number", "file_sequence_number"),
    *("record_count", "first_row_id", "partition"),
)
"""The columns of `Files.values`; missing values are -1.

`id` identifies a path, with the offset for a deletion vector; `target` is the id of a deletion
vector's data file; `partition` identifies the partition spec and tuple.
"""

ReadLive = Callable[[ManifestFile], pa.Table]


def files_of(manifests: Iterable[ManifestFile], read: ReadLive) -> Files:
    """Return the live files of manifests; `read` returns a manifest's live entries."""
    return concat_files((manifest, numbers_of(read(manifest))) for manifest in manifests)


def concat_files(numbers: Iterable[tuple[ManifestFile, Numbers]]) -> Files:
    """Return the live files of manifests, each given with the numbers of its files."""
    parts = list(numbers)
    none = np.empty((0, len(COLUMNS)), np.int64)
    values = np.concatenate([none, *(values for _, values in parts)])
    return Files(values, tuple((manifest, len(values)) for manifest, values in parts))


def id_of(path: str, offset: int | None = None) -> int:
    """Return the number that identifies a file, or a deletion vector at an offset in a file."""
    return hash(path) if offset is None else hash((path, offset))


def path_at(files: Files, row: int, read: ReadLive, column: str = "file_path") -> str:
    """Return a path in the entry of a file, which is read again."""
    manifest, place = files.place(row)
    return str(read(manifest)[column][place].as_py())


def numbers_of(entries: pa.Table) -> Numbers:
    """Return the numbers of live entries, with the columns of `COLUMNS`."""
    offsets = entries["content_offset"].to_pylist()
    paths = entries["file_path"].to_pylist()
    targets = entries["referenced_data_file"].to_pylist()
    specs, partitions = entries["spec_id"].to_pylist(), entries["partition"].to_pylist()
    columns = {
        # as text, in which all NaNs are equal, and the zeros are not
        "partition": [hash((s, repr(p))) for s, p in zip(specs, partitions, strict=True)],
        "id": [id_of(p, o) for p, o in zip(paths, offsets, strict=True)],
        "target": [
            _NONE if t is None or o is None else id_of(t)
            for t, o in zip(targets, offsets, strict=True)
        ],
    }
    arrays = [
        np.array(columns[name], np.int64)
        if name in columns
        else entries[name].cast(pa.int64()).fill_null(_NONE).to_numpy()
        for name in COLUMNS
    ]
    return np.stack(arrays, axis=1) if entries.num_rows else np.empty((0, len(COLUMNS)), np.int64)


def live_file_problems(
    files: Files,
    read: ReadLive,
    *,
    has_row_ids: bool,
    next_row_id: int,
    summary: Mapping[str, str] | None,
) -> Iterator[tuple[str, ManifestFile, str]]:
    """Yield a rule's name, the manifest with the problem, and a description of the problem.

    `has_row_ids`: the snapshot has assigned row ids to all data files without row ids. `summary` is
    that of a snapshot with a manifest list, None for one with a root manifest, which has rules of
    its own.
    """
    ids = files.column("id")
    for row in _last_repetitions(ids):
        yield (
            "one-entry-per-file",
            files.place(row)[0],
            f"{path_at(files, row, read)} is live more than once",
        )
    is_data = files.column("content") == FileContent.DATA
    targets = files.column("target")
    vectors = np.flatnonzero(targets != _NONE)
    for row in vectors[_last_repetitions(targets[vectors])].tolist():
        target = path_at(files, row, read, "referenced_data_file")
        yield (
            "one-vector-per-data-file",
            files.place(row)[0],
            f"{target} has more than one deletion vector",
        )
    yield from _misplaced_vectors(
        files, np.flatnonzero(is_data), vectors, read, is_listed=summary is not None
    )
    yield from _wrong_row_ids(files, np.flatnonzero(is_data), read, has_row_ids, next_row_id)


def _last_repetitions(values: Numbers) -> list[int]:
    """Return the last position of each value that occurs more than once."""
    order = np.argsort(values, kind="stable")
    sorted_values = values[order]
    is_last = np.ones(len(values), np.bool_)
    is_last[:-1] = sorted_values[1:] != sorted_values[:-1]
    is_again = np.zeros(len(values), np.bool_)
    is_again[1:] = sorted_values[1:] == sorted_values[:-1]
    return sorted(order[is_last & is_again].tolist())


def _misplaced_vectors(
    files: Files,
    data: npt.NDArray[np.intp],
    vectors: npt.NDArray[np.intp],
    read: ReadLive,
    *,
    is_listed: bool,
) -> Iterator[tuple[str, ManifestFile, str]]:
    if not len(vectors):
        return

    def problem(i: int, rule: str, text: str) -> tuple[str, ManifestFile, str]:
        row = int(vectors[i])
        target = path_at(files, row, read, "referenced_data_file")
        return rule, files.place(row)[0], f"the vector of {target} {text}"

    order = data[np.argsort(files.column("id")[data], kind="stable")]
    ids = files.column("id")[order]
    targets = files.column("target")[vectors]
    is_live = np.isin(targets, ids)
    if is_listed:
        for i in np.flatnonzero(~is_live).tolist():
            yield problem(i, "vector-of-live-file", "is live, and the file is not")
    if not len(data):
        return
    file_rows = order[np.minimum(np.searchsorted(ids, targets), len(ids) - 1)]
    numbers, partitions = files.column("sequence_number"), files.column("partition")
    for i in np.flatnonzero(is_live & (numbers[vectors] < numbers[file_rows])).tolist():
        number, of_file = numbers[vectors[i]], numbers[file_rows[i]]
        yield problem(i, "vector-applies", f"has sequence number {number}, the file {of_file}")
    is_elsewhere = is_live & (partitions[vectors] != partitions[file_rows])
    for i in np.flatnonzero(is_elsewhere).tolist():
        yield problem(i, "vector-partition", "has another partition or spec than the file")


def _wrong_row_ids(
    files: Files,
    data: npt.NDArray[np.intp],
    read: ReadLive,
    has_row_ids: bool,
    next_row_id: int,
) -> Iterator[tuple[str, ManifestFile, str]]:
    first = files.column("first_row_id")
    without = data[first[data] == _NONE]
    if has_row_ids and len(without):
        row = int(without[0])
        yield (
            "row-ids",
            files.place(row)[0],
            f"{len(without)} data files have no row ids, such as {path_at(files, row, read)}",
        )
    # files without rows share their first row id with the next file
    data = data[(first[data] != _NONE) & (files.column("record_count")[data] > 0)]
    order = data[np.argsort(first[data], kind="stable")]
    ends = first[order] + files.column("record_count")[order]
    for i in np.flatnonzero(first[order][1:] < ends[:-1]).tolist():
        one, other = int(order[i]), int(order[i + 1])
        if files.column("id")[one] == files.column("id")[other]:
            # already reported: the file is listed twice
            continue
        yield (
            "row-ids",
            files.place(other)[0],
            f"row ids of {path_at(files, one, read)} end at {ends[i]}, those of "
            f"{path_at(files, other, read)} begin at {first[other]}",
        )
    if len(order) and int(ends.max()) > next_row_id:
        row = int(order[int(ends.argmax())])
        yield (
            "row-ids",
            files.place(row)[0],
            f"row ids of {path_at(files, row, read)} end at {int(ends.max())}, above next-row-id "
            f"{next_row_id}",
        )


def total_problems(files: Files, summary: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the totals in a snapshot's summary that differ from its live files."""
    content, records = files.column("content"), files.column("record_count")
    counts = {c: int((content == c).sum()) for c in FileContent}
    rows = {c: int(records[content == c].sum()) for c in FileContent}
    for key, total in {
        "total-data-files": counts[FileContent.DATA],
        "total-delete-files": len(content) - counts[FileContent.DATA],
        "total-records": rows[FileContent.DATA],
        "total-position-deletes": rows[FileContent.POSITION_DELETES],
        "total-equality-deletes": rows[FileContent.EQUALITY_DELETES],
    }.items():
        stated = summary.get(key, str(total))
        if stated != str(total):
            yield "summary-totals", f"{key} is {stated}, and the live files have {total}"


def rows_in(values: Numbers, ids: Sequence[int] | Numbers) -> npt.NDArray[np.bool_]:
    """Return a mask of the values that are among the ids."""
    return np.isin(values, np.asarray(ids, np.int64))


_FILES_AT_ONCE = 4096
_COLUMNS = (
    *("file_path", "file_size_in_bytes", "record_count"),
    *("content_offset", "content_size_in_bytes", "referenced_data_file", "key_metadata"),
)


@dataclass
class FileChecks:
    """Checks of live files; each file is requested from the store once for all snapshots."""

    io: FileIO
    report: Report
    checked_keys: set[int] = field(default_factory=set)
    checked_manifests: set[int] = field(default_factory=set)
    """The hashes of manifests with all values of their list: as many snapshots share them."""

    def check(
        self, snapshot_id: int, manifests: Iterable[ManifestFile], read: ReadLive, files: Files
    ) -> None:
        """Report those live files of a snapshot, `files`, that do not match their entries."""
        data = np.flatnonzero(files.column("content") == FileContent.DATA)
        order = data[np.argsort(files.column("id")[data], kind="stable")]
        ids, records = files.column("id")[order], files.column("record_count")[order]

        def records_of(path: str) -> int | None:
            at = int(np.searchsorted(ids, id_of(path)))
            return int(records[at]) if at < len(ids) and ids[at] == id_of(path) else None

        for manifest in manifests:
            if hash(manifest) in self.checked_manifests:
                continue
            self.checked_manifests.add(hash(manifest))
            for rows in self._new_rows(manifest, read):
                most = [records_of(row["referenced_data_file"] or "") for row in rows]
                problem_lists = threaded_map(
                    self._problems, list(zip(rows, most, strict=True)), lambda r: r[0]["file_path"]
                )
                for row, problems in zip(rows, problem_lists, strict=True):
                    if problems is None:
                        with self.report.reading(snapshot_id, row["file_path"]):
                            self.io.size(row["file_path"])
                        continue
                    self.report.add_problems(problems, snapshot_id, row["file_path"])

    def _new_rows(
        self, manifest: ManifestFile, read: ReadLive
    ) -> Iterator[Sequence[dict[str, Any]]]:
        entries = read(manifest).select(list(_COLUMNS))
        for batch in entries.to_batches(max_chunksize=_FILES_AT_ONCE):
            rows = []
            for row in batch.to_pylist():
                key = id_of(row["file_path"], row["content_offset"])
                if key not in self.checked_keys:
                    self.checked_keys.add(key)
                    rows.append(row)
            yield rows

    def _problems(self, row_and_limit: tuple[dict[str, Any], int | None]) -> list[Problem] | None:
        """Return the problems of a file, or None if the store cannot return its size."""
        row, most = row_and_limit
        try:
            length = self.io.size(row["file_path"])
        except StorageError:
            return None
        stored_size, offset = row["file_size_in_bytes"], row["content_offset"]
        if offset is None or row["key_metadata"] is not None:
            wrong = [] if length == stored_size else [_wrong_length(length, stored_size)]
            return wrong if wrong or offset is None else list(self._vector_problems(row, most))
        end = offset + row["content_size_in_bytes"]
        # If a vector is part of a data file's entry, the size of the Puffin file is unknown.
        if length < end or stored_size not in (length, end):
            return [_wrong_length(length, max(stored_size, end))]
        return list(self._vector_problems(row, most))

    def _vector_problems(self, row: dict[str, Any], most: int | None) -> Iterator[Problem]:
        place = row["content_offset"], row["content_size_in_bytes"]
        try:
            positions = read_deletion_vector(
                decrypted(self.io, row["key_metadata"]),
                row["file_path"],
                *place,
                None,
                str(row["referenced_data_file"]),
            )
        except (InvalidMetadataError, StorageError) as e:
            yield "readable", str(e)
            return
        if len(positions) != row["record_count"]:
            yield (
                "record-count",
                f"the vector at {place[0]} has {len(positions)} positions, its entry says "
                f"{row['record_count']}",
            )
        if most is not None and positions and positions.max() >= most:
            yield (
                "vector-positions",
                f"position {positions.max()} is beyond the {most} rows of "
                f"{row['referenced_data_file']}",
            )


def _wrong_length(length: int, stored_size: int) -> Problem:
    return "file-length", f"{length} bytes, and {stored_size} are said"
