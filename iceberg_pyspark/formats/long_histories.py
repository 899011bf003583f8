"""Parses table metadata with a long history by msgspec, which executors may lack.

Thousands of snapshots take tens of megabytes, nearly all of it summaries that are never accessed.
This module uses msgspec to read the snapshots and the snapshot log, and keeps each summary as JSON
text (`spec/snapshots.py`, `SummaryText`). A file with anything unusual, valid or not, is left to
`spec/table_metadata.py`, which keeps unknown keys and reports errors.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Raw

from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.formats.encoding.decoded_files import MEMORY_FLOOR, json_memory
from iceberg_pyspark.spec.json_fields import MAX_INT32, MAX_INT64, MAX_TIME_MS, parse_json
from iceberg_pyspark.spec.snapshots import Snapshot, SnapshotLogEntry, SummaryText, with_text
from iceberg_pyspark.spec.table_metadata import (
    ReadHistory,
    TableMetadata,
    metadata_from_json,
)

_Int64: TypeAlias = Annotated[int, Meta(ge=-MAX_INT64 - 1, le=MAX_INT64)]
_Int32: TypeAlias = Annotated[int, Meta(ge=-MAX_INT32 - 1, le=MAX_INT32)]
_Count: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_INT64)]
_TimeMs: TypeAlias = Annotated[int, Meta(ge=-MAX_TIME_MS, le=MAX_TIME_MS)]


class _Snapshot(msgspec.Struct, rename="kebab", forbid_unknown_fields=True, gc=False):
    snapshot_id: _Int64
    timestamp_ms: _TimeMs
    manifest_list: str
    summary: Raw
    parent_snapshot_id: _Int64 | None = None
    sequence_number: _Count | None = None
    schema_id: _Int32 | None = None
    first_row_id: _Count | None = None
    added_rows: _Count | None = None
    key_id: str | None = None


class _LogEntry(msgspec.Struct, rename="kebab", forbid_unknown_fields=True, gc=False):
    snapshot_id: _Int64
    timestamp_ms: _TimeMs


_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_SNAPSHOTS = msgspec.json.Decoder(list[Raw])
_SNAPSHOT = msgspec.json.Decoder(_Snapshot)
_SNAPSHOT_LOG = msgspec.json.Decoder(list[_LogEntry])
_SUMMARY = msgspec.json.Decoder(dict[str, str])


def metadata_with_long_history(data: bytes, location: str) -> TableMetadata | None:
    """Parse an uncompressed metadata file; None means that `metadata_from_bytes` must do so."""
    try:
        with _COLLECTOR.pause():
            return _parse(data, location)
    except (KeyError, RecursionError, UnicodeError, msgspec.MsgspecError, IcebergError):
        return None


def _parse(data: bytes, location: str) -> TableMetadata | None:
    fields = _FIELDS.decode(data)
    snapshots = _SNAPSHOTS.decode(fields.pop("snapshots"))
    log = _SNAPSHOT_LOG.decode(fields.pop("snapshot-log"))
    texts = {key: bytes(raw) for key, raw in fields.items()}
    if json_memory(b"".join(texts.values())) > MEMORY_FLOOR:
        return None
    content = {key: parse_json(text, key) for key, text in texts.items()}
    return metadata_from_json(
        content, _history(content, snapshots, log), metadata_location=location
    )


class _Collector:
    """Python's cyclic garbage collector, which several threads can pause together.

    Thousands of new objects without cycles make the collector scan all objects of the process
    several times, which takes a third of the load time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pauses = 0
        self._resumes = False

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Disable garbage collection until the last thread leaves the block."""
        with self._lock:
            if self._pauses == 0:
                self._resumes = gc.isenabled()
                gc.disable()
            self._pauses += 1
        try:
            yield
        finally:
            with self._lock:
                self._pauses -= 1
                if self._pauses == 0 and self._resumes:
                    gc.enable()


_COLLECTOR = _Collector()


def _history(content: dict[str, Any], snapshots: list[Raw], log: list[_LogEntry]) -> ReadHistory:
    version = content.get("format-version")
    has_lineage = isinstance(version, int) and version >= 3
    return ReadHistory(
        tuple(_parse_snapshot(bytes(s), has_lineage) for s in snapshots),
        tuple(
            SnapshotLogEntry(snapshot_id=e.snapshot_id, timestamp_ms=e.timestamp_ms) for e in log
        ),
    )


def _parse_snapshot(text: bytes, has_lineage: bool) -> Snapshot:
    """Return a snapshot, which is written again as it was read if nothing in it is left out."""
    s = _SNAPSHOT.decode(text)
    _SUMMARY.decode(s.summary)
    snapshot = Snapshot(
        snapshot_id=s.snapshot_id,
        parent_snapshot_id=s.parent_snapshot_id,
        sequence_number=s.sequence_number or 0,
        timestamp_ms=s.timestamp_ms,
        manifest_list=s.manifest_list,
        summary=SummaryText(s.summary),
        schema_id=s.schema_id,
        first_row_id=s.first_row_id if has_lineage else None,
        added_rows=s.added_rows if has_lineage else None,
        key_id=s.key_id,
    )
    is_written_so = (
        (has_lineage or (s.first_row_id is None and s.added_rows is None))
        and s.sequence_number != 0
        and b"null" not in text
    )
    return with_text(snapshot, text) if is_written_so else snapshot
