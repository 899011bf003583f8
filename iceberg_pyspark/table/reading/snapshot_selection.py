"""Selects the snapshot that a read sees, and the schema to read it with.

Specification, "Point in Time Reads (Time Travel)" and "Snapshot References". As in Iceberg's own
readers, a branch is read with the table's schema; a tag, an id or a timestamp with the schema of
that snapshot. An incremental read sees the rows that snapshots of one lineage have appended, with
the table's schema; Iceberg's own readers count the same snapshots.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta, timezone
from itertools import takewhile
from typing import Annotated, TypeAlias

from iceberg_pyspark.errors import (
    InvalidRequestError,
    NoSuchSnapshotError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spec.argument_types import check_text, check_whole_number
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata, ancestors_of
from iceberg_pyspark.spec.values import with_six_digits

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_BOUNDS = ("start_snapshot_id", "start_timestamp_ms", "end_snapshot_id", "end_timestamp_ms")
# ASCII digits only, and no more than 64 bits need
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")


Moment: TypeAlias = Annotated[
    datetime | int | str,
    "a datetime, text such as '2026-01-31 12:00', or milliseconds since 1970",
]
Version: TypeAlias = Annotated[
    int | str | datetime, "the id of a snapshot, the name of a branch or tag, or a datetime"
]
Beginning: TypeAlias = Annotated[
    int | str,
    "'latest', 'current', 'earliest', the id of a snapshot, or the name of a branch or tag",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSelector:
    """The user's selection: at most one snapshot; without a selection, branch main.

    `version` is a snapshot id or the name of a branch or tag.

    A start makes the read incremental: it sees the rows that snapshots after the start have
    appended, up to and including the end, which by default is the newest snapshot of main or of
    `branch`. A start or end timestamp selects the newest snapshot of the lineage that is not later.
    An end without a start is only valid for changes, and then selects all known changes up to the
    end.
    """

    snapshot_id: int | None = None
    as_of_timestamp_ms: int | None = None
    branch: str | None = None
    tag: str | None = None
    version: str | None = None
    start_snapshot_id: int | None = None
    end_snapshot_id: int | None = None
    start_timestamp_ms: int | None = None
    end_timestamp_ms: int | None = None

    @property
    def is_incremental(self) -> bool:
        """Whether the read is of rows that were appended between snapshots."""
        return bool(self._bounds())

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if value is not None and f.name in ("branch", "tag", "version"):
                check_text(f.name, value)
            elif value is not None:
                check_whole_number(f.name, value)
        names = [
            name
            for name in ("snapshot_id", "as_of_timestamp_ms", "branch", "tag", "version")
            if getattr(self, name) is not None
        ]
        if len(names) > 1:
            raise InvalidRequestError(
                f"a read sees one snapshot, but {' and '.join(names)} are both given; keep one"
            )
        bounds = self._bounds()
        if not bounds:
            return
        if names not in ([], ["branch"]):
            raise InvalidRequestError(
                f"{_option_name(bounds[0])} asks for the appends between snapshots, and "
                f"{_option_name(names[0])} for one snapshot; keep one of them"
            )
        self._check_bounds(bounds)

    def _bounds(self) -> list[str]:
        return [name for name in _BOUNDS if getattr(self, name) is not None]

    def _check_bounds(self, option_names: Sequence[str]) -> None:
        for bound in ("start", "end"):
            both = [_option_name(name) for name in option_names if name.startswith(bound)]
            if len(both) > 1:
                raise InvalidRequestError(f"{both[0]} and {both[1]} are both given; keep one")
        start_ms, end_ms = self.start_timestamp_ms, self.end_timestamp_ms
        if start_ms is not None and end_ms is not None and start_ms > end_ms:
            raise InvalidRequestError(
                f"start-timestamp {start_ms} is after end-timestamp {end_ms}; swap them"
            )


def _option_name(name: str) -> str:
    """Return the option name for a field of a selector."""
    return name.removesuffix("_ms").replace("_", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedSnapshot:
    """The snapshot to read (None: the table is empty) and the schema to read it with.

    If `appends` is set, only the rows that these snapshots appended are read; the newest snapshot
    is first. None: all rows of `snapshot`.
    """

    snapshot: Snapshot | None
    schema: Schema
    appends: tuple[Snapshot, ...] | None = None


def selector_of(
    *,
    selector: SnapshotSelector | None,
    snapshot_id: int | None,
    branch: str | None,
    tag: str | None,
    as_of: Moment | None,
) -> SnapshotSelector:
    """Return the selector of the one argument that is given; refuse two by name.

    `as_of` is a datetime (UTC if it has no time zone), a text such as `2026-01-31 12:00`, or
    milliseconds since 1970.
    """
    arguments = {
        "selector": selector,
        "snapshot_id": snapshot_id,
        "branch": branch,
        "tag": tag,
        "as_of": as_of,
    }
    names = [name for name, value in arguments.items() if value is not None]
    if len(names) > 1:
        raise InvalidRequestError(
            f"a read sees one snapshot, but {' and '.join(names)} are both given; keep one"
        )
    if selector is not None:
        return selector
    return SnapshotSelector(
        snapshot_id=snapshot_id,
        branch=branch,
        tag=tag,
        as_of_timestamp_ms=None if as_of is None else _moment(as_of),
    )


def _moment(as_of: Moment) -> int:
    if isinstance(as_of, datetime):
        return milliseconds_of(as_of)
    if isinstance(as_of, int):
        return as_of
    if _WHOLE_NUMBER.fullmatch(as_of.strip()):
        raise InvalidRequestError(
            f"as_of: the text '{as_of}' may be seconds or milliseconds; give a datetime, a text "
            "such as '2026-01-31 12:00', or milliseconds as a number"
        )
    return timestamp_ms_of(as_of)


def branch_selector(metadata: TableMetadata, branch: str) -> SnapshotSelector:
    """Return the selector of the snapshot that a commit to the branch builds on.

    A branch that the commit will create starts from main.
    """
    reads_main = branch == MAIN or branch not in metadata.refs
    return SnapshotSelector() if reads_main else SnapshotSelector(branch=branch)


def select_snapshot(metadata: TableMetadata, selector: SnapshotSelector) -> SelectedSnapshot:
    """Resolve a selector; raise `NoSuchSnapshotError` if there is no such snapshot."""
    if selector.is_incremental:
        return _between(metadata, selector)
    if MAIN in (selector.branch, selector.version) and MAIN not in metadata.refs:
        # Every table has the branch main; before its first snapshot the metadata does not name it.
        selector = SnapshotSelector()
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


def _between(metadata: TableMetadata, selector: SnapshotSelector) -> SelectedSnapshot:
    """Return the appends after the start, up to the end; as in Java, a start is required."""
    if selector.start_snapshot_id is None and selector.start_timestamp_ms is None:
        bound = "end_timestamp" if selector.end_snapshot_id is None else "end_snapshot_id"
        raise InvalidRequestError(
            f"{_option_name(bound)} needs a start; give start-snapshot-id, whose own rows are not "
            "read, or start-timestamp"
        )
    end, after = _range(metadata, selector)
    return SelectedSnapshot(
        snapshot=end,
        schema=metadata.current_schema,
        appends=tuple(s for s in after if _appends(metadata, s)),
    )


def snapshots_between(metadata: TableMetadata, selector: SnapshotSelector) -> tuple[Snapshot, ...]:
    """Return the snapshots after a start up to and including an end, newest first.

    Without start and end, returns all snapshots of main or of the branch. Raises
    `InvalidRequestError` if one snapshot is selected, and the errors of `select_snapshot`.
    """
    if selector.is_incremental:
        return tuple(_range(metadata, selector)[1])
    if selector != SnapshotSelector(branch=selector.branch):
        raise InvalidRequestError(
            f"table {metadata.location}: changes are read between two snapshots, but one snapshot "
            "is selected; use start-snapshot-id and end-snapshot-id"
        )
    return tuple(ancestors_of(metadata, select_snapshot(metadata, selector).snapshot))


def _range(
    metadata: TableMetadata, selector: SnapshotSelector
) -> tuple[Snapshot | None, Sequence[Snapshot]]:
    """Return the end, and the snapshots from the end back to the start, without the start."""
    head = select_snapshot(metadata, SnapshotSelector(branch=selector.branch)).snapshot
    end = _end(metadata, selector, list(ancestors_of(metadata, head)))
    lineage = list(ancestors_of(metadata, end))
    if selector.start_snapshot_id is not None:
        after = _after(metadata, lineage, selector.start_snapshot_id)
    elif selector.start_timestamp_ms is None:
        after = lineage
    else:
        start_ms = selector.start_timestamp_ms
        after = list(takewhile(lambda s: s.timestamp_ms > start_ms, lineage))
        if len(after) == len(lineage):
            _check_complete(metadata, lineage, "start-timestamp", start_ms)
    return end, after


def _end(
    metadata: TableMetadata, selector: SnapshotSelector, lineage: Sequence[Snapshot]
) -> Snapshot | None:
    """Return the last snapshot to read; None if the lineage has none at that time."""
    if selector.end_snapshot_id is not None:
        end = metadata.snapshot(selector.end_snapshot_id)
        if selector.branch is not None and end.snapshot_id not in {s.snapshot_id for s in lineage}:
            raise NoSuchSnapshotError(
                f"table {metadata.location}: snapshot {end.snapshot_id}, the end of an incremental "
                f"read, is not in the history of branch '{selector.branch}'; leave out one of them"
            )
        return end
    end_ms = selector.end_timestamp_ms
    if end_ms is None:
        return next(iter(lineage), None)
    in_time = next((s for s in lineage if s.timestamp_ms <= end_ms), None)
    if in_time is None:
        _check_complete(metadata, lineage, "end-timestamp", end_ms)
    return in_time


def _after(
    metadata: TableMetadata, lineage: Sequence[Snapshot], start_id: int
) -> Sequence[Snapshot]:
    """Return the snapshots of a lineage after the start snapshot, which may have expired."""
    for n, snapshot in enumerate(lineage):
        if snapshot.snapshot_id == start_id:
            return lineage[:n]
        if snapshot.parent_snapshot_id == start_id:
            return lineage[: n + 1]
    end = f"snapshot {lineage[0].snapshot_id}" if lineage else "any snapshot"
    raise NoSuchSnapshotError(
        f"table {metadata.location}: snapshot {start_id}, the start of an incremental read, is not "
        f"an ancestor of {end}, the end, or has expired; the metadata table snapshots lists the "
        "snapshots and their parents"
    )


def _check_complete(
    metadata: TableMetadata, lineage: Sequence[Snapshot], name: str, timestamp_ms: int
) -> None:
    """Refuse a time before an incomplete history, since the appends at that time are unknown."""
    if lineage and lineage[-1].parent_snapshot_id is not None:
        oldest = lineage[-1]
        raise NoSuchSnapshotError(
            f"table {metadata.location}: {name} {_text(timestamp_ms)} is before the oldest "
            f"snapshot that has not expired, of {_text(oldest.timestamp_ms)}, so earlier appends "
            "are unknown; use that time or a later one, or start-snapshot-id "
            f"{oldest.parent_snapshot_id} for all known appends"
        )


def _appends(metadata: TableMetadata, snapshot: Snapshot) -> bool:
    if snapshot.operation is None:
        raise UnsupportedFeatureError(
            f"table {metadata.location}: snapshot {snapshot.snapshot_id} does not record its "
            "operation, so its appended rows are unknown; choose a later start"
        )
    return snapshot.operation == "append"


def snapshot_as_of(metadata: TableMetadata, timestamp_ms: int) -> Snapshot:
    """Return the snapshot that was current at a time, according to the snapshot log."""
    snapshot_id = snapshot_id_as_of(metadata, timestamp_ms)
    if snapshot_id is None:
        starts = min((e.timestamp_ms for e in metadata.snapshot_log), default=None)
        first = "it has no history" if starts is None else f"its history starts at {_text(starts)}"
        raise NoSuchSnapshotError(
            f"table {metadata.location} has no snapshot as of {_text(timestamp_ms)}: {first}"
        )
    return metadata.snapshot(snapshot_id)


def snapshot_id_as_of(metadata: TableMetadata, timestamp_ms: int) -> int | None:
    """Return the id of the snapshot that was current at a time, or None before the log begins.

    The last entry in log order at or before the time counts, even if the clocks of writers
    disagreed or entries have equal times; Java reads the log the same way.
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
    """Return a time as milliseconds since 1970.

    The text is an ISO date or timestamp (UTC unless it has an offset) or whole epoch seconds, like
    Spark's `timestampAsOf`.

    >>> timestamp_ms_of("1970-01-01 00:00:01.5"), timestamp_ms_of("10")
    (1500, 10000)
    """
    stripped_text = text.strip()
    if _WHOLE_NUMBER.fullmatch(stripped_text):
        return int(stripped_text) * 1000
    try:
        padded_text, _ = with_six_digits(stripped_text.replace("Z", "+00:00"))
        moment = datetime.fromisoformat(padded_text)
    except (ValueError, OverflowError) as e:
        raise InvalidRequestError(
            f"'{text[:200]}' is not a point in time; write 2026-01-31, 2026-01-31 12:00:00, "
            "2026-01-31T12:00:00+01:00 or epoch seconds"
        ) from e
    return milliseconds_of(moment)


def milliseconds_of(moment: datetime) -> int:
    """Return a time, which is UTC if it has no time zone, as milliseconds since 1970."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    return (aware - _EPOCH) // timedelta(milliseconds=1)
