"""A child process that reads files and reports the outcome and the peak memory of each read.

    python -m tests.support.memory_reader kind=path ...

prints one JSON line per file: the kind, the error's class (null for none), the error's message, and
the peak resident memory of the process in bytes so far.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable, Mapping

from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_files.open_manifest import Decoder
from iceberg_pyspark.formats.manifest_lists import read_manifest_list
from iceberg_pyspark.formats.metadata_files import read_table_metadata
from iceberg_pyspark.formats.puffin.deletion_vectors import read_deletion_vector
from iceberg_pyspark.formats.puffin.puffin import read_puffin_blob, read_puffin_footer
from iceberg_pyspark.spec.manifests import ManifestContent, ManifestFile
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.local import LocalFileIO
from tests.support.peak_memory import peak_bytes

_IO = LocalFileIO()
_ADDRESS_SPACE = 5 << 30
"""The limit of address space, in bytes: a defect must end this process and not the machine."""


def _entries(path: str, decoder: Decoder) -> None:
    manifest = ManifestFile(
        manifest_path=path,
        manifest_length=_IO.size(path),
        partition_spec_id=0,
        content=ManifestContent.DATA,
        added_snapshot_id=1,
    )
    read_entries(_IO, manifest, StructType(()), metrics="all", decoder=decoder)


def _blobs(path: str) -> None:
    for blob in read_puffin_footer(_IO, path).blobs:
        read_puffin_blob(_IO, path, blob)


def _data(path: str, file_format: str) -> None:
    # Import pyarrow's readers only here, because other kinds do not need them.
    from iceberg_pyspark.arrow.formats.open_data_file import open_data_file  # noqa: PLC0415

    with open_data_file(_IO, path, file_format) as file:
        for _ in file.batches(range(len(file.schema))):
            pass


READERS: Mapping[str, Callable[[str], object]] = {
    "metadata": lambda path: read_table_metadata(_IO, path),
    "list": lambda path: read_manifest_list(_IO, path),
    "fastavro": lambda path: _entries(path, "fastavro"),
    "datafusion": lambda path: _entries(path, "datafusion"),
    "puffin": _blobs,
    "vector": lambda path: read_deletion_vector(_IO, path, 0, _IO.size(path), None, "table t"),
    "avro": lambda path: _data(path, "avro"),
}


def main(arguments: list[str]) -> None:
    """Read each file in turn and print its result."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    for argument in arguments:
        kind, _, path = argument.partition("=")
        error: BaseException | None = None
        try:
            READERS[kind](path)
        except BaseException as e:  # noqa: BLE001
            error = e
        print(  # noqa: T201
            json.dumps(
                {
                    "kind": kind,
                    "path": path,
                    "error": None if error is None else type(error).__name__,
                    "message": str(error)[:1000],
                    "peak": peak_bytes(),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
