"""Reads the content entries of a root manifest or a leaf by role, whatever the profile of the file.

`spec/content_entries.py` defines the profiles. Entries of files are returned in the form of
manifests of versions 1 to 3 (a raw table of `formats/manifest_files/open_manifest.py`), so that one
reader applies all rules of inheritance: the columns are named `_<field id>`, and the fields of the
file are in a struct `_2`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.formats.encoding.bound_bytes import bound_bytes
from iceberg_pyspark.spec.content_entries import (
    LIVE_STATUSES,
    PROFILES,
    STATS_BASE,
    STATS_WIDTH,
    ContentStatus,
    ContentType,
    Profile,
    Role,
    StatsField,
)
from iceberg_pyspark.spec.manifests import (
    ColumnSummary,
    EntryStatus,
    FileContent,
    ManifestContent,
)

Mask = npt.NDArray[np.bool_]

ORDINAL = "ordinal"
"""The column of a raw table with the row position in the file; set if some rows are left out."""

_TYPES: Mapping[Role, pa.DataType] = {
    "status": pa.int32(),
    "snapshot_id": pa.int64(),
    "sequence_number": pa.int64(),
    "file_sequence_number": pa.int64(),
    "content_type": pa.int32(),
    "location": pa.string(),
    "file_format": pa.string(),
    "spec_id": pa.int32(),
    "record_count": pa.int64(),
    "file_size_in_bytes": pa.int64(),
    "sort_order_id": pa.int32(),
    "first_row_id": pa.int64(),
    "referenced_file": pa.string(),
    "vector_location": pa.string(),
    "vector_offset": pa.int64(),
    "vector_size_in_bytes": pa.int64(),
    "vector_cardinality": pa.int64(),
    "inline_vector": pa.binary(),
    "added_files_count": pa.int64(),
    "existing_files_count": pa.int64(),
    "deleted_files_count": pa.int64(),
    "added_rows_count": pa.int64(),
    "existing_rows_count": pa.int64(),
    "deleted_rows_count": pa.int64(),
    "min_sequence_number": pa.int64(),
    "manifest_vector": pa.binary(),
    "format_version": pa.int32(),
    "key_metadata": pa.binary(),
    "split_offsets": pa.list_(pa.int64()),
    "equality_ids": pa.list_(pa.int32()),
}
_REQUIRED_ROLES: tuple[Role, ...] = ("status", "content_type", "record_count")
_NUMBERS: Mapping[Role, frozenset[int]] = {
    "status": frozenset(ContentStatus),
    "content_type": frozenset(ContentType),
}
_METRICS: Mapping[str, StatsField] = {
    "_109": StatsField.VALUE_COUNT,
    "_110": StatsField.NULL_VALUE_COUNT,
    "_137": StatsField.NAN_VALUE_COUNT,
    "_125": StatsField.LOWER_BOUND,
    "_128": StatsField.UPPER_BOUND,
}
"""The metric maps of older manifests, by field id, and the statistics that fill them."""

_SUMMARIES = {
    "_109": "value_count",
    "_110": "null_value_count",
    "_137": "nan_value_count",
    "_125": "lower_bound",
    "_128": "upper_bound",
}
"""The metric maps, by field id, and the fields of `ColumnSummary` that they fill."""

_BOUNDS = (StatsField.LOWER_BOUND, StatsField.UPPER_BOUND)
_OF_ROOT_MANIFESTS = (
    ContentType.DATA_MANIFEST,
    ContentType.DELETE_MANIFEST,
    ContentType.MANIFEST_DELETION_VECTOR,
)
_OF_FILES = {
    ManifestContent.DATA: (ContentType.DATA,),
    ManifestContent.DELETES: (ContentType.DELETION_VECTOR, ContentType.EQUALITY_DELETES),
}


def profile_of(raw: pa.Table) -> Profile | None:
    """Return the profile of a raw table of content entries, or None if it has manifest entries."""
    names = set(raw.column_names)
    if "_2" in names:
        return None
    for profile in PROFILES:
        field_id, _ = profile.marker
        if f"_{field_id}" in names and pa.types.is_struct(raw.schema.field(f"_{field_id}").type):
            struct = raw.schema.field(f"_{field_id}").type
            if struct.get_field_index("_0") >= 0:
                return profile
    return None


class ContentEntries:
    """The entries of one file by role; `damage_error` creates the error for an invalid entry.

    Raises `UnsupportedFeatureError` for a live entry with a value in a top-level column that the
    profile does not have, such as the column files of a proposal: such a value may change the rows
    of the file.
    """

    def __init__(
        self,
        raw: pa.Table,
        profile: Profile,
        location: str,
        damage_error: Callable[[str], Exception],
    ) -> None:
        self._raw = {name: raw.column(name).combine_chunks() for name in raw.column_names}
        self._profile = profile
        self._location = location
        self._damage_error = damage_error
        self.row_count: int = raw.num_rows
        for role in _REQUIRED_ROLES:
            if self[role].null_count:
                raise damage_error(f"an entry without {role}")
        for role, numbers in _NUMBERS.items():
            for value in pc.unique(self[role]).to_pylist():
                if value not in numbers:
                    raise damage_error(f"an entry with {role} {value}")
        self._check_columns(profile)

    def __getitem__(self, role: Role) -> pa.Array:
        array = self._at(role)
        type_ = _TYPES[role]
        if array is None:
            return pa.nulls(self.row_count, type_)
        try:
            return array.cast(type_)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
            raise self._damage_error(f"{role}: {e}") from e

    def _check_columns(self, profile: Profile) -> None:
        profile_columns = {f"_{field_id}" for field_id in profile.top_level_ids} | {ORDINAL}
        for name in self._raw.keys() - profile_columns:
            has_value = _numpy(self._raw[name].is_valid())
            if (has_value & self.is_live).any():
                raise UnsupportedFeatureError(
                    f"{self._location}: entries with a value in column {name[1:]}, which this "
                    "package does not know, are not supported; read the table with the engine that "
                    "wrote it"
                )

    @property
    def is_live(self) -> Mask:
        """A mask of the live entries; manifest deletion vectors are not applied."""
        return np.isin(_numpy(self["status"]), [int(s) for s in LIVE_STATUSES])

    def of_types(self, *types: ContentType) -> Mask:
        """Return a mask of the entries that have one of the content types."""
        return np.isin(_numpy(self["content_type"]), [int(t) for t in types])

    def files(self, content: ManifestContent) -> Mask:
        """Return a mask of the entries for data files, or for files with deletes."""
        return self.of_types(*_OF_FILES[content])

    @property
    def has_vectors_in_data_files(self) -> bool:
        """Whether the entry of a data file also holds the deletion vector of the file."""
        return "vector_location" in self._profile.paths

    def entries_of(self, content: ManifestContent, spec_id: int | None) -> pa.Table:
        """Return the entries of data files, or of delete files, in the form of older manifests.

        `spec_id` is set for a root manifest, which mixes files of all specs with other entries; a
        leaf has only files of one spec.
        """
        if spec_id is None:
            if self.of_types(*_OF_ROOT_MANIFESTS).any():
                raise self._damage_error(
                    "a leaf manifest with an entry that is allowed only in a root manifest"
                )
            of_spec = np.ones(self.row_count, np.bool_)
        else:
            of_spec = _numpy(self.spec_ids) == spec_id
        files = self._as_manifest_entries(of_spec & self.files(content))
        if content is ManifestContent.DATA or not self.has_vectors_in_data_files:
            return files
        vectors = self._vectors_as_manifest_entries(of_spec & self.files(ManifestContent.DATA))
        return pa.concat_tables([files, vectors], promote_options="default")

    @property
    def spec_ids(self) -> pa.Array:
        """The partition spec of each entry; raises `UnsupportedFeatureError` if it is unknown."""
        spec_ids = self["spec_id"]
        if spec_ids.null_count and self._at("partition") is not None:
            raise UnsupportedFeatureError(
                f"{self._location}: entries with a partition but without a partition spec are not "
                "supported; read the table with the engine that wrote it"
            )
        return pc.fill_null(spec_ids, 0)

    def _as_manifest_entries(self, mask: Mask) -> pa.Table:
        """Return the selected entries of files, in order, in the form of older manifests."""
        rows = pa.array(mask)
        file = {
            "_134": self["content_type"],
            "_100": self["location"],
            "_101": self["file_format"],
            "_103": self["record_count"],
            "_104": self["file_size_in_bytes"],
            "_131": self["key_metadata"],
            "_132": self["split_offsets"],
            "_135": self["equality_ids"],
            "_140": self["sort_order_id"],
            "_142": self["first_row_id"],
            "_143": self["referenced_file"],
            "_144": self["vector_offset"],
            "_145": self["vector_size_in_bytes"],
            **self._partition(),
            **self._metrics(),
        }
        if self.has_vectors_in_data_files:
            file["_144"] = file["_145"] = pa.nulls(self.row_count, pa.int64())
        return self._entries(file, self._entry_status()).filter(rows)

    def _vectors_as_manifest_entries(self, mask: Mask) -> pa.Table:
        """Return the deletion vectors in the selected entries of data files as separate entries.

        A vector has the sequence numbers of its data file's entry, because it applies to that file
        only.
        """
        has_vector = _numpy(pc.is_valid(self["vector_location"])) & self.is_live
        size = self.row_count
        file = {
            "_134": pa.repeat(pa.scalar(int(FileContent.POSITION_DELETES), pa.int32()), size),
            "_100": self["vector_location"],
            "_101": pa.repeat(pa.scalar("puffin"), size),
            "_103": self["vector_cardinality"],
            # the size of the Puffin file is unknown; readers need only the place of the blob
            "_104": pc.add(self["vector_offset"], self["vector_size_in_bytes"]),
            "_143": self["location"],
            "_144": self["vector_offset"],
            "_145": self["vector_size_in_bytes"],
            **self._partition(),
        }
        return self._entries(file, self._entry_status()).filter(pa.array(mask & has_vector))

    def _entry_status(self) -> pa.Array:
        """Return the status for older manifests: EXISTING for MODIFIED, DELETED for REPLACED."""
        status = _numpy(self["status"]).copy()
        status[status == ContentStatus.MODIFIED] = EntryStatus.EXISTING
        status[status == ContentStatus.REPLACED] = EntryStatus.DELETED
        return pa.array(status, pa.int32())

    def _entries(self, file: Mapping[str, pa.Array], status: pa.Array) -> pa.Table:
        return pa.table(
            {
                ORDINAL: pa.array(np.arange(self.row_count), pa.int64()),
                "_0": status,
                "_1": self["snapshot_id"],
                "_3": self["sequence_number"],
                "_4": self["file_sequence_number"],
                "_2": pa.StructArray.from_arrays(list(file.values()), list(file)),
            }
        )

    def _partition(self) -> dict[str, pa.Array]:
        partition = self._at("partition")
        return {} if partition is None else {"_102": partition}

    def _metrics(self) -> dict[str, pa.Array]:
        stats = self._at("content_stats")
        if stats is None:
            return {}
        if not pa.types.is_struct(stats.type):
            raise self._damage_error(f"content_stats is {stats.type} and must be a struct")
        columns = dict(self._columns_with_stats(stats))
        return {name: self._by_column(columns, of) for name, of in _METRICS.items()}

    def columns_of(self, selection: Mask) -> list[tuple[ColumnSummary, ...]]:
        """Return the column statistics of each selected entry."""
        stats_of_entries: list[dict[int, dict[str, Any]]] = [
            {} for _ in range(int(selection.sum()))
        ]
        if not stats_of_entries:
            return []
        for name, lists in self._metrics().items():
            of_entries = lists.filter(pa.array(selection)).to_pylist()
            for columns, pairs in zip(stats_of_entries, of_entries, strict=True):
                for pair in pairs:
                    columns.setdefault(pair["key"], {})[_SUMMARIES[name]] = pair["value"]
        return [
            tuple(ColumnSummary(field_id=i, **values) for i, values in sorted(columns.items()))
            for columns in stats_of_entries
        ]

    def _columns_with_stats(self, stats: pa.StructArray) -> Iterator[tuple[int, pa.StructArray]]:
        for child, array in zip(stats.type, stats.flatten(), strict=True):
            field_id, rest = divmod(int(child.name[1:]) - STATS_BASE, STATS_WIDTH)
            # smaller ids are those of reserved columns, which no filter uses
            if field_id >= 0 and rest == 0 and pa.types.is_struct(array.type):
                yield field_id, array

    def _by_column(self, columns: Mapping[int, pa.StructArray], of: StatsField) -> pa.Array:
        """Return lists of pairs of a column id and a value, like the metric maps of a raw table."""
        ids, arrays = list[int](), list[pa.Array]()
        type_ = pa.binary() if of in _BOUNDS else pa.int64()
        for field_id, stats in columns.items():
            at = stats.type.get_field_index(f"_{STATS_BASE + STATS_WIDTH * field_id + of}")
            if at < 0:
                continue
            values = stats.flatten()[at]
            try:
                values = bound_bytes(values) if of in _BOUNDS else values.cast(type_)
            except (TypeError, pa.ArrowException) as e:
                if pa.types.is_struct(values.type):
                    # bounding boxes of geometries, which no filter uses
                    continue
                raise self._damage_error(f"the statistics of column {field_id}: {e}") from e
            ids.append(field_id)
            arrays.append(values)
        present = np.array([_numpy(pc.is_valid(a)) for a in arrays], np.bool_)
        present = present.reshape(len(arrays), self.row_count)
        row, column = np.nonzero(present.T)
        offsets = np.concatenate(([0], np.cumsum(present.sum(axis=0))))
        values = pa.concat_arrays(arrays) if arrays else pa.array([], type_)
        pairs = pa.StructArray.from_arrays(
            [
                pa.array(np.array(ids, np.int32)[column], pa.int32()),
                values.take(pa.array(column * self.row_count + row)),
            ],
            ["key", "value"],
        )
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pairs)

    def _at(self, role: Role) -> pa.Array | None:
        """Return the column of a role, null where an enclosing struct is null; None if missing."""
        path = self._profile.paths.get(role)
        if path is None:
            return None
        array = self._raw.get(f"_{path[0]}")
        for field_id in path[1:]:
            if array is None:
                return None
            if not pa.types.is_struct(array.type):
                raise self._damage_error(f"field {path[0]} is {array.type} and must be a struct")
            at = array.type.get_field_index(f"_{field_id}")
            array = None if at < 0 else array.flatten()[at]
        return array


def _numpy(array: pa.Array) -> npt.NDArray[Any]:
    return np.asarray(array.to_numpy(zero_copy_only=False))
