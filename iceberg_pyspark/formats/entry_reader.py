"""Converts the raw records of a manifest to columns, with inherited values filled in.

Specification, "Manifest Entry Fields", "Data File Fields", "Sequence Number Inheritance" and "First
Row ID Inheritance". The columns are defined in `spec/entry_columns.py`. Every format and decoder
yields the same raw table (`formats/manifest_files/open_manifest.py`), to which this module applies
all rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.errors import InvalidMetadataError, UnsupportedFeatureError
from iceberg_pyspark.formats.encoding.physical_types import physical_type, physical_values
from iceberg_pyspark.formats.known_manifests import (
    KnownEntries,
    Numbers,
    in_blocks,
)
from iceberg_pyspark.formats.manifest_files.open_manifest import EncodedManifest
from iceberg_pyspark.formats.puffin.deletion_vectors import decode_deletion_vector
from iceberg_pyspark.formats.roots.content_entry_reader import ORDINAL
from iceberg_pyspark.spec.entry_columns import (
    ENTRY_COLUMNS,
    FILTER_METRICS,
    METRIC_MAPS,
    MetricMap,
    metric_column,
)
from iceberg_pyspark.spec.manifests import (
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestFile,
    first_inherited_row_id,
    inherited_sequence_number,
    takes_row_ids,
)
from iceberg_pyspark.spec.metadata_columns import DELETE_FILE_PATH
from iceberg_pyspark.spec.relative_paths import SCHEME, may_hold_relative_paths, scheme_of
from iceberg_pyspark.spec.types import (
    DateType,
    IntegerType,
    NestedField,
    StructType,
    UnknownType,
)

Metrics = Collection[int] | Literal["all"]

_DATA_FILE = 2
_PARTITION = 102
_ENTRY_FIELDS: Mapping[str, tuple[int, pa.DataType]] = {
    "status": (0, pa.int32()),
    "snapshot_id": (1, pa.int64()),
    "sequence_number": (3, pa.int64()),
    "file_sequence_number": (4, pa.int64()),
}
_FILE_FIELDS: Mapping[str, tuple[int, pa.DataType]] = {
    "content": (134, pa.int32()),
    "file_path": (100, pa.string()),
    "file_format": (101, pa.string()),
    "record_count": (103, pa.int64()),
    "file_size_in_bytes": (104, pa.int64()),
    "key_metadata": (131, pa.binary()),
    "split_offsets": (132, pa.list_(pa.int64())),
    "equality_ids": (135, pa.list_(pa.int32())),
    "sort_order_id": (140, pa.int32()),
    "first_row_id": (142, pa.int64()),
    "referenced_data_file": (143, pa.string()),
    "content_offset": (144, pa.int64()),
    "content_size_in_bytes": (145, pa.int64()),
}
_REQUIRED_COLUMNS = ("status", "file_path", "file_format", "record_count", "file_size_in_bytes")
_METRIC_IDS: Mapping[MetricMap, int] = {
    "column_sizes": 108,
    "value_counts": 109,
    "null_value_counts": 110,
    "nan_value_counts": 137,
    "lower_bounds": 125,
    "upper_bounds": 128,
}
_METRIC_VALUES: Mapping[MetricMap, pa.DataType] = {
    metric: pa.binary() if metric.endswith("bounds") else pa.int64() for metric in METRIC_MAPS
}
_FILE_FORMATS = ("parquet", "avro", "orc", "puffin")


class EntryReader:
    """The conversion of a manifest's raw table to an entry table.

    The raw table may have the entries of several manifests, as many as `counts` says of each. They
    have the same schema, spec, content and table, have no dead positions and are not roots.
    """

    def __init__(
        self,
        manifest_file: EncodedManifest,
        manifests: Sequence[ManifestFile],
        counts: Sequence[int],
        raw: pa.Table,
    ) -> None:
        self._location = manifest_file.location
        self._damage_error = manifest_file.damage_error
        self._format_version = manifest_file.metadata.get("format-version", "1")
        self._null_field_ids = manifest_file.null_field_ids
        self._manifests = manifests
        self._manifest = manifests[0]
        self._rows = raw.num_rows
        self._starts = np.cumsum([0, *counts])
        """The number of the first entry of each manifest, and the number of all entries."""
        self._manifest_of = np.repeat(np.arange(len(manifests)), counts)
        has_ordinals = ORDINAL in raw.column_names
        self._ordinals = _numpy(raw[ORDINAL]) if has_ordinals else np.arange(self._rows)
        whole = {name: raw.column(name) for name in raw.column_names}
        data_file = whole.pop(f"_{_DATA_FILE}", None)
        if data_file is None or not pa.types.is_struct(data_file.type) or data_file.null_count:
            raise self._damage_error("an entry without data_file (field 2)")
        self._entry = {name: column.combine_chunks() for name, column in whole.items()}
        of_file = _children(data_file)
        metric_names = {f"_{i}" for i in _METRIC_IDS.values()}
        # metrics are most of a manifest, and few of them are needed
        self._metric_maps = {name: of_file.pop(name) for name in metric_names & of_file.keys()}
        self._file = {name: column.combine_chunks() for name, column in of_file.items()}

    def entries(
        self, partition_type: StructType, drop_deleted: bool, metrics: Metrics
    ) -> list[KnownEntries]:
        """Return the entries of each manifest; see `known_entries`."""
        columns = {
            **{name: self._column(self._entry, name, *f) for name, f in _ENTRY_FIELDS.items()},
            **{name: self._column(self._file, name, *f) for name, f in _FILE_FIELDS.items()},
            "partition": self._partition(partition_type),
            "spec_id": pa.repeat(
                pa.scalar(self._manifest.partition_spec_id, pa.int32()), self._rows
            ),
        }
        for name in _REQUIRED_COLUMNS:
            if columns[name].null_count:
                raise self._damage_error(f"an entry without {name}")
        self._check_status(columns["status"])
        columns["content"] = pc.fill_null(columns["content"], 0)
        self._check_content(columns["content"])
        columns["file_format"] = self._file_format(columns["file_format"])
        for name in ("file_path", "referenced_data_file"):
            columns[name] = self._resolve_paths(columns[name])
        columns["first_row_id"] = self._first_row_id(columns)
        if columns["snapshot_id"].null_count:
            inherited = self._inherited([m.added_snapshot_id for m in self._manifests])
            columns["snapshot_id"] = pc.coalesce(columns["snapshot_id"], inherited)
        table = pa.table({name: columns[name] for name in ENTRY_COLUMNS} | self._metrics(metrics))
        is_there = np.ones(self._rows, np.bool_)
        if self._manifest.dead_positions is not None:
            # applied after row ids were assigned, because dead entries take row ids too
            dead = decode_deletion_vector(self._manifest.dead_positions, self._location)
            is_there &= ~np.isin(self._ordinals, np.frombuffer(dead.to_array(), np.uint64))
        is_live = is_there
        if any(m.deleted_files_count != 0 for m in self._manifests):
            is_live = is_there & (_numpy(columns["status"]) != EntryStatus.DELETED)
        self._check_position_deletes(columns, is_live)
        if drop_deleted:
            is_there = is_live
        if not is_there.all():
            table = table.filter(pa.array(is_there))
        table = self._with_sequence_numbers(table, self._manifest_of[is_there])
        kept_before = np.concatenate(([0], np.cumsum(is_there)))
        parts = []
        for start, end in pairwise(self._starts):
            first, last = kept_before[start], kept_before[end]
            dropped = self._ordinals[start:end][~is_there[start:end]].astype(np.int64) - start
            parts.append(in_blocks(table.slice(first, last - first), dropped))
        return parts

    def _inherited(self, values: Sequence[int | None]) -> pa.Array:
        """Return for each entry the value of its manifest."""
        return pa.array(values, pa.int64()).take(pa.array(self._manifest_of))

    def _column(
        self, parent: Mapping[str, pa.Array], name: str, field_id: int, type_: pa.DataType
    ) -> pa.Array:
        column = parent.get(f"_{field_id}")
        if column is None:
            return pa.nulls(self._rows, type_)
        return self._cast(column, type_, name)

    def _cast(self, array: pa.Array, type_: pa.DataType, name: str) -> pa.Array:
        if array.type == type_:
            return array
        if not _may_cast(array.type, type_):
            raise self._damage_error(f"{name} is {array.type} and must be {type_}")
        try:
            return array.cast(type_)
        except pa.ArrowInvalid as e:
            raise self._damage_error(f"{name}: {e}") from e

    def _check_status(self, status: pa.Array) -> None:
        for value in pc.unique(status).to_pylist():
            if value not in (0, 1, 2):
                raise self._damage_error(f"an entry with status {value}")

    def _check_content(self, content: pa.Array) -> None:
        allowed_contents = (0,) if self._manifest.content is ManifestContent.DATA else (1, 2)
        for value in pc.unique(content).to_pylist():
            if value not in allowed_contents:
                raise self._damage_error(
                    f"an entry with content {value} in a manifest of "
                    f"{self._manifest.content.name.lower()}",
                )

    def _file_format(self, file_format: pa.Array) -> pa.Array:
        lower = pc.utf8_lower(file_format)
        for value in pc.unique(lower).to_pylist():
            if value not in _FILE_FORMATS:
                raise UnsupportedFeatureError(
                    f"{self._location}: file format '{value}' is not supported; "
                    f"{', '.join(_FILE_FORMATS)} are"
                )
        return lower

    def _resolve_paths(self, paths: pa.Array) -> pa.Array:
        """Return absolute paths with a scheme, as version 4 compares paths."""
        base = self._manifest.table_location
        if base is None:
            return paths
        is_absolute = pc.match_substring_regex(paths, SCHEME)
        if may_hold_relative_paths(self._format_version):
            absolute_paths = pc.binary_join_element_wise(pa.scalar(base), paths, "/")
        else:
            absolute_paths = pc.binary_join_element_wise(pa.scalar(scheme_of(base)), paths, "")
        return pc.if_else(is_absolute, paths, absolute_paths)

    def _check_position_deletes(
        self, columns: Mapping[str, pa.Array], is_live: np.ndarray[Any, np.dtype[np.bool_]]
    ) -> None:
        """Refuse old position delete files whose data file paths may have no scheme.

        The paths inside such files, which are from before version 4, are not resolved, so the
        deletes would not match their data files.
        """
        if self._manifest.table_location is None:
            return
        path_bounds = self._metric_columns("lower_bounds", (DELETE_FILE_PATH.field_id,))
        is_file_of_positions = pc.and_(
            pc.equal(columns["content"], int(FileContent.POSITION_DELETES)),
            pc.not_equal(columns["file_format"], "puffin"),
        )
        # only locations of local files can lack a scheme
        is_local_table = self._manifest.table_location.startswith("file:")
        has_scheme = pc.fill_null(
            pc.match_substring_regex(*path_bounds.values(), SCHEME), not is_local_table
        )
        is_refused = pc.and_(pc.and_not(is_file_of_positions, has_scheme), pa.array(is_live))
        for path in columns["file_path"].filter(is_refused).to_pylist():
            raise UnsupportedFeatureError(
                f"{self._location}: the position deletes of {path} name data files by paths that "
                "may have no scheme, which version 4 treats as relative; rewrite them as deletion "
                "vectors with the engine that upgraded the table"
            )

    def _partition(self, partition_type: StructType) -> pa.Array:
        partition = self._file.get(f"_{_PARTITION}")
        columns = {} if partition is None else _children(partition)
        fields = partition_type.fields
        positional = list(columns.values())
        arrays = []
        for i, f in enumerate(fields):
            array = columns.get(f"_{f.field_id}")
            if array is None and self._format_version == "1" and len(positional) == len(fields):
                # only since v2 must the field ids match the spec
                array = positional[i]
            unwritten = isinstance(f.type, UnknownType) or f.field_id in self._null_field_ids
            if array is None and not unwritten:
                raise self._damage_error(
                    f"partition field {f.field_id} of spec {self._manifest.partition_spec_id} "
                    "is not in its schema",
                )
            arrays.append(self._partition_field(f, array))
        if not arrays:
            return pa.array([{}] * self._rows, pa.struct([]))
        names = [str(f.field_id) for f in fields]
        return pa.StructArray.from_arrays(arrays, names)

    def _partition_field(self, field: NestedField, array: pa.Array | None) -> pa.Array:
        if isinstance(field.type, UnknownType):
            # keep the values unchanged, because no target type is known
            return pa.nulls(self._rows) if array is None else _plain(array)
        type_ = physical_type(field.type)
        if array is None or array.null_count == len(array):
            # a void field may have its source's type or int, whatever the source is (specification,
            # "Partition Transforms")
            return pa.nulls(self._rows, type_)
        if pa.types.is_date32(array.type) and not isinstance(field.type, IntegerType | DateType):
            raise self._type_change_error(field, array)
        try:
            values = physical_values(array, field.type)
        except pa.ArrowInvalid as e:
            raise self._damage_error(f"partition field {field.name}: {e}") from e
        if values.type != type_ and not _may_cast(values.type, type_):
            raise self._type_change_error(field, array)
        return self._cast(values, type_, f"partition field {field.name}")

    def _type_change_error(self, field: NestedField, array: pa.Array) -> Exception:
        return InvalidMetadataError(
            f"{self._location}: its values of partition field '{field.name}' are {array.type}, "
            f"and not {field.type}: the column got another type since the manifest was written, "
            "because the table was replaced, or the manifest is damaged; read a snapshot of that "
            "time by its id or by a tag, which has the columns of that time"
        )

    def _first_row_id(self, columns: Mapping[str, pa.Array]) -> pa.Array:
        if self._manifest.is_root and self._manifest.content is ManifestContent.DATA:
            # entries of a root manifest have no parent to inherit from
            return columns["first_row_id"]
        starts = self._inherited([first_inherited_row_id(m) for m in self._manifests])
        if starts.null_count == self._rows:
            return pa.nulls(self._rows, pa.int64())
        takes_ids = pa.array([takes_row_ids(s) for s in EntryStatus]).take(columns["status"])
        inherits = pc.and_(pc.is_null(columns["first_row_id"]), takes_ids)
        counts = np.where(_numpy(inherits), _numpy(columns["record_count"]), 0)
        before = np.concatenate(([0], np.cumsum(counts)))
        within = before[:-1] - before[self._starts[self._manifest_of]]
        ids = pc.if_else(inherits, pc.add(starts, pa.array(within)), columns["first_row_id"])
        return pc.if_else(pc.is_valid(starts), ids, None)

    def _with_sequence_numbers(self, table: pa.Table, manifest_of: Numbers) -> pa.Table:
        for field_id, name in ((3, "sequence_number"), (4, "file_sequence_number")):
            column = table[name]
            if column.null_count == 0:
                continue
            is_written = f"_{field_id}" in self._entry
            numbers = [
                inherited_sequence_number(s, m, is_written=is_written)
                for m in self._manifests
                for s in EntryStatus
            ]
            at = pc.add(pa.array(manifest_of * len(EntryStatus)), table["status"])
            values = pc.coalesce(column, pa.array(numbers, pa.int64()).take(at))
            if values.null_count:
                raise self._damage_error(
                    f"an entry that is not ADDED has no {name}; only added files inherit it",
                )
            table = table.set_column(table.schema.get_field_index(name), name, values)
        return table

    def _metrics(self, metrics: Metrics) -> dict[str, pa.Array]:
        if metrics == "all":
            return {metric: self._whole_map(metric) for metric in METRIC_MAPS}
        out: dict[str, pa.Array] = {}
        if metrics:
            for metric in FILTER_METRICS:
                out |= self._metric_columns(metric, metrics)
        return out

    def _metric_parts(self, metric: MetricMap) -> Iterator[tuple[pa.Array, pa.Array, pa.Array]]:
        """Yield lists of a metric with all keys and all values, none if the file has no metric."""
        chunked = self._metric_maps.get(f"_{_METRIC_IDS[metric]}")
        for lists in [] if chunked is None else chunked.chunks:
            if not pa.types.is_list(lists.type) or lists.type.value_type.num_fields != 2:
                raise self._damage_error(f"{metric} is {lists.type} and must be a map")
            keys, values = lists.values.flatten()
            yield (
                lists,
                self._cast(keys, pa.int32(), metric),
                self._cast(values, _METRIC_VALUES[metric], metric),
            )

    def _whole_map(self, metric: MetricMap) -> pa.Array:
        type_ = pa.map_(pa.int32(), _METRIC_VALUES[metric])
        maps = []
        for lists, keys, values in self._metric_parts(metric):
            mask = pc.is_null(lists) if lists.null_count else None
            maps.append(pa.MapArray.from_arrays(lists.offsets, keys, values, type_, mask=mask))
        return pa.concat_arrays(maps) if maps else pa.nulls(self._rows, type_)

    def _metric_columns(self, metric: MetricMap, field_ids: Collection[int]) -> dict[str, pa.Array]:
        columns: dict[int, list[pa.Array]] = {i: [] for i in field_ids}
        for lists, keys, values in self._metric_parts(metric):
            offsets = _numpy(lists.offsets)
            key_numbers = _numpy(keys)
            for field_id, column in columns.items():
                positions = np.flatnonzero(key_numbers == field_id)
                at = np.full(len(lists), -1, np.int64)
                # find the entry whose list contains the key; a key outside all lists belongs to no
                # entry
                row = np.searchsorted(offsets, positions, side="right") - 1
                inside = (row >= 0) & (row < len(lists))
                at[row[inside]] = positions[inside]
                if lists.null_count:
                    at[_numpy(pc.is_null(lists))] = -1
                column.append(values.take(pa.array(at, mask=at < 0)))
        is_missing = f"_{_METRIC_IDS[metric]}" not in self._metric_maps
        nulls = pa.nulls(self._rows if is_missing else 0, _METRIC_VALUES[metric])
        return {
            metric_column(metric, i): pa.concat_arrays([nulls, *parts])
            for i, parts in columns.items()
        }


def _plain(array: pa.Array) -> pa.Array:
    fixed = pa.types.is_fixed_size_binary(array.type)
    return array.cast(pa.binary()) if fixed else array


def _children(struct: pa.Array | pa.ChunkedArray) -> dict[str, Any]:
    return dict(zip((f.name for f in struct.type), struct.flatten(), strict=True))


def _numpy(array: pa.Array) -> np.ndarray[Any, np.dtype[Any]]:
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _may_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether a cast keeps values: type promotions, and widths that other writers chose."""
    if pa.types.is_null(source):
        return True
    if pa.types.is_integer(source):
        return bool(pa.types.is_integer(target))
    if pa.types.is_floating(source):
        return bool(pa.types.is_floating(target))
    if pa.types.is_decimal(source):
        return bool(pa.types.is_decimal(target)) and source.scale == target.scale
    if pa.types.is_list(source):
        return bool(pa.types.is_list(target)) and _may_cast(source.value_type, target.value_type)
    binary = pa.types.is_binary(source) or pa.types.is_fixed_size_binary(source)
    return binary and bool(pa.types.is_binary(target))
