"""The batches of streams in a table, exactly once, by the keys of Iceberg's Java connector.

Each batch is one snapshot, whose summary has the query's id and the number of the batch, its epoch.
A batch that Spark runs again is found among the ancestors of the branch's snapshot: a batch that a
rollback has removed is written again.

A function of `foreachBatch` may change a table several times in a batch; each change is a snapshot,
and has its number and its operation in the summary too.

When ancestors expire, the same commit notes in a property of the table which epochs they had, at
the snapshot where the history of those that stay breaks off. So no snapshot is kept for a query,
which may never run again, and a rollback finds what it found before.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from iceberg_pyspark.changes.changes import Changes, RemoveProperties, SetProperties
from iceberg_pyspark.errors import CommitConflictError, InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.spec.snapshots import Snapshot, SummaryText
from iceberg_pyspark.spec.table_metadata import TableMetadata, ancestors_of

QUERY_ID = "spark.sql.streaming.queryId"
EPOCH_ID = "spark.sql.streaming.epochId"

CHANGE = "iceberg-py.stream-change"
"""The entry of a summary: the number of the change in its batch, from 0, and its operation."""

EXPIRED_EPOCHS = "iceberg-py.expired-stream-epochs"
"""The property: for snapshots without their parents, the newest epoch of each query before them.

It is a number, or a list of the epoch and the number of its last change."""

_Place = tuple[int, float]
"""An epoch and a change of it; a whole batch is after all of its changes."""

_LAST = float("inf")

MAX_EXPIRED_EPOCHS = 100
"""The number of epochs in the property, the newest ones: each query that ends leaves one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEpoch:
    """A batch of a streaming query, or with a `change` one change of a table in it."""

    query_id: str
    epoch: int
    change: int | None = None
    operation: str = ""

    def summary(self) -> Mapping[str, str]:
        """Return the entries of the summary of the batch's snapshot."""
        change = {} if self.change is None else {CHANGE: f"{self.change} {self.operation}"}
        return {QUERY_ID: self.query_id, EPOCH_ID: str(self.epoch), **change}

    def is_in(self, metadata: TableMetadata, branch: str) -> bool:
        """Return whether the branch has the batch: the query's newest epoch in it is not older.

        A change is in it too if a later one of its batch is. Raises `InvalidRequestError` if the
        branch has another operation as this change.
        """
        ref = metadata.refs.get(branch)
        head = None if ref is None else metadata.snapshot_by_id.get(ref.snapshot_id)
        oldest: Snapshot | None = None
        is_found = False
        for snapshot in ancestors_of(metadata, head):
            oldest = snapshot
            if snapshot.has_value(QUERY_ID, self.query_id):
                place = _place_of(snapshot)
                if place is None or place[0] != self.epoch or place <= self._place:
                    self._check_operation(snapshot, place)
                    return is_found or (place is not None and place >= self._place)
                is_found = True
        if oldest is None or is_found:
            return is_found
        expired_epochs = _expired_epochs(metadata).get(str(oldest.snapshot_id), {})
        return expired_epochs.get(self.query_id, (-1, 0)) >= self._place

    @property
    def _place(self) -> _Place:
        return self.epoch, _LAST if self.change is None else self.change

    def _check_operation(self, snapshot: Snapshot, place: _Place | None) -> None:
        found = snapshot.summary.get(CHANGE, "").partition(" ")[2]
        if place == self._place and found != self.operation:
            raise InvalidRequestError(
                f"change {self.change} of batch {self.epoch} of streaming query {self.query_id} is "
                f"a {self.operation}, but was a {found} when the batch ran before; a function of "
                "foreachBatch must change a table in the same order when a batch runs again, or "
                "name each change by the argument transaction"
            )

    def check_absent(self, metadata: TableMetadata, branch: str) -> Changes:
        """Return no changes; raise `CommitConflictError` if the branch has the batch."""
        if self.is_in(metadata, branch):
            raise CommitConflictError(
                f"table {metadata.location}: another process has committed batch {self.epoch} of "
                f"streaming query {self.query_id} to branch {branch}; stop one of the two queries "
                "that use this checkpoint"
            )
        return Changes()


