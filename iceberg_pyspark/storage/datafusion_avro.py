"""Avro records decoded by DataFusion: some twenty times as fast as record by record in Python.

It stands alone to be imported on first need: executors have no DataFusion. That reads local files
only, and a checked and renamed file (`storage/avro.py`) is in memory, so it goes through a
temporary one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from iceberg_pyspark.storage.avro import AvroFile, damaged


def decode_records(avro: AvroFile) -> pa.Table:
    """The records as a table of columns named `_<field id>`, in the file's order."""
    with tempfile.TemporaryDirectory(prefix="iceberg-manifest-") as folder:
        path = Path(folder) / "manifest.avro"
        path.write_bytes(avro.data)
        context = SessionContext(
            SessionConfig(
                {
                    # one partition keeps the file's order, which row ids are counted in
                    "datafusion.execution.target_partitions": "1",
                    "datafusion.execution.batch_size": str(max(1, avro.record_count)),
                }
            )
        )
        try:
            context.register_avro("manifest", str(path))
            # All records are one batch, and the limit stops after it: where a damaged block has
            # bytes behind its last record, DataFusion would look for their end for ever.
            table = context.table("manifest").limit(avro.record_count).to_arrow_table()
        except (KeyboardInterrupt, SystemExit):
            raise
        except (
            BaseException
        ) as e:  # a panic in Rust is a BaseException, and damaged bytes cause them
            raise damaged(avro.location, f"{type(e).__name__}: {e}") from e
    if table.num_rows != avro.record_count:
        raise damaged(
            avro.location, f"{table.num_rows} records where {avro.record_count} are declared"
        )
    return table
