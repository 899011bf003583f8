"""Convert tables of version 3 to ones with root manifests, in either content entry profile.

The field ids are repeated here as the proposals state them, and pyarrow writes the files, so that
nothing depends on the product's own writer.
"""

from __future__ import annotations

import io as streams
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark import Table
from iceberg_pyspark.formats.encoding.physical_types import physical_type
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.formats.manifest_reader import entries_of
from iceberg_pyspark.formats.puffin.deletion_vectors import encode_deletion_vector
from iceberg_pyspark.spec.manifests import ManifestContent, ManifestEntry, ManifestFile
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.types import PrimitiveType, UnknownType
from iceberg_pyspark.spec.values import value_from_bytes
from iceberg_pyspark.storage.files.file_io import FileIO

ProfileName = Literal["single-file commits", "tracked files"]
Row = dict[str, Any]
"""A content entry: values by dotted field names such as `version_info.status`."""

_LONG, _INT, _TEXT, _BYTES = pa.int64(), pa.int32(), pa.string(), pa.binary()
_FILE: Sequence[tuple[int, str, pa.DataType]] = (
    (134, "content_type", _INT),
    (100, "location", _TEXT),
    (101, "file_format", _TEXT),
    (103, "record_count", _LONG),
    (104, "file_size_in_bytes", _LONG),
    (140, "sort_order_id", _INT),
    (131, "key_metadata", _BYTES),
)
_COUNTS: Sequence[tuple[int, str, pa.DataType]] = (
    (504, "added_files_count", _INT),
    (505, "existing_files_count", _INT),
    (506, "deleted_files_count", _INT),
    (512, "added_rows_count", _LONG),
    (513, "existing_rows_count", _LONG),
    (514, "deleted_rows_count", _LONG),
    (516, "min_sequence_number", _LONG),
)
_TRACKING: Sequence[tuple[int, str, pa.DataType]] = (
    (0, "status", _INT),
    (1, "snapshot_id", _LONG),
    (3, "sequence_number", _LONG),
    (4, "file_sequence_number", _LONG),
)
_STRUCTS: Mapping[ProfileName, Mapping[tuple[int, str], Sequence[tuple[int, str, pa.DataType]]]] = {
    "single-file commits": {
        (5, "version_info"): _TRACKING,
        (147, "deletion_vector"): (
            (144, "offset", _LONG),
            (145, "size_in_bytes", _LONG),
            (146, "inline_content", _BYTES),
        ),
        (521, "manifest_stats"): _COUNTS,
    },
    "tracked files": {
        (147, "tracking"): (*_TRACKING, (142, "first_row_id", _LONG)),
        (148, "deletion_vector"): (
            (155, "location", _TEXT),
            (144, "offset", _LONG),
            (145, "size_in_bytes", _LONG),
            (156, "cardinality", _LONG),
        ),
        (150, "manifest_info"): (*_COUNTS, (522, "dv", _BYTES), (523, "dv_cardinality", _LONG)),
    },
}
_MORE: Mapping[ProfileName, Sequence[tuple[int, str, pa.DataType]]] = {
    "single-file commits": (
        (148, "partition_spec_id", _INT),
        (142, "first_row_id", _LONG),
        (143, "referenced_file", _TEXT),
    ),
    "tracked files": ((157, "format_version", _INT), (141, "spec_id", _INT)),
}
_STATS_NAMES = (
    *("lower_bound", "upper_bound", "tight_bounds"),
    *("value_count", "null_value_count", "nan_value_count"),
)
_STATS_ID: Mapping[ProfileName, int] = {"single-file commits": 149, "tracked files": 146}