def expired_epochs_changes(metadata: TableMetadata, expired_ids: Collection[int]) -> Changes:
    """Return the change of the property that belongs into the commit in which snapshots expire."""
    noted_before = _expired_epochs(metadata)
    if not expired_ids:
        return Changes()
    noted: dict[str, dict[str, _Place]] = {}
    room = MAX_EXPIRED_EPOCHS
    for snapshot in sorted(metadata.snapshots, key=lambda s: s.timestamp_ms, reverse=True):
        parent_id = snapshot.parent_snapshot_id
        parent = None if parent_id is None else metadata.snapshot_by_id.get(parent_id)
        if (
            parent_id is None
            or snapshot.snapshot_id in expired_ids
            or (parent is not None and parent_id not in expired_ids)
        ):
            continue
        oldest = snapshot
        epochs: dict[str, _Place] = {}
        for ancestor in ancestors_of(metadata, parent):
            oldest = ancestor
            query_id = _query_of(ancestor)
            epoch = None if query_id is None else _place_of(ancestor)
            if query_id is not None and epoch is not None:
                epochs.setdefault(query_id, epoch)
        # in the order of age; of two epochs of a query the newer counts
        epochs = {**epochs, **noted_before.get(str(oldest.snapshot_id), {}), **epochs}
        newest = dict(list(epochs.items())[:room])
        if newest:
            noted[str(snapshot.snapshot_id)] = newest
            room -= len(newest)
    if noted == noted_before:
        return Changes()
    if not noted:
        return Changes(updates=(RemoveProperties((EXPIRED_EPOCHS,)),))
    texts = {
        snapshot_id: {q: e if change == _LAST else [e, change] for q, (e, change) in epochs.items()}
        for snapshot_id, epochs in noted.items()
    }
    return Changes(updates=(SetProperties({EXPIRED_EPOCHS: json.dumps(texts)}),))


def refuse_own_entries(names: Iterable[str]) -> None:
    """Raise `InvalidRequestError` if a user gives a summary's entry that the stream writes."""
    for name in names:
        if name in (QUERY_ID, EPOCH_ID, CHANGE):
            raise InvalidRequestError(
                f"snapshot-property.{name} is written by the stream itself; leave it out"
            )


def _query_of(snapshot: Snapshot) -> str | None:
    summary = snapshot.summary
    if isinstance(summary, SummaryText) and not summary.may_hold(QUERY_ID):
        return None
    return summary.get(QUERY_ID)


def _place_of(snapshot: Snapshot) -> _Place | None:
    """Return the place in its query of a snapshot that has one; None if its epoch is no number."""
    epoch, change = snapshot.number(EPOCH_ID), snapshot.summary.get(CHANGE)
    if epoch is None:
        return None
    number = "" if change is None else change.partition(" ")[0]
    return epoch, int(number) if number.isdecimal() else _LAST


def _noted_place(value: object) -> _Place:
    if isinstance(value, list):
        epoch, change = value
        return int(epoch), int(change)
    return int(value), _LAST  # type: ignore[call-overload]


def _expired_epochs(metadata: TableMetadata) -> dict[str, dict[str, _Place]]:
    text = metadata.properties.get(EXPIRED_EPOCHS)
    if text is None:
        return {}
    try:
        noted = json.loads(text)
        return {s: {q: _noted_place(e) for q, e in epochs.items()} for s, epochs in noted.items()}
    except (ValueError, TypeError, AttributeError) as e:
        raise InvalidMetadataError(
            f"table {metadata.location}: property {EXPIRED_EPOCHS} is damaged ({e}), so batches of "
            "streams may be in the table that cannot be found; unset the property if every "
            "streaming query into the table has ended its last batch"
        ) from e
