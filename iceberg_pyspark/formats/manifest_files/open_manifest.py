"""Opens a manifest file in either format: Avro, or Parquet since version 4.

Two decoders of Avro return the same table: fastavro for small manifests, DataFusion for large ones.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, Protocol

import pyarrow as pa

from iceberg_pyspark.formats.avro.avro import AvroFile, parse_avro
from iceberg_pyspark.formats.avro.renamed_schemas import damage_error
from iceberg_pyspark.formats.encoding.decoded_files import COLUMN_BYTES, memory_limit, too_large
from iceberg_pyspark.spec.avro_schemas import primitive_type
from iceberg_pyspark.spec.types import Type
from iceberg_pyspark.storage.files.file_io import FileIO

_PARQUET_MAGIC = b"PAR1"
LARGE_MANIFEST_ENTRIES = 200
"""The number of entries from which DataFusion is faster despite its fixed cost per file."""

_DATA_FILE = 2
Decoder = Literal["auto", "fastavro", "datafusion"]


class EncodedManifest(Protocol):
    """A manifest as it is stored; `null_field_ids` are the fields whose type has no values.

    `size` is the size of the file in bytes.
    """

    location: str
    size: int
    metadata: Mapping[str, str]
    record_count: int
    null_field_ids: frozenset[int]

    def damage_error(self, why: str) -> Exception:
        """Return the error for a manifest that breaks the rules of its format."""

    def written_types(self) -> dict[int, Type]:
        """Return the types of the fields in the file, by field id."""

    def raw_entries(
        self, decoder: Decoder = "auto", *, stats_of: Collection[int] | None = None
    ) -> pa.Table:
        """Return the entries as a table of columns named `_<field id>`, at all depths.

        Content statistics of columns that are not in `stats_of` may be left out; None requests all.
        """


def open_manifest(file_io: FileIO, location: str) -> EncodedManifest:
    """Read a manifest file; raise `InvalidMetadataError` for a damaged file."""
    return parse_manifest(file_io.read_bytes(location), location)


def parse_manifest(data: bytes, location: str) -> EncodedManifest:
    """Parse a manifest; its first bytes identify the format more reliably than its name."""
    if data[:4] == _PARQUET_MAGIC:
        # with pyarrow.parquet and its clients of all stores
        from iceberg_pyspark.formats.manifest_files.parquet_manifests import ParquetManifest  # noqa: PLC0415

        return ParquetManifest(data, location)
    return AvroManifest(parse_avro(data, location))


class AvroManifest:
    """A manifest file in Avro; raises `InvalidMetadataError` for a damaged file."""

    def __init__(self, avro: AvroFile) -> None:
        self.avro = avro
        self.location = avro.location
        self.size = avro.size
        self.metadata = avro.metadata
        self.record_count = avro.record_count
        self.null_field_ids = avro.renamed.null_field_ids

    @property
    def has_manifest_entries(self) -> bool:
        """Whether the records are manifest entries, and not content entries as of version 4."""
        return _DATA_FILE in self.avro.renamed.written_types

    def damage_error(self, why: str) -> Exception:
        """Return the error for a manifest that breaks the rules of its format."""
        return damage_error(self.location, why)

    def written_types(self) -> dict[int, Type]:
        """Return the types of the fields in the file, by field id."""
        return {i: primitive_type(type_) for i, type_ in self.avro.renamed.written_types.items()}

    def raw_entries(
        self, decoder: Decoder = "auto", *, stats_of: Collection[int] | None = None
    ) -> pa.Table:
        """Return the records as a table of columns named `_<field id>`, at all depths.

        `stats_of` is ignored: the records have no content statistics.
        """
        return _decode(self.avro, decoder)


def _decode(avro: AvroFile, decoder: Decoder) -> pa.Table:
    large = avro.record_count >= LARGE_MANIFEST_ENTRIES
    # the joined columns and the columns made from them take memory too
    most = memory_limit(avro.size) // 3
    if decoder == "datafusion" or (decoder == "auto" and large):
        # executors read no large manifests, so DataFusion need not be installed there
        from iceberg_pyspark.formats.avro.datafusion_avro import decode_records  # noqa: PLC0415

        return decode_records(avro, most)
    type_ = avro.renamed.arrow_type
    parts = []
    try:
        for batch in avro.batches():
            parts.append(pa.RecordBatch.from_struct_array(pa.array(batch, type_)))
            most -= parts[-1].nbytes + COLUMN_BYTES * avro.renamed.type_count
            if most < 0:
                raise too_large(avro.location, avro.size)
        return pa.Table.from_batches(parts, pa.schema(list(type_)))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as e:
        raise damage_error(avro.location, str(e)) from e
