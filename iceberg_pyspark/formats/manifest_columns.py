"""Reads manifests as columns: one Arrow table per manifest, with inherited values filled in.

The columns are defined in `spec/entry_columns.py`. `formats/manifest_reader.py` reads manifests as
objects.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.formats.avro.avro import AvroFile, joined
from iceberg_pyspark.formats.entry_reader import EntryReader, Metrics
from iceberg_pyspark.formats.known_manifests import (
    EntriesKey,
    KnownEntries,
    find_known,
    get_or_decode,
    keep,
)
from iceberg_pyspark.formats.manifest_files.open_manifest import (
    LARGE_MANIFEST_ENTRIES,
    AvroManifest,
    Decoder,
    EncodedManifest,
    parse_manifest,
)
from iceberg_pyspark.formats.roots.content_entry_reader import ContentEntries, profile_of
from iceberg_pyspark.spec.entry_columns import (
    ENTRY_COLUMNS,
    FILTER_METRICS,
    METRIC_MAPS,
    metric_column,
)
from iceberg_pyspark.spec.manifests import ManifestFile
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.encryption.encrypted_io import decrypted
from iceberg_pyspark.storage.files.file_io import FileIO

_PATHS = ["file_path", "referenced_data_file"]


def read_entries(
    file_io: FileIO,
    manifest: ManifestFile,
    partition_type: StructType,
    *,
    drop_deleted: bool = True,
    metrics: Metrics = (),
    decoder: Decoder = "auto",
) -> pa.Table:
    """Return the entries of a manifest in order, as columns, with all inherited values filled in.

    `partition_type` belongs to the manifest's own spec. `metrics` selects metrics: a collection of
    field ids gives columns named by `metric_column`, "all" gives the complete maps. Deleted entries
    are dropped unless `drop_deleted` is False.
    """
    entries = known_entries(
        file_io,
        manifest,
        partition_type,
        drop_deleted=drop_deleted,
        metrics=metrics,
        decoder=decoder,
    )
    ids = (
        METRIC_MAPS
        if metrics == "all"
        else (metric_column(metric, i) for metric in FILTER_METRICS for i in metrics)
    )
    names = {*ENTRY_COLUMNS, *ids}
    table = entries.table(names)
    return table.select([name for name in table.column_names if name in names])


def known_entries(
    file_io: FileIO,
    manifest: ManifestFile,
    partition_type: StructType | None,
    *,
    drop_deleted: bool = True,
    metrics: Metrics = (),
    decoder: Decoder = "auto",
) -> KnownEntries:
    """Return the entries of `read_entries`, maybe with more metrics, without unpacking them.

    Without a partition type, the partitions must not be looked at.
    """
    encoded = _Encoded.read(file_io, manifest, partition_type, drop_deleted, metrics, decoder)
    return encoded.entries()


TypedManifest: TypeAlias = tuple[ManifestFile, StructType]
"""A manifest and the partition type of its own spec."""


def entries_of_manifests(
    file_io: FileIO, manifests: Sequence[TypedManifest], *, metrics: Collection[int] = ()
) -> Iterator[KnownEntries]:
    """Yield the live entries of each manifest, as `known_entries`; manifests are read all at once.

    Small manifests are decoded together: the columns of one take longer than its entries.
    """
    encoded = [_Encoded.read(file_io, m, type_, True, metrics, "auto") for m, type_ in manifests]
    _decode_together([e for e in encoded if find_known(file_io, e.key) is None])
    for one in encoded:
        yield one.entries()


@dataclass(frozen=True, kw_only=True, eq=False)
class _Encoded:
    """A manifest that was read and may have to be decoded."""

    io: FileIO
    key: EntriesKey
    data: bytes

    @staticmethod
    def read(
        io: FileIO,
        manifest: ManifestFile,
        partition_type: StructType | None,
        drop_deleted: bool,
        metrics: Metrics,
        decoder: Decoder,
    ) -> _Encoded:
        if manifest.key_metadata is not None and decoder == "auto":
            # the other decoder needs a file of the plaintext
            decoder = "fastavro"
        data = decrypted(io, manifest.key_metadata).read_bytes(manifest.manifest_path)
        key = EntriesKey(
            checksum=zlib.crc32(data),
            manifest=manifest,
            drop_deleted=drop_deleted,
            decoder=decoder,
            partition_type=partition_type,
            metrics="all" if metrics == "all" else frozenset(metrics),
        )
        return _Encoded(io=io, key=key, data=data)

    @cached_property
    def manifest_file(self) -> EncodedManifest:
        manifest = self.key.manifest
        manifest_file = parse_manifest(self.data, manifest.manifest_path)
        _check_complete(manifest_file, manifest)
        return manifest_file

    @property
    def small_avro(self) -> AvroFile | None:
        """The file, if its entries can be decoded together with others."""
        manifest = self.key.manifest
        if manifest.is_root or manifest.dead_positions is not None or manifest.key_metadata:
            return None
        file = self.manifest_file
        is_small = file.record_count < LARGE_MANIFEST_ENTRIES
        if not isinstance(file, AvroManifest) or not is_small or not file.has_manifest_entries:
            return None
        return file.avro

    def entries(self) -> KnownEntries:
        """Return the entries, which are decoded unless they are known."""

        def decode() -> KnownEntries:
            key = self.key
            raw = _raw_entries(self.manifest_file, key.manifest, key.decoder, key.metrics)
            (entries,) = _decode([self], self.manifest_file, raw, [raw.num_rows])
            return entries

        return get_or_decode(self.io, self.key, decode)


def _decode(
    encoded: Sequence[_Encoded], manifest_file: EncodedManifest, raw: pa.Table, counts: list[int]
) -> list[KnownEntries]:
    """Return the entries of manifests, of each as many records as `counts` says."""
    key = encoded[0].key
    reader = EntryReader(manifest_file, [e.key.manifest for e in encoded], counts, raw)
    return reader.entries(key.partition_type or StructType(()), key.drop_deleted, key.metrics)


def _decode_together(encoded: Sequence[_Encoded]) -> None:
    """Decode those small manifests that can be decoded together, and keep their entries.

    Manifests with an error are left out: the read of each reports it.
    """
    groups: dict[Hashable, list[tuple[_Encoded, AvroFile]]] = defaultdict(list)
    for one in encoded if len(encoded) > 1 else ():
        with suppress(IcebergError):
            if (avro := one.small_avro) is not None:
                m = one.key.manifest
                of_file = (avro.renamed, avro.codec, avro.metadata.get("format-version"))
                of_manifest = (m.partition_spec_id, m.content, m.table_location)
                groups[one.key.partition_type, of_file, of_manifest].append((one, avro))
    for group in groups.values():
        if len(group) < 2:
            continue
        members, files = zip(*group, strict=True)
        whole = AvroManifest(joined(files))
        with suppress(IcebergError):
            raw = whole.raw_entries("fastavro")
            parts = _decode(members, whole, raw, [file.record_count for file in files])
            for one, entries in zip(members, parts, strict=True):
                keep(one.io, one.key, entries)


def read_live_paths(file_io: FileIO, manifest: ManifestFile) -> pa.Table:
    """Return the paths of a manifest's live entries, and of data files that they refer to."""
    return known_entries(file_io, manifest, None).table(_PATHS)


