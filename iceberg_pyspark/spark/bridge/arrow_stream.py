"""Tables as they go to the JVM: Arrow IPC streams, which Spark's own classes read there."""

from __future__ import annotations

import pyarrow as pa


def arrow_stream(table: pa.RecordBatch) -> bytes:
    """The table as a stream of one batch (`IcebergPyArrowTable` reads it)."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_batch(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written
