"""Writes a manifest again without some files, and copies the blocks of entries that stay.

Specification, "Manifest Entry Fields". A rewritten manifest has the files of another, EXISTING with
the values that they inherited, and the removed files, DELETED. Entries that are written like this
already stay as they are: once a manifest was rewritten, the next time costs one block of some
entries. Other entries get new numbers in their bytes, and no object is made of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Set
from itertools import cycle, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.formats.avro.avro import AVRO_CODECS, parse_avro, with_changes
from iceberg_pyspark.formats.known_manifests import KnownEntries
from iceberg_pyspark.formats.manifest_columns import known_entries
from iceberg_pyspark.spec.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    EntryStatus,
    ManifestContent,
    ManifestFile,
    summarise_partitions,
    with_counts,
)
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.encryption.encrypted_io import decrypted, stored_file
from iceberg_pyspark.storage.files.file_io import FileIO

_SEQUENCE_NUMBERS = (3, 4)
_FIRST_ROW_ID = 142
_INHERITED = ["snapshot_id", "sequence_number", "file_sequence_number", "first_row_id"]
_COLUMNS = (*_INHERITED, "status", "file_path", "content_offset", "record_count", "partition")


def rewrite_manifest(
    file_io: FileIO,
    location: str,
    old: ManifestFile,
    removed: Set[tuple[str, int | None]],
    *,
    partition_type: StructType,
    format_version: int,
    snapshot_id: int,
    codec: str,
    known: dict[str, KnownEntries],
) -> ManifestFile | None:
    """Write the live entries of a manifest; `removed` are paths and content offsets of files.

    Returns None, and writes nothing, if the manifest is of another version or codec. If all other
    entries stay as they are, `known` gets the entries of the new manifest by location.
    """
    if not 2 <= format_version <= 3:
        return None
    data = decrypted(file_io, old.key_metadata).read_bytes(old.manifest_path)
    avro = parse_avro(data, old.manifest_path)
    has_row_ids = format_version >= 3 and old.content is ManifestContent.DATA
    needed = {*_SEQUENCE_NUMBERS, *([_FIRST_ROW_ID] if has_row_ids else [])}
    if (
        avro.metadata.get("format-version") != str(format_version)
        or avro.codec != AVRO_CODECS.get(codec.lower())
        or not needed <= avro.renamed.written_types.keys()
        or avro.renamed.null_field_ids
    ):
        return None
    old_entries = known_entries(file_io, old, partition_type)
    entries = old_entries.table(_COLUMNS)
    goes = _is_removed(entries, removed)
    stays = ~goes
    is_same = stays & _is_written(entries, old)
    is_live = np.ones(avro.record_count, np.bool_)
    is_live[old_entries.dropped] = False
    is_same_record = is_live.copy()
    is_same_record[is_live] = is_same
    row_of_record = np.cumsum(is_live) - 1
    changed = np.flatnonzero(~is_same)
    numbers_of_changed = entries.select(_INHERITED).take(pa.array(changed)).to_pylist()
    numbers_by_row = dict(zip(changed.tolist(), numbers_of_changed, strict=True))

    def change(number: int) -> Mapping[str, int | None] | None:
        if not is_live[number]:
            return None
        row = int(row_of_record[number])
        numbers = numbers_by_row[row]
        return {
            "_0": int(EntryStatus.DELETED if goes[row] else EntryStatus.EXISTING),
            "_1": snapshot_id if goes[row] else numbers["snapshot_id"],
            "_3": numbers["sequence_number"],
            "_4": numbers["file_sequence_number"],
            **({f"_{_FIRST_ROW_ID}": numbers["first_row_id"]} if has_row_ids else {}),
        }

    names = [f"_{i}" for i in (0, 1, *needed)]
    new = with_changes(avro, is_same_record.tolist(), names, change)
    with file_io.open_output(location) as stream:
        stream.write(new)
    if is_same[stays].all() and not (has_row_ids and entries["first_row_id"].null_count):
        known[location] = old_entries.without(goes, zlib.crc32(new))
    length, key_metadata = stored_file(stream, len(new))
    rows = _numpy(entries["record_count"])
    least = pc.min(entries["sequence_number"].filter(pa.array(stays))).as_py()
    manifest = ManifestFile(
        manifest_path=location,
        manifest_length=length,
        key_metadata=key_metadata,
        partition_spec_id=old.partition_spec_id,
        content=old.content,
        sequence_number=UNASSIGNED_SEQUENCE_NUMBER,
        min_sequence_number=UNASSIGNED_SEQUENCE_NUMBER if least is None else least,
        added_snapshot_id=snapshot_id,
        partitions=summarise_partitions(
            partition_type, _partitions_with_all_values(entries["partition"])
        ),
    )
    masks = {EntryStatus.ADDED: stays & False, EntryStatus.EXISTING: stays}
    masks[EntryStatus.DELETED] = goes
    return with_counts(
        manifest,
        {s: int(mask.sum()) for s, mask in masks.items()},
        {s: int(rows[mask].sum()) for s, mask in masks.items()},
    )


def _partitions_with_all_values(partition: pa.ChunkedArray) -> Iterable[tuple[Any, ...]]:
    """Return tuples with all values of each field; a million partitions have few different ones."""
    parts = [
        # 0.0 and -0.0 are equal, but different partition values
        (part if pa.types.is_floating(part.type) else pc.unique(part)).to_pylist()
        for part in partition.flatten()
    ]
    most = max(map(len, parts), default=0)
    return zip(*(islice(cycle(part), most) for part in parts), strict=True)


def _is_removed(entries: pa.Table, removed: Set[tuple[str, int | None]]) -> Any:
    paths = pa.array({path for path, _ in removed}, pa.string())
    mask = _numpy(pc.is_in(entries["file_path"], value_set=paths)).copy()
    for row in np.flatnonzero(mask):
        path, offset = (entries[name][int(row)].as_py() for name in ("file_path", "content_offset"))
        mask[row] = (path, offset) in removed
    return mask


def _is_written(entries: pa.Table, old: ManifestFile) -> Any:
    """Return which entries are EXISTING and surely inherit nothing.

    An inherited snapshot id is the manifest's own, and inherited row ids begin with the manifest's.
    """
    written = _numpy(entries["status"]) == EntryStatus.EXISTING
    ids = entries["snapshot_id"]
    if old.sequence_number == 0 or old.added_snapshot_id is None:
        return written & False
    written &= _numpy(pc.fill_null(pc.not_equal(ids, old.added_snapshot_id), False))
    if old.content is ManifestContent.DATA and old.first_row_id is not None:
        written &= _numpy(pc.fill_null(pc.less(entries["first_row_id"], old.first_row_id), False))
    return written


def _numpy(column: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, np.dtype[Any]]:
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return np.asarray(values.to_numpy(zero_copy_only=False))