def entries_with(entries: pa.Table, paths: Set[str]) -> pa.Array:
    """Return which entries are of one of the paths, or refer to a data file that is one.

    If the paths are few, no object is made for each entry: this takes milliseconds for a manifest
    of most tables.
    """
    columns = (entries["file_path"], entries["referenced_data_file"])
    if len(paths) > entries.num_rows:
        return pc.or_(*(pa.array([p in paths for p in c.to_pylist()], pa.bool_()) for c in columns))
    sought = pa.array(list(paths), pa.string())
    return pc.or_(*(pc.is_in(c, value_set=sought).combine_chunks() for c in columns))


def _raw_entries(
    manifest_file: EncodedManifest, manifest: ManifestFile, decoder: Decoder, metrics: Metrics
) -> pa.Table:
    """Return the entries in the form of versions 1 to 3, whatever the profile of the file."""
    raw = manifest_file.raw_entries(
        decoder, stats_of=None if metrics == "all" else frozenset(metrics)
    )
    profile = profile_of(raw)
    if profile is None:
        if manifest.is_root:
            raise manifest_file.damage_error(
                "it is referenced as a root manifest, but has other columns"
            )
        return raw
    entries = ContentEntries(raw, profile, manifest_file.location, manifest_file.damage_error)
    return entries.entries_of(
        manifest.content, manifest.partition_spec_id if manifest.is_root else None
    )


def _check_complete(manifest_file: EncodedManifest, manifest: ManifestFile) -> None:
    """Raise an error if the manifest has fewer entries than its manifest list says.

    Avro cannot detect that whole blocks are missing at the end; the manifest list can.
    """
    counts = (
        manifest.added_files_count,
        manifest.existing_files_count,
        manifest.deleted_files_count,
    )
    entry_count = sum(count or 0 for count in counts)
    if manifest_file.record_count < entry_count:
        raise manifest_file.damage_error(
            f"{manifest_file.record_count} entries where its manifest list says {entry_count}"
        )
