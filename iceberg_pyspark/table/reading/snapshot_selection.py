"""Which snapshot a read sees, and with which schema.

Specification, "Point in Time Reads (Time Travel)" and "Snapshot References". A branch is read with
the table's schema; a tag, an id or a point in time with the schema of that snapshot, as Iceberg's
own readers do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from iceberg_pyspark.errors import InvalidRequestError, NoSuchSnapshotError
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# ASCII, and no more digits than 64 bits have
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSelector:
    """What the user asked for; at most one may be set, none means branch main.

    `version` is a snapshot id or the name of a branch or tag.
    """

    snapshot_id: int | None = None
    as_of_timestamp_ms: int | None = None
    branch: str | None = None
    tag: str | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        names = [
            name
            for name in ("snapshot_id", "as_of_timestamp_ms", "branch", "tag", "version")
            if getattr(self, name) is not None
        ]
        if len(names) > 1:
            raise InvalidRequestError(
                f"a read sees one snapshot, but {' and '.join(names)} are both given; keep one"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedSnapshot:
    """The snapshot to read (None: the table is empty) and the schema to read it with."""

    snapshot: Snapshot | None
    schema: Schema


def select_snapshot(metadata: TableMetadata, selector: SnapshotSelector) -> SelectedSnapshot:
    """Resolve a selector; raises `NoSuchSnapshotError` saying what there is."""
    if selector.branch is not None:
        snapshot = metadata.ref_snapshot(selector.branch)
        if metadata.refs[selector.branch].type != "branch":
            raise InvalidRequestError(
                f"'{selector.branch}' of table {metadata.location} is a tag; use the option tag"
            )
        return SelectedSnapshot(snapshot=snapshot, schema=metadata.current_schema)
    if selector.tag is not None:
        snapshot = metadata.ref_snapshot(selector.tag)
        if metadata.refs[selector.tag].type != "tag":
            raise InvalidRequestError(
                f"'{selector.tag}' of table {metadata.location} is a branch; use the option branch"
            )
        return _with_own_schema(metadata, snapshot)
    if selector.snapshot_id is not None:
        return _with_own_schema(metadata, metadata.snapshot(selector.snapshot_id))
    if selector.as_of_timestamp_ms is not None:
        return _with_own_schema(metadata, snapshot_as_of(metadata, selector.as_of_timestamp_ms))
    if selector.version is not None:
        return _of_version(metadata, selector.version)
    return SelectedSnapshot(snapshot=metadata.current_snapshot, schema=metadata.current_schema)


def _of_version(metadata: TableMetadata, version: str) -> SelectedSnapshot:
    ref = metadata.refs.get(version)
    if ref is None and _WHOLE_NUMBER.fullmatch(version):
        return _with_own_schema(metadata, metadata.snapshot(int(version)))
    snapshot = metadata.ref_snapshot(version)
    if ref is not None and ref.type == "branch":
        return SelectedSnapshot(snapshot=snapshot, schema=metadata.current_schema)
    return _with_own_schema(metadata, snapshot)


def _with_own_schema(metadata: TableMetadata, snapshot: Snapshot) -> SelectedSnapshot:
    schema = metadata.current_schema
    if snapshot.schema_id is not None:
        schema = metadata.schema_by_id.get(snapshot.schema_id, schema)
    return SelectedSnapshot(snapshot=snapshot, schema=schema)


def snapshot_as_of(metadata: TableMetadata, timestamp_ms: int) -> Snapshot:
    """The snapshot that was current at a time, by the snapshot log."""
    snapshot_id = snapshot_id_as_of(metadata, timestamp_ms)
    if snapshot_id is None:
        starts = min((e.timestamp_ms for e in metadata.snapshot_log), default=None)
        first = "it has no history" if starts is None else f"its history starts at {_text(starts)}"
        raise NoSuchSnapshotError(
            f"table {metadata.location} has no snapshot as of {_text(timestamp_ms)}: {first}"
        )
    return metadata.snapshot(snapshot_id)


def snapshot_id_as_of(metadata: TableMetadata, timestamp_ms: int) -> int | None:
    """The id of the snapshot that was current at a time; None before the log begins.

    The last entry of that time or before counts, in the order of the log and whatever the clocks
    of its writers said: entries of one time are no tie, and Java reads the log so too.
    """
    snapshot_id = None
    for entry in metadata.snapshot_log:
        if entry.timestamp_ms <= timestamp_ms:
            snapshot_id = entry.snapshot_id
    return snapshot_id


def _text(timestamp_ms: int) -> str:
    try:
        return (_EPOCH + timedelta(milliseconds=timestamp_ms)).isoformat()
    except OverflowError:
        return f"{timestamp_ms} ms from 1970"


def timestamp_ms_of(text: str) -> int:
    """Milliseconds of a point in time: an ISO date or timestamp (UTC unless it has an offset) or
    whole epoch seconds, as Spark's `timestampAsOf` takes them.

    >>> timestamp_ms_of("1970-01-01 00:00:01.5"), timestamp_ms_of("10")
    (1500, 10000)
    """
    stripped = text.strip()
    if _WHOLE_NUMBER.fullmatch(stripped):
        return int(stripped) * 1000
    try:
        moment = datetime.fromisoformat(_six_digits(stripped.replace("Z", "+00:00")))
    except (ValueError, OverflowError) as e:
        raise InvalidRequestError(
            f"'{text[:200]}' is not a point in time; write 2026-01-31, 2026-01-31 12:00:00, "
            "2026-01-31T12:00:00+01:00 or epoch seconds"
        ) from e
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _six_digits(text: str) -> str:
    """Python 3.10 reads fractions of exactly three or six digits."""
    head, dot, tail = text.partition(".")
    if not dot:
        return text
    digits = len(tail) - len(tail.lstrip("0123456789"))
    return f"{head}.{tail[:digits][:6].ljust(6, '0')}{tail[digits:]}"
