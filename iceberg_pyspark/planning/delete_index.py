"""Determines which deletes apply to which data files, by joining entry tables.

Specification, "Scan Planning" (scope rules) and "Delete Formats". Each delete belongs to one of
five groups, according to the key that is compared:

    deletion vectors            the data file's path
    position deletes            the data file's path, if the delete file has only one
    position deletes            spec and partition tuple
    equality deletes            spec and partition tuple
    equality deletes            nothing: deletes of an unpartitioned spec are global

The deletes of a key are sorted by data sequence number, so the deletes that apply to a data file
are a range, which binary search finds.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.expressions.predicates import BoundColumn
from iceberg_pyspark.planning.entry_filter import ColumnRanges, Mask, lists_with, mask_of, possible
from iceberg_pyspark.planning.partition_codes import PartitionCodes, concat_partitions
from iceberg_pyspark.planning.scan_tasks import DeleteFileRef
from iceberg_pyspark.spec.entry_columns import metric_column
from iceberg_pyspark.spec.manifests import FileContent
from iceberg_pyspark.spec.metadata_columns import DELETE_FILE_PATH
from iceberg_pyspark.spec.partitioning import PartitionSpec

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Pairs: TypeAlias = tuple[Numbers, Numbers]
"""Rows of data files, and for each the row of a delete that applies."""

MAX_PAIRS = 1_000_000
"""The most pairs in memory at once, before `keep` filters the pairs."""


@dataclass(frozen=True)
class DeleteGroup:
    """The rows of some deletes, sorted by key and then by data sequence number."""

    keys: Numbers
    sequence_numbers: Numbers
    rows: Numbers

    def pairs(
        self,
        keys: Numbers,
        sequence_numbers: Numbers,
        *,
        strictly_older: bool,
        keep: Callable[[Numbers, Numbers], Pairs],
    ) -> Pairs:
        """Return those pairs with equal keys and sequence numbers in scope that `keep` keeps.

        A delete applies to data with the same or a lower sequence number; with `strictly_older`,
        only to data with a lower one. A negative key matches nothing.
        """
        if not len(self.rows):
            return join_pairs()
        # ranks replace sequence numbers, so that key and rank fit in one integer
        distinct_numbers, ranks = np.unique(self.sequence_numbers, return_inverse=True)
        first_rank = np.searchsorted(
            distinct_numbers, sequence_numbers, side="right" if strictly_older else "left"
        )
        width = len(distinct_numbers) + 1
        sorted_keys = self.keys * width + ranks
        start = np.searchsorted(sorted_keys, keys * width + first_rank)
        end = np.searchsorted(sorted_keys, (keys + 1) * width)
        counts = np.where(keys >= 0, end - start, 0)
        return join_pairs(*(keep(*step) for step in self._in_steps(start, counts)))

    def _in_steps(self, start: Numbers, counts: Numbers) -> Iterator[Pairs]:
        """Yield the pairs of a few data files at a time: every file may match every delete."""
        data_rows = np.flatnonzero(counts)
        totals = np.cumsum(counts[data_rows])
        first = 0
        while first < len(data_rows):
            before = totals[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(totals, before + MAX_PAIRS, "right")))
            rows = data_rows[first:last]
            here = counts[rows]
            within = np.arange(here.sum()) - np.repeat(np.cumsum(here) - here, here)
            yield np.repeat(rows, here), self.rows[np.repeat(start[rows], here) + within]
            first = last


def group_deletes(rows: Numbers, keys: Numbers, sequence_numbers: Numbers) -> DeleteGroup:
    """Return the group of the deletes in `rows`; the other arrays cover every delete."""
    keys, sequence_numbers = keys[rows], sequence_numbers[rows]
    order = np.lexsort((sequence_numbers, keys))
    return DeleteGroup(keys[order], sequence_numbers[order], rows[order])


def join_pairs(*pairs: Pairs) -> Pairs:
    """Concatenate the pairs."""
    none = np.zeros(0, np.int64)
    return np.concatenate([none, *(p[0] for p in pairs)]), np.concatenate(
        [none, *(p[1] for p in pairs)]
    )


DELETE_METRICS = (DELETE_FILE_PATH.field_id,)
"""Fields whose metrics must be read with the entries of delete manifests."""

_LOWER = metric_column("lower_bounds", DELETE_FILE_PATH.field_id)
_UPPER = metric_column("upper_bounds", DELETE_FILE_PATH.field_id)
_COLUMNS = (
    "content",
    "file_path",
    "file_format",
    "file_size_in_bytes",
    "record_count",
    "sequence_number",
    "spec_id",
    "equality_ids",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
    "key_metadata",
    _LOWER,
    _UPPER,
)


class DeleteEntries(NamedTuple):
    """The live entries of a delete manifest; its path is None if it is unknown."""

    spec: PartitionSpec
    table: pa.Table
    manifest_path: str | None = None


class DeleteIndex:
    """An index of a snapshot's live deletes, which matches data files one manifest at a time."""

    def __init__(
        self,
        entries: Sequence[DeleteEntries],
        compared_columns: Sequence[BoundColumn] = (),
    ) -> None:
        """Index the entries of delete manifests.

        `compared_columns` are equality columns whose metrics may exclude an equality delete; both
        delete entries and data entries must have these metrics.
        """
        entries = [e for e in entries if e.table.num_rows]
        entries.sort(key=lambda e: e.spec.spec_id)
        self.count = sum(e.table.num_rows for e in entries)
        if not entries:
            return
        self._manifests = [e.manifest_path for e in entries]
        self._ends = np.cumsum([e.table.num_rows for e in entries])
        # entries have metrics of equality columns only in manifests with equality deletes
        tables = [e.table.drop_columns("partition") for e in entries]
        self._table = pa.concat_tables(tables, promote_options="default").combine_chunks()
        self._codes_by_spec, self._codes = _number_partitions(entries)
        self._refs: dict[int, DeleteFileRef] = {}
        self._tuples: dict[tuple[int, ...], tuple[DeleteFileRef, ...]] = {}
        content = _numbers(self._table["content"])
        puffin = mask_of(pc.equal(self._table["file_format"], "puffin"))
        positions = content == FileContent.POSITION_DELETES
        equality = content == FileContent.EQUALITY_DELETES
        specs = {e.spec.spec_id: e.spec for e in entries}
        unpartitioned_ids = [i for i, spec in specs.items() if spec.is_unpartitioned]
        ids = self._table["equality_ids"].combine_chunks()
        self._compared_columns = [
            (c, lists_with(ids, c.field_id), ColumnRanges(self._table, c)) for c in compared_columns
        ]
        is_global = equality & np.isin(_numbers(self._table["spec_id"]), unpartitioned_ids)

        self._check(positions | equality, "it holds a data file in a manifest of deletes")
        referenced_files = self._table["referenced_data_file"].combine_chunks()
        self._is_named = mask_of(pc.is_valid(referenced_files))
        for column in ("referenced_data_file", "content_offset", "content_size_in_bytes"):
            is_known = mask_of(pc.is_valid(self._table[column]))
            self._check(~(positions & puffin) | is_known, f"a deletion vector must have {column}")
        has_ids = mask_of(pc.is_valid(self._table["equality_ids"]))
        self._check(~equality | has_ids, "an equality delete file must have equality_ids")

        path = pc.if_else(
            pa.array(positions & ~puffin),
            pc.coalesce(referenced_files, self._only_path()),
            referenced_files,
        )
        has_path = mask_of(pc.is_valid(path))
        self._paths = pc.unique(path.filter(pa.array(positions & has_path)))
        self._is_of_one_file = has_path
        path_keys = _find(path, self._paths)
        vectors = np.flatnonzero(positions & puffin)
        self._check_one_vector_per_file(vectors, path_keys)
        group = partial(group_deletes, sequence_numbers=_numbers(self._table["sequence_number"]))
        self._vectors = group(vectors, path_keys)
        self._by_path = group(np.flatnonzero(positions & ~puffin & has_path), path_keys)
        self._by_partition = group(np.flatnonzero(positions & ~puffin & ~has_path), self._codes)
        self._equality = group(np.flatnonzero(equality & ~is_global), self._codes)
        self._global = group(np.flatnonzero(is_global), np.zeros(self.count, np.int64))

    def match(
        self, data: pa.Table, spec_id: int, constant_ids: Container[int] = ()
    ) -> Mapping[int, tuple[DeleteFileRef, ...]]:
        """Return the deletes that apply, by row of a table of data entries of one spec.

        `constant_ids` are the sources of the spec's identity fields, whose metrics say nothing.
        Rows without deletes are missing from the result. Raises `InvalidMetadataError` if a delete
        names a data file of another partition.
        """
        if not self.count or not data.num_rows:
            return {}
        sequence_numbers = _numbers(data["sequence_number"])
        partitions = self._partitions_of(data, spec_id)
        paths = _find(data["file_path"].combine_chunks(), self._paths)
        in_scope = partial(self._in_scope, data, partitions)
        vectors = self._vectors.pairs(paths, sequence_numbers, strictly_older=False, keep=in_scope)
        # a deletion vector includes all older position deletes of its data file
        has_vector = np.zeros(data.num_rows, np.bool_)
        has_vector[vectors[0]] = True
        partitions_without = np.where(has_vector, -1, partitions)
        may_hold = partial(self._may_hold_path, data["file_path"].combine_chunks())
        ranges = [
            (is_compared, deletes, ColumnRanges(data, c))
            for c, is_compared, deletes in self._compared_columns
            if c.field_id not in constant_ids
        ]
        may_share = partial(_may_share_rows, ranges)
        everywhere = np.zeros(data.num_rows, np.int64)
        by_path = self._by_path.pairs(paths, sequence_numbers, strictly_older=False, keep=in_scope)
        without_vector = ~has_vector[by_path[0]]
        return self._references(
            *join_pairs(
                vectors,
                (by_path[0][without_vector], by_path[1][without_vector]),
                self._by_partition.pairs(
                    partitions_without, sequence_numbers, strictly_older=False, keep=may_hold
                ),
                self._equality.pairs(
                    partitions, sequence_numbers, strictly_older=True, keep=may_share
                ),
                self._global.pairs(
                    everywhere, sequence_numbers, strictly_older=True, keep=may_share
                ),
            )
        )

    def _partitions_of(self, data: pa.Table, spec_id: int) -> Numbers:
        """Return the number of each data file's partition among the deletes' partitions, or -1."""
        by_spec = self._codes_by_spec.get(spec_id)
        if by_spec is None:
            return np.full(data.num_rows, -1, np.int64)
        first, codes = by_spec
        positions = codes.find(data["partition"].combine_chunks())
        return np.where(positions >= 0, positions + first, -1)

    def _check(self, good: Mask, rule: str) -> None:
        if not good.all():
            row = int(np.flatnonzero(~good)[0])
            raise InvalidMetadataError(f"{self._table['file_path'][row].as_py()}: {rule}")

    def _only_path(self) -> pa.Array:
        """Return the only path in each position delete file, according to its bounds, or null."""
        lower = self._table[_LOWER].combine_chunks()
        upper = self._table[_UPPER].combine_chunks()
        same = pc.fill_null(pc.equal(lower, upper), False)
        only = pc.if_else(same, lower, pa.scalar(None, pa.binary()))
        try:
            return only.cast(pa.string())
        except pa.ArrowInvalid:
            return pa.nulls(len(only), pa.string())

    def _check_one_vector_per_file(self, vectors: Numbers, path_keys: Numbers) -> None:
        keys = path_keys[vectors]
        order = np.argsort(keys, kind="stable")
        again = np.flatnonzero(keys[order][1:] == keys[order][:-1])
        if len(again):
            first, second = vectors[order[again[0]]], vectors[order[again[0] + 1]]
            raise InvalidMetadataError(
                f"{self._table['referenced_data_file'][int(first)].as_py()} has two deletion "
                f"vectors, at most one is allowed: {self._describe(first)} and "
                f"{self._describe(second)}"
            )

    def _describe(self, row: int) -> str:
        row = int(row)
        offset = self._table["content_offset"][row].as_py()
        at = "" if offset is None else f" at offset {offset}"
        return f"{self._table['file_path'][row].as_py()}{at}"

    def _in_scope(
        self, data: pa.Table, partitions: Numbers, data_rows: Numbers, delete_rows: Numbers
    ) -> Pairs:
        """Keep the pairs of one partition; raise if a delete names a file in another partition."""
        if not len(data_rows):
            return data_rows, delete_rows
        same = self._codes[delete_rows] == partitions[data_rows]
        wrong = np.flatnonzero(~same & self._is_named[delete_rows])
        if len(wrong):
            data_row, delete_row = int(data_rows[wrong[0]]), int(delete_rows[wrong[0]])
            raise InvalidMetadataError(
                f"{self._describe(delete_row)} names {data['file_path'][data_row].as_py()}, "
                "which has another partition or spec; the table's deletes are damaged"
            )
        return data_rows[same], delete_rows[same]

    def _may_hold_path(self, paths: pa.Array, data_rows: Numbers, delete_rows: Numbers) -> Pairs:
        """Keep the pairs whose data path lies within the delete file's path bounds."""
        path = paths.cast(pa.binary()).take(pa.array(data_rows))
        lower = self._table[_LOWER].combine_chunks().take(pa.array(delete_rows))
        upper = self._table[_UPPER].combine_chunks().take(pa.array(delete_rows))
        may_hold = possible(pc.less_equal(lower, path)) & possible(pc.greater_equal(upper, path))
        # of a lower bound above the upper one, one is wrong
        may_hold |= ~possible(pc.less_equal(lower, upper))
        return data_rows[may_hold], delete_rows[may_hold]

    def _references(
        self, data_rows: Numbers, delete_rows: Numbers
    ) -> dict[int, tuple[DeleteFileRef, ...]]:
        """Return the deletes of each data row, in the order of the index."""
        if not len(data_rows):
            return {}
        order = np.lexsort((delete_rows, data_rows))
        data_rows, delete_rows = data_rows[order], delete_rows[order]
        self._make_references(np.unique(delete_rows))
        rows, starts = np.unique(data_rows, return_index=True)
        ends = [*starts[1:].tolist(), len(data_rows)]
        deletes = delete_rows.tolist()
        return {
            row: self._references_of(tuple(deletes[start:end]))
            for row, start, end in zip(rows.tolist(), starts.tolist(), ends, strict=True)
        }

    def _references_of(self, rows: tuple[int, ...]) -> tuple[DeleteFileRef, ...]:
        """Return the deletes of the rows; data files with the same deletes share one tuple."""
        refs = self._tuples.get(rows)
        if refs is None:
            refs = tuple(self._refs[row] for row in rows)
            self._tuples[rows] = refs
        return refs

    def _make_references(self, rows: Numbers) -> None:
        new = [row for row in rows.tolist() if row not in self._refs]
        if not new:
            return
        table = self._table.take(pa.array(new, pa.int64()))
        columns = (table[name].to_pylist() for name in _COLUMNS[:-2])
        manifests = np.searchsorted(self._ends, new, side="right").tolist()
        for row, manifest, *values in zip(new, manifests, *columns, strict=True):
            (
                content,
                file_path,
                file_format,
                file_size_in_bytes,
                record_count,
                sequence_number,
                _,
                equality_ids,
                referenced_data_file,
                content_offset,
                content_size_in_bytes,
                key_metadata,
            ) = values
            self._refs[row] = DeleteFileRef(
                content=FileContent(content),
                file_path=file_path,
                file_format=file_format,
                file_size_in_bytes=file_size_in_bytes,
                record_count=record_count,
                data_sequence_number=sequence_number,
                equality_ids=tuple(equality_ids or ()),
                referenced_data_file=referenced_data_file,
                content_offset=content_offset,
                content_size_in_bytes=content_size_in_bytes,
                is_of_one_file=bool(self._is_of_one_file[row]),
                key_metadata=key_metadata,
                manifest_path=self._manifests[manifest],
            )


