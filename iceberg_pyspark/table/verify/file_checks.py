"""Checks that live files exist with the size in their entries, and that vectors match entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from iceberg_pyspark.errors import InvalidMetadataError, StorageError
from iceberg_pyspark.formats.puffin.deletion_vectors import read_deletion_vector
from iceberg_pyspark.spec.manifests import FileContent, ManifestFile
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.threaded_map import threaded_map
from iceberg_pyspark.table.verify.findings import Problem
from iceberg_pyspark.table.verify.live_files import Files, ReadLive, id_of
from iceberg_pyspark.table.verify.report import Report

_FILES_AT_ONCE = 4096
_COLUMNS = (
    *("file_path", "file_size_in_bytes", "record_count"),
    *("content_offset", "content_size_in_bytes", "referenced_data_file"),
)


@dataclass
class FileChecks:
    """Checks of live files; each file is requested from the store once for all snapshots."""

    io: FileIO
    report: Report
    checked_keys: set[int] = field(default_factory=set)

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
            for rows in self._new_rows(manifest, read):
                most = [records_of(row["referenced_data_file"] or "") for row in rows]
                problem_lists = threaded_map(self._problems, list(zip(rows, most, strict=True)))
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
        if offset is None:
            return [] if length == stored_size else [_wrong_length(length, stored_size)]
        end = offset + row["content_size_in_bytes"]
        # If a vector is part of a data file's entry, the size of the Puffin file is unknown.
        if length < end or stored_size not in (length, end):
            return [_wrong_length(length, max(stored_size, end))]
        return list(self._vector_problems(row, most))

    def _vector_problems(self, row: dict[str, Any], most: int | None) -> Iterator[Problem]:
        place = row["content_offset"], row["content_size_in_bytes"]
        try:
            positions = read_deletion_vector(
                self.io, row["file_path"], *place, None, str(row["referenced_data_file"])
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