def content_file(
    profile: ProfileName,
    rows: Iterable[Row],
    *,
    content: str,
    partition: Sequence[tuple[int, pa.DataType]] = (),
    stats: Sequence[tuple[int, pa.DataType]] = (),
) -> bytes:
    """Return a Parquet file of content entries.

    `partition` and `stats` list columns by field id; rows have `partition.<id>` and
    `stats.<id>.<lower
    upper
    values
    nulls>`.
    """
    rows = list(rows)
    columns: list[tuple[pa.Field, list[Any]]] = []
    for spec in (*_FILE, *_MORE[profile]):
        columns.append((_field(*spec), [row.get(spec[1]) for row in rows]))
    lists = [("split_offsets", 132, 133, _LONG), ("equality_ids", 135, 136, _INT)]
    if any("column_files" in row for row in rows):
        lists.append(("column_files", 158, 159, pa.struct([_field(164, "location", _TEXT)])))
    for name, field_id, element_id, type_ in lists:
        element = _field(element_id, "element", type_)
        columns.append((_field(field_id, name, pa.list_(element)), [r.get(name) for r in rows]))
    for (field_id, name), children in _STRUCTS[profile].items():
        struct = pa.struct([_field(*child) for child in children])
        columns.append((_field(field_id, name, struct), [_struct(r, name, struct) for r in rows]))
    if partition:
        struct = pa.struct([_field(i, f"p{i}", type_) for i, type_ in partition])
        values = [
            {f"p{i}": row.get(f"partition.{i}") for i, _ in partition}
            if row.get("has_partition")
            else None
            for row in rows
        ]
        columns.append((_field(102, "partition", struct), values))
    if stats:
        structs = [_field(10_000 + 200 * i, f"c{i}", _stats(i, type_)) for i, type_ in stats]
        values = [_stats_of(row, stats) for row in rows]
        columns.append((_field(_STATS_ID[profile], "content_stats", pa.struct(structs)), values))
    schema = pa.schema([column for column, _ in columns])
    table = pa.table([pa.array(v, f.type) for f, v in columns], schema=schema)
    out = streams.BytesIO()
    with pq.ParquetWriter(out, schema, store_schema=False, compression="zstd") as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"format-version": "4", "content": content})
    return out.getvalue()


def puffin_file(blob: bytes, referenced: str) -> bytes:
    """Return a Puffin file with one deletion vector, which begins at offset 4."""
    entry = {
        "type": "deletion-vector-v1",
        "fields": [],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": 4,
        "length": len(blob),
        "properties": {"referenced-data-file": referenced},
    }
    payload = json.dumps({"blobs": [entry]}).encode()
    size = len(payload).to_bytes(4, "little")
    return b"".join((b"PFA1", blob, b"PFA1", payload, size, bytes(4), b"PFA1"))


def _field(field_id: int, name: str, type_: pa.DataType) -> pa.Field:
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(field_id)})


def _struct(row: Row, name: str, struct: pa.StructType) -> dict[str, Any] | None:
    values = {child.name: row.get(f"{name}.{child.name}") for child in struct}
    return None if all(v is None for v in values.values()) else values


def _stats(field_id: int, type_: pa.DataType) -> pa.DataType:
    base = 10_000 + 200 * field_id
    return pa.struct(
        [
            _field(base + 1, "lower_bound", type_),
            _field(base + 2, "upper_bound", type_),
            _field(base + 3, "tight_bounds", pa.bool_()),
            _field(base + 4, "value_count", _LONG),
            _field(base + 5, "null_value_count", _LONG),
            _field(base + 6, "nan_value_count", _LONG),
        ]
    )


def _stats_of(row: Row, stats: Sequence[tuple[int, pa.DataType]]) -> dict[str, Any] | None:
    result = {}
    for i, _ in stats:
        values = {name: row.get(f"stats.{i}.{name}") for name in _STATS_NAMES}
        result[f"c{i}"] = None if all(v is None for v in values.values()) else values
    return result


