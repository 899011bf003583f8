"""Opens a manifest file in either format: Avro, or Parquet since version 4."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import pyarrow as pa

from iceberg_pyspark.formats.avro.avro import parse_avro
from iceberg_pyspark.formats.manifest_files.avro_manifests import AvroManifest, Decoder
from iceberg_pyspark.spec.types import Type
from iceberg_pyspark.storage.files.file_io import FileIO

_PARQUET_MAGIC = b"PAR1"


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