def _number_partitions(
    entries: Sequence[DeleteEntries],
) -> tuple[dict[int, tuple[int, PartitionCodes]], Numbers]:
    """Return each spec's first number and codes, and a number for each delete's partition.

    No two specs share a number; a partition's number is its code plus the first number of its spec.
    """
    by_spec: dict[int, list[pa.Table]] = {}
    for e in entries:
        by_spec.setdefault(e.spec.spec_id, []).append(e.table.select(["partition"]))
    codes_by_spec = {}
    numbers = []
    first = 0
    for spec_id, tables in by_spec.items():
        partitions = concat_partitions([t["partition"].combine_chunks() for t in tables])
        codes = PartitionCodes(partitions)
        codes_by_spec[spec_id] = (first, codes)
        numbers.append(codes.codes + first)
        first += len(partitions)
    return codes_by_spec, np.concatenate(numbers)


def _may_share_rows(
    ranges: Sequence[tuple[Mask, ColumnRanges, ColumnRanges]],
    data_rows: Numbers,
    delete_rows: Numbers,
) -> Pairs:
    """Drop the pairs for which a compared column proves that the files share no value.

    Each item of `ranges` tells which deletes compare the column, and has the ranges of deletes and
    data.
    """
    for is_compared, delete_ranges, data_ranges in ranges:
        nulls = delete_ranges.may_be_null[delete_rows] & data_ranges.may_be_null[data_rows]
        values = delete_ranges.may_be_value[delete_rows] & data_ranges.may_be_value[data_rows]
        first, second = pa.array(delete_rows), pa.array(data_rows)
        for lower, upper in (
            (delete_ranges.lower.take(first), data_ranges.upper.take(second)),
            (data_ranges.lower.take(second), delete_ranges.upper.take(first)),
        ):
            values &= possible(pc.less_equal(lower, upper))
        may_share = nulls | values | ~is_compared[delete_rows]
        data_rows, delete_rows = data_rows[may_share], delete_rows[may_share]
    return data_rows, delete_rows


def equality_field_ids(table: pa.Table) -> set[int]:
    """Return the ids of the columns that the equality deletes in the table compare."""
    equality = pc.equal(table["content"], int(FileContent.EQUALITY_DELETES))
    lists = table["equality_ids"].filter(equality).combine_chunks()
    return set(pc.unique(lists.flatten()).to_pylist())


def _find(paths: pa.Array, value_set: pa.Array) -> Numbers:
    """Return the position of each path in `value_set`, or -1 for a missing path."""
    positions = pc.fill_null(pc.index_in(paths, value_set=value_set), -1)
    return np.asarray(positions.to_numpy(zero_copy_only=False), np.int64)


def _numbers(column: pa.ChunkedArray) -> Numbers:
    return np.asarray(column.to_numpy(), np.int64)
