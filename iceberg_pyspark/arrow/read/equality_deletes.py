"""Applies equality deletes to the rows of a task.

Specification, "Equality Delete Files". The planner decides which delete files apply to a data file;
all delete files of a task apply to all of its rows. Delete files with the same equality ids become
one set of keys. Columns are found by field id and compared in the table's type, so promoted,
reordered, renamed and dropped columns compare correctly (docs/conformance.md 27-30).

Null equals null; floats are equal if their bits are, and all NaNs are equal (like partition values,
"Scan Planning" note 3). Every column of a set becomes integer codes, and the codes of several
columns are combined to one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrays import as_integers, as_longs, buffer_values
from iceberg_pyspark.arrow.file_fields import mapping_for, resolve_file_fields
from iceberg_pyspark.arrow.formats.open_data_file import open_data_file
from iceberg_pyspark.arrow.read.columns_by_id import ColumnsById
from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.formats.encoding.decoded_files import DecodedCache
from iceberg_pyspark.planning.scan_tasks import DeleteFileRef, ScanContext, ScanTask
from iceberg_pyspark.spec.manifests import FileContent
from iceberg_pyspark.storage.encryption.encrypted_io import decrypted
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
            decrypted(io, ref.key_metadata),
            ref.file_path,
            ref.file_format,
            verify_checksums=context.verify_checksums,
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


Codes = npt.NDArray[np.int64]

_FEW_KEYS = 10_000
_HASHED_ROWS = 65_536
_HASH_FACTOR = 0x9E3779B97F4A7C15


class KeySet:
    """A set of the distinct rows of columns of equal length; without columns, the set is empty."""

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        self._lookups = [_lookup_of(column) for column in columns]
        self._levels: list[Codes] = []
        if not columns:
            return
        codes = self._lookups[0].codes(columns[0])
        for lookup, column in zip(self._lookups[1:], columns[1:], strict=True):
            combined_codes = codes * lookup.size + lookup.codes(column)
            level = np.unique(combined_codes)
            self._levels.append(level)
            codes = np.searchsorted(level, combined_codes)

    @property
    def nbytes(self) -> int:
        """The memory of the set, in bytes."""
        return sum(k.nbytes for k in self._lookups) + sum(level.nbytes for level in self._levels)

    def contains(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.bool_]:
        """Return for each row of the columns whether the row is in the set."""
        if not self._lookups:
            return np.zeros(len(columns[0]), dtype=np.bool_)
        codes = self._lookups[0].codes(columns[0])
        for lookup, level, column in zip(self._lookups[1:], self._levels, columns[1:], strict=True):
            own = lookup.codes(column)
            is_known = (codes >= 0) & (own >= 0)
            codes = _find(level, np.where(is_known, codes * lookup.size + own, -1))
        is_in: npt.NDArray[np.bool_] = codes >= 0
        return is_in


def _find(sorted_codes: Codes, values: Codes) -> Codes:
    """Return the position of each value among the sorted codes, or -1 if the value is missing."""
    if not len(sorted_codes):
        return np.full(len(values), -1, dtype=np.int64)
    positions = np.searchsorted(sorted_codes, values)
    positions[positions == len(sorted_codes)] = 0
    return np.where(sorted_codes[positions] == values, positions, -1)


def _lookup_of(column: pa.Array) -> _Lookup:
    integers = as_integers(column)
    if integers is not None:
        return _IntegerLookup(integers)
    keys = column.unique()
    if len(keys) > _FEW_KEYS and _is_octets(keys.type):
        hash_lookup = _HashedLookup(keys)
        if hash_lookup.is_exact:
            return hash_lookup
    return _ValueLookup(keys)


def _is_octets(type_: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_string(type_) or t.is_binary(type_) or t.is_fixed_size_binary(type_))


class _Lookup(Protocol):
    """A numbering of one column's distinct keys, from 0 to `size - 1`."""

    size: int

    @property
    def nbytes(self) -> int: ...

    def codes(self, column: pa.Array) -> Codes:
        """Return the number of each value, or -1 for a value that is not a key."""
        ...


class _IntegerLookup:
    """The codes of a column whose values are integers inside; probes build no hash table."""

    def __init__(self, keys: pa.Array) -> None:
        self._keys = np.unique(as_longs(keys.drop_null()))
        self._null_code = len(self._keys) if keys.null_count else -1
        self.size = len(self._keys) + 1

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes

    def codes(self, column: pa.Array) -> Codes:
        codes = _find(self._keys, as_longs(column))
        if column.null_count:
            nulls = column.is_null().to_numpy(zero_copy_only=False)
            codes = np.where(nulls, self._null_code, codes)
        return codes


class _HashedLookup:
    """The codes of a text or binary column: looks hashes up, then compares the values.

    Used only if all keys have different hashes (`is_exact`).
    """

    def __init__(self, keys: pa.Array) -> None:
        self._null_code = len(keys) - 1 if keys.null_count else -1
        self._keys = keys.drop_null()
        hashes = _hashes(self._keys)
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]
        self.is_exact = not (self._hashes[1:] == self._hashes[:-1]).any()
        self.size = len(keys)

    @property
    def nbytes(self) -> int:
        return int(self._keys.nbytes) + self._hashes.nbytes + self._order.nbytes

    def codes(self, column: pa.Array) -> Codes:
        positions = _find(self._hashes, _hashes(column))
        likely = np.where(positions >= 0, self._order[positions], -1)
        same_hash = self._keys.take(pa.array(likely, mask=likely < 0))
        equal = pc.equal(same_hash, column).fill_null(False).to_numpy(zero_copy_only=False)
        codes = np.where(equal, likely, -1)
        if column.null_count:
            codes[column.is_null().to_numpy(zero_copy_only=False)] = self._null_code
        return codes


def _hashes(column: pa.Array) -> Codes:
    """Return a 64-bit polynomial of each value's bytes; any number for null."""
    if pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    parts = [
        _slice_hashes(column.slice(start, _HASHED_ROWS))
        for start in range(0, len(column), _HASHED_ROWS)
    ]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _slice_hashes(column: pa.Array) -> Codes:
    _, offset_buffer, data = column.buffers()
    offsets = buffer_values(offset_buffer, np.int32, column.offset, len(column) + 1).astype(
        np.int64
    )
    first, last = int(offsets[0]), int(offsets[-1])
    if first == last:
        return np.zeros(len(column), dtype=np.int64)
    octets = np.frombuffer(data, dtype=np.uint8)[first:last].astype(np.uint64)
    lengths = np.diff(offsets)
    starts = offsets[:-1] - first
    # add one, so that a zero byte changes the hash
    octets += np.uint64(1)
    powers = np.full(int(lengths.max()), _HASH_FACTOR, dtype=np.uint64).cumprod()
    octets *= powers[np.arange(last - first) - np.repeat(starts, lengths)]
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), octets.cumsum()])
    hashes: Codes = (sums[starts + lengths] - sums[starts]).view(np.int64)
    return hashes


class _ValueLookup:
    """The codes of any other column, or of few keys; each probe builds Arrow's hash table."""

    def __init__(self, keys: pa.Array) -> None:
        self._keys = keys
        self.size = len(keys)

    @property
    def nbytes(self) -> int:
        return int(self._keys.nbytes)

    def codes(self, column: pa.Array) -> Codes:
        return as_longs(pc.index_in(column, value_set=self._keys).fill_null(-1))
