"""Applies equality deletes to the rows of a task.

Specification, "Equality Delete Files". The planner decides which delete files apply to a data file;
all delete files of a task apply to all of its rows. Delete files with the same equality ids become
one set of keys. Columns are found by field id and compared in the table's type, so promoted,
reordered, renamed and dropped columns compare correctly (docs/conformance.md 27-30).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceberg_pyspark.arrow.formats.file_fields import mapping_for, resolve_file_fields
from iceberg_pyspark.arrow.formats.open_data_file import open_data_file
from iceberg_pyspark.arrow.read.columns_by_id import ColumnsById
from iceberg_pyspark.arrow.read.key_set import KeySet
from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.formats.encoding.decoded_cache import DecodedCache
from iceberg_pyspark.planning.scan_tasks import DeleteFileRef, ScanContext, ScanTask
from iceberg_pyspark.spec.manifests import FileContent
from iceberg_pyspark.storage.files.file_io import FileIO

_CACHE_BYTES = 64 * 1024 * 1024

_KEY_SET_CACHE: DecodedCache[KeySet] = DecodedCache(_CACHE_BYTES, lambda keys: keys.nbytes)


class EqualityDeletes:
    """The key sets of equality deletes, by the compared field ids."""

    def __init__(self, key_sets: Mapping[tuple[int, ...], KeySet]) -> None:
        self._key_sets = key_sets
        self.field_ids = tuple(dict.fromkeys(i for ids in key_sets for i in ids))

    def mask(self, columns: Mapping[int, pa.Array]) -> npt.NDArray[np.bool_] | None:
        """Return a mask that is True for deleted rows, or None if no row is deleted."""
        deleted_rows: npt.NDArray[np.bool_] | None = None
        for ids, keys in self._key_sets.items():
            matches = keys.contains([columns[i] for i in ids])
            deleted_rows = matches if deleted_rows is None else deleted_rows | matches
        return deleted_rows if deleted_rows is not None and deleted_rows.any() else None


def read_equality_deletes(io: FileIO, context: ScanContext, task: ScanTask) -> EqualityDeletes:
    """Return the keys of all equality delete files of the task."""
    by_ids: dict[tuple[int, ...], list[DeleteFileRef]] = {}
    for ref in task.deletes:
        if ref.content is FileContent.EQUALITY_DELETES:
            if not ref.equality_ids:
                raise InvalidMetadataError(
                    f"table {context.table}: equality delete file {ref.file_path} has no "
                    "equality_ids, which are required"
                )
            by_ids.setdefault(tuple(sorted(set(ref.equality_ids))), []).append(ref)
    return EqualityDeletes({ids: _key_set(io, context, ids, refs) for ids, refs in by_ids.items()})


def _key_set(
    io: FileIO, context: ScanContext, ids: tuple[int, ...], refs: Sequence[DeleteFileRef]
) -> KeySet:
    types = tuple(
        str(s.field_by_id[i].type) if i in s.field_by_id else ""
        for i in ids
        for s in context.schemas
    )
    files = tuple(sorted((r.file_path, r.file_size_in_bytes) for r in refs))
    return _KEY_SET_CACHE.get_or_read(
        io, (ids, types, files), lambda: KeySet(read_equality_keys(io, context, ids, refs))
    )


def read_equality_keys(
    io: FileIO, context: ScanContext, ids: tuple[int, ...], refs: Sequence[DeleteFileRef]
) -> list[pa.Array]:
    """Return the keys in the delete files, one column per field id; an empty list without keys."""
    parts: list[list[pa.Array]] = [[] for _ in ids]
    for ref in refs:
        with open_data_file(
            io, ref.file_path, ref.file_format, verify_checksums=context.verify_checksums
        ) as file:
            columns = ColumnsById(
                ids,
                context.schemas,
                resolve_file_fields(
                    file.schema,
                    mapping_for(ref.file_format, context.name_mapping, context.schemas[0]),
                    ref.file_path,
                    whole_columns=file.reads_whole_columns,
                ),
                partition_values={},
                location=ref.file_path,
            )
            if missing_ids := columns.missing_ids():
                raise InvalidMetadataError(
                    f"table {context.table}: equality delete file {ref.file_path} lacks columns "
                    f"with field ids {missing_ids}, which its equality_ids list"
                )
            convert = columns.compile(columns.leaves)
            for _, batch in file.batches(columns.leaves):
                columns_of_batch = convert(batch)
                for part, i in zip(parts, ids, strict=True):
                    part.append(columns_of_batch[i])
    return [pa.concat_arrays(part) for part in parts if part]
