"""Decodes Avro records with DataFusion, about twenty times as fast as record by record in Python.

The module is imported only when it is needed, because executors have no DataFusion. DataFusion
reads only local files, and a checked and renamed file (`formats/avro/avro.py`) is in memory, so the
records go through a temporary file.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from iceberg_pyspark.formats.avro.avro import AvroFile, AvroPart
from iceberg_pyspark.formats.avro.avro_blocks import arrow_cost
from iceberg_pyspark.formats.avro.renamed_schemas import damage_error
from iceberg_pyspark.formats.encoding.decoded_files import COLUMN_BYTES, memory_limit, too_large

_BUILDING = 4
"""The memory that DataFusion uses while it builds a batch, as a multiple of the batch's size."""
_PLANNING_BYTES = 10 << 10
"""The additional memory that DataFusion uses for each column."""


def decode_records(avro: AvroFile, most: int) -> pa.Table:
    """Return the records as a table of columns named `_<field id>`, in the file's order.

    Records are decoded in parts: one batch of all records takes several times its size, and a
    failed allocation in DataFusion would end the process. Raises `InvalidMetadataError` if the
    table takes more than `most` bytes.
    """
    tables = []
    room = most - _PLANNING_BYTES * avro.renamed.type_count
    if room < 0:
        raise too_large(avro.location, avro.size)
    with tempfile.TemporaryDirectory(prefix="iceberg-manifest-") as folder:
        for part in avro.parts(
            arrow_cost(avro.renamed.record), memory_limit(avro.size) / 2 / _BUILDING
        ):
            table = _decode(part, Path(folder) / "manifest.avro", avro.location)
            room -= int(table.nbytes) + COLUMN_BYTES * avro.renamed.type_count
            if room < 0:
                raise too_large(avro.location, avro.size)
            tables.append(table)
    return pa.concat_tables(tables)


def _decode(part: AvroPart, path: Path, location: str) -> pa.Table:
    path.write_bytes(part.data)
    context = SessionContext(
        SessionConfig(
            {
                # one partition keeps the file's order, which determines row ids
                "datafusion.execution.target_partitions": "1",
                "datafusion.execution.batch_size": str(max(1, part.record_count)),
            }
        )
    )
    try:
        context.register_avro("manifest", str(path))
        # All records are one batch, and the limit stops after it: if a damaged block has bytes
        # after its last record, DataFusion would search for their end in an endless loop.
        table = context.table("manifest").limit(part.record_count).to_arrow_table()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as e:  # a panic in Rust is a BaseException, and damaged bytes cause them
        raise damage_error(location, f"{type(e).__name__}: {e}") from e
    if table.num_rows != part.record_count:
        raise damage_error(
            location, f"{table.num_rows} records where {part.record_count} are declared"
        )
    return table