@dataclass
class RootTable:
    """A version 3 table whose snapshots get root manifests; `choose` decides the layout."""

    table: Table
    io: FileIO
    profile: ProfileName
    choose: random.Random
    has_stats: bool = True
    count: int = 0
    placed: dict[str, int] = field(default_factory=dict)
    """Counts of manifests whose entries went into a root, became leaves, or stayed unchanged."""

    def write(self) -> str:
        """Write root manifests and metadata beside the table's; return the metadata's location."""
        content = json.loads(self.io.read_bytes(self.table.loaded.metadata_location))
        location: str = content["location"]
        content |= {"format-version": 4, "location": self._absolute(location)}
        for snapshot in content["snapshots"]:
            del snapshot["manifest-list"]
            root = self._root(self.table.metadata.snapshot(snapshot["snapshot-id"]).snapshot_id)
            snapshot["root-manifest"] = self._stored(root)
        target = f"{location}/metadata/{self._name('root', 'metadata.json')}"
        self._write(target, json.dumps(content).encode())
        return self._absolute(target)

    # --- a snapshot ---

    def _root(self, snapshot_id: int) -> str:
        snapshot = self.table.metadata.snapshot(snapshot_id)
        manifests = read_snapshot_manifests(self.io, snapshot)
        remaining = {m.manifest_path for m in manifests if self.choose.random() < 0.2}
        is_tracked = self.profile == "tracked files"
        if is_tracked and any(
            m.manifest_path in remaining for m in manifests if m.content is ManifestContent.DATA
        ):
            # Deletion vectors of data files in older leaves must stay in older leaves too.
            remaining |= {
                m.manifest_path for m in manifests if m.content is ManifestContent.DELETES
            }
        vectors = {
            str(e.data_file.referenced_data_file): e
            for m in manifests
            if m.content is ManifestContent.DELETES and m.manifest_path not in remaining
            for e in self._entries(m)
            if e.data_file.file_format == "puffin"
        }
        rows: list[Row] = []
        for manifest in manifests:
            if manifest.manifest_path in remaining:
                self._placed("kept")
                rows.append(self._manifest_row(manifest))
                continue
            entries = [self._row(e, vectors if is_tracked else {}) for e in self._entries(manifest)]
            if is_tracked:
                entries = [row for row in entries if row["content_type"] != 1]
            if self.choose.random() < 0.5:
                self._placed("rows of the root")
                for row in entries:
                    # In a root, only files that this snapshot added have the status ADDED.
                    if row[f"{self._tracking}.snapshot_id"] != snapshot_id:
                        row[f"{self._tracking}.status"] = 0
                rows += entries
            else:
                self._placed("leaves")
                rows += self._leaf(manifest, entries)
        self.choose.shuffle(rows)
        return self._file(rows, "root", "root")

    def _leaf(self, manifest: ManifestFile, entries: list[Row]) -> list[Row]:
        dead: list[int] = []
        if self.choose.random() < 0.5 and entries:
            for _ in range(self.choose.randint(1, 3)):
                at = self.choose.randint(0, len(entries))
                deleted = {**self.choose.choice(entries), "location": "data/gone.parquet"}
                entries.insert(at, {**deleted, "is_dead": True})
            dead = [i for i, row in enumerate(entries) if row.get("is_dead")]
        elif manifest.content is ManifestContent.DATA:
            self._inherit_row_ids(manifest, entries)
        is_data = manifest.content is ManifestContent.DATA
        path = self._file(entries, "data" if is_data else "delete", "leaf")
        leaf: Row = {
            **self._numbers(0, manifest.added_snapshot_id, manifest.sequence_number),
            "content_type": 3 if is_data else 4,
            "location": self._stored(path),
            "file_format": "parquet",
            "record_count": len(entries),
            "file_size_in_bytes": self.io.size(path),
            "partition_spec_id": manifest.partition_spec_id,
            "spec_id": manifest.partition_spec_id,
            "format_version": 4,
            "first_row_id": manifest.first_row_id,
            f"{self._tracking}.first_row_id": manifest.first_row_id,
            **self._counts(len(entries), manifest),
        }
        if not dead:
            return [leaf]
        bitmap = encode_deletion_vector(dead)
        if self.profile == "tracked files":
            return [{**leaf, "manifest_info.dv": bitmap, "manifest_info.dv_cardinality": len(dead)}]
        return [leaf, *self._manifest_vectors(leaf, dead)]

    def _manifest_vectors(self, leaf: Row, dead: list[int]) -> list[Row]:
        """Return two rows: a replaced deletion vector, and the live one, inline or in a file."""
        common: Row = {
            **self._numbers(1, 7, leaf["version_info.sequence_number"]),
            "content_type": 5,
            "file_format": "puffin",
            "referenced_file": leaf["location"],
            "partition_spec_id": leaf["partition_spec_id"],
        }
        replaced: Row = {
            **common,
            "version_info.status": 2,
            "record_count": 1,
            "deletion_vector.inline_content": encode_deletion_vector([leaf["record_count"] + 1]),
        }
        blob = encode_deletion_vector(dead)
        live: Row = {**common, "record_count": len(dead), "deletion_vector.inline_content": blob}
        if self.choose.random() < 0.5:
            path = f"{self.table.location}/metadata/{self._name('mdv', 'puffin')}"
            data = puffin_file(blob, leaf["location"])
            self._write(path, data)
            live = {
                **common,
                "record_count": len(dead),
                "location": self._stored(path),
                "file_size_in_bytes": len(data),
                "deletion_vector.offset": 4,
                "deletion_vector.size_in_bytes": len(blob),
            }
        return [replaced, live]

    def _manifest_row(self, manifest: ManifestFile) -> Row:
        is_data = manifest.content is ManifestContent.DATA
        counts = (
            manifest.added_files_count,
            manifest.existing_files_count,
            manifest.deleted_files_count,
        )
        return {
            **self._numbers(0, manifest.added_snapshot_id, manifest.sequence_number),
            "content_type": 3 if is_data else 4,
            "location": self._absolute(manifest.manifest_path),
            "file_format": "avro",
            "record_count": sum(count or 0 for count in counts),
            "file_size_in_bytes": manifest.manifest_length,
            "partition_spec_id": manifest.partition_spec_id,
            "spec_id": manifest.partition_spec_id,
            "format_version": 0,
            "first_row_id": manifest.first_row_id,
            f"{self._tracking}.first_row_id": manifest.first_row_id,
            **{f"{self._info}.{name}": getattr(manifest, name) for _, name, _ in _COUNTS},
        }

    # --- an entry ---

    def _entries(self, manifest: ManifestFile) -> list[ManifestEntry]:
        metadata = self.table.metadata
        spec = metadata.spec_by_id[manifest.partition_spec_id]
        type_ = partition_type(spec, metadata.schemas_newest_first)
        return list(entries_of(read_entries(self.io, manifest, type_, metrics="all")))

    def _row(self, entry: ManifestEntry, vectors: Mapping[str, ManifestEntry]) -> Row:
        file = entry.data_file
        spec = self.table.metadata.spec_by_id[file.spec_id]
        row: Row = {
            **self._numbers(int(entry.status), entry.snapshot_id, entry.sequence_number),
            f"{self._tracking}.file_sequence_number": entry.file_sequence_number,
            f"{self._tracking}.first_row_id": file.first_row_id,
            "content_type": int(file.content),
            "location": self._stored(file.file_path),
            "file_format": file.file_format,
            "record_count": file.record_count,
            "file_size_in_bytes": file.file_size_in_bytes,
            "sort_order_id": file.sort_order_id,
            "key_metadata": file.key_metadata,
            "split_offsets": file.split_offsets,
            "equality_ids": file.equality_ids,
            "first_row_id": file.first_row_id,
            "partition_spec_id": file.spec_id,
            "spec_id": file.spec_id,
            "format_version": 4,
            "has_partition": bool(spec.fields),
            **{
                f"partition.{f.field_id}": value
                for f, value in zip(spec.fields, file.partition, strict=True)
            },
            **(self._stats_row(entry) if self.has_stats else {}),
        }
        if file.file_format == "puffin":
            row["referenced_file"] = self._stored(str(file.referenced_data_file))
            row["deletion_vector.offset"] = file.content_offset
            row["deletion_vector.size_in_bytes"] = file.content_size_in_bytes
        if (vector := vectors.get(file.file_path)) is not None:
            blob = vector.data_file
            row["deletion_vector.location"] = self._stored(blob.file_path)
            row["deletion_vector.offset"] = blob.content_offset
            row["deletion_vector.size_in_bytes"] = blob.content_size_in_bytes
            row["deletion_vector.cardinality"] = blob.record_count
        return row

    def _stats_row(self, entry: ManifestEntry) -> Row:
        file, row = entry.data_file, Row()
        for field_id, type_ in self._column_types().items():
            for name, bounds in (
                ("lower_bound", file.lower_bounds),
                ("upper_bound", file.upper_bounds),
            ):
                if bounds is not None and field_id in bounds:
                    row[f"stats.{field_id}.{name}"] = value_from_bytes(type_, bounds[field_id])
            for name, counts in (
                ("value_count", file.value_counts),
                ("null_value_count", file.null_value_counts),
                ("nan_value_count", file.nan_value_counts),
            ):
                row[f"stats.{field_id}.{name}"] = None if counts is None else counts.get(field_id)
        return row

    def _column_types(self) -> dict[int, PrimitiveType]:
        fields = self.table.schema.field_by_id.values()
        return {
            f.field_id: f.type
            for f in fields
            if isinstance(f.type, PrimitiveType) and not isinstance(f.type, UnknownType)
        }

    def _numbers(self, status: int, snapshot_id: int | None, sequence_number: int | None) -> Row:
        return {
            f"{self._tracking}.status": status,
            f"{self._tracking}.snapshot_id": snapshot_id,
            f"{self._tracking}.sequence_number": sequence_number,
            f"{self._tracking}.file_sequence_number": sequence_number,
        }

    def _counts(self, count: int, manifest: ManifestFile) -> Row:
        values = {
            "added_files_count": 0,
            "existing_files_count": count,
            "deleted_files_count": 0,
            "added_rows_count": 0,
            "existing_rows_count": 0,
            "deleted_rows_count": 0,
            "min_sequence_number": manifest.min_sequence_number,
        }
        return {f"{self._info}.{name}": value for name, value in values.items()}

    def _inherit_row_ids(self, manifest: ManifestFile, entries: list[Row]) -> None:
        """Leave out row ids that a reader can derive from the leaf's first row id."""
        row_id = manifest.first_row_id
        for row in entries:
            if row["first_row_id"] == row_id and row_id is not None:
                row["first_row_id"] = row[f"{self._tracking}.first_row_id"] = None
                row_id += row["record_count"]

    # --- files ---

    @property
    def _tracking(self) -> str:
        return "tracking" if self.profile == "tracked files" else "version_info"

    @property
    def _info(self) -> str:
        return "manifest_info" if self.profile == "tracked files" else "manifest_stats"

    def _file(self, rows: list[Row], content: str, name: str) -> str:
        metadata = self.table.metadata
        partition: dict[int, pa.DataType] = {}
        for spec in metadata.partition_specs:
            for f in partition_type(spec, metadata.schemas_newest_first).fields:
                if not isinstance(f.type, UnknownType):
                    partition.setdefault(f.field_id, physical_type(f.type))
        types = {i: physical_type(t) for i, t in self._column_types().items()}
        data = content_file(
            self.profile,
            rows,
            content=content,
            partition=list(partition.items()),
            stats=list(types.items()) if self.has_stats else (),
        )
        path = f"{self.table.location}/metadata/{self._name(name, 'parquet')}"
        self._write(path, data)
        return path

    def _name(self, name: str, extension: str) -> str:
        self.count += 1
        return f"9-{name}-{self.count}.{extension}"

    def _stored(self, path: str) -> str:
        """Return the path at random as relative to the table or as absolute with a scheme."""
        is_below = path.startswith(f"{self.table.location}/")
        if is_below and self.choose.random() < 0.5:
            return path.removeprefix(f"{self.table.location}/")
        return self._absolute(path)

    def _absolute(self, path: str) -> str:
        return path if ":" in path else f"file:{path}"

    def _placed(self, where: str) -> None:
        self.placed[where] = self.placed.get(where, 0) + 1

    def _write(self, location: str, data: bytes) -> None:
        with self.io.open_output(location) as stream:
            stream.write(data)
