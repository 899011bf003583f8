"""The batches of streams in a table, exactly once, by the keys of Iceberg's Java connector.

Each batch is one snapshot, whose summary has the query's id and the number of the batch, its epoch.
A batch that Spark runs again is found among the ancestors of the branch's snapshot: a batch that a
rollback has removed is written again.

When ancestors expire, the same commit notes in a property of the table which epochs they had, at
the snapshot where the history of those that stay breaks off. So no snapshot is kept for a query,
which may never run again, and a rollback finds what it found before.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from iceberg_pyspark.changes.changes import Changes, RemoveProperties, SetProperties
from iceberg_pyspark.changes.ref_changes import ancestors_of
from iceberg_pyspark.errors import CommitConflictError, InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.spec.snapshots import Snapshot, SummaryText
from iceberg_pyspark.spec.table_metadata import TableMetadata

QUERY_ID = "spark.sql.streaming.queryId"
EPOCH_ID = "spark.sql.streaming.epochId"

EXPIRED_EPOCHS = "iceberg-py.expired-stream-epochs"
"""The property: for snapshots without their parents, the newest epoch of each query before them."""

MAX_EXPIRED_EPOCHS = 100
"""The number of epochs in the property, the newest ones: each query that ends leaves one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEpoch:
    """A batch of a streaming query."""

    query_id: str
    epoch: int

    def summary(self) -> Mapping[str, str]:
        """Return the entries of the summary of the batch's snapshot."""
        return {QUERY_ID: self.query_id, EPOCH_ID: str(self.epoch)}

    def is_in(self, metadata: TableMetadata, branch: str) -> bool:
        """Return whether the branch has the batch: the query's newest epoch in it is not older."""
        ref = metadata.refs.get(branch)
        head = None if ref is None else metadata.snapshot_by_id.get(ref.snapshot_id)
        oldest: Snapshot | None = None
        for snapshot in ancestors_of(metadata, head):
            oldest = snapshot
            if snapshot.has_value(QUERY_ID, self.query_id):
                epoch = snapshot.number(EPOCH_ID)
                return epoch is not None and epoch >= self.epoch
        if oldest is None:
            return False
        expired_epochs = _expired_epochs(metadata).get(str(oldest.snapshot_id), {})
        return expired_epochs.get(self.query_id, -1) >= self.epoch

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
    noted: dict[str, dict[str, int]] = {}
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
        epochs: dict[str, int] = {}
        for ancestor in ancestors_of(metadata, parent):
            oldest = ancestor
            query_id = _query_of(ancestor)
            epoch = None if query_id is None else ancestor.number(EPOCH_ID)
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
    return Changes(updates=(SetProperties({EXPIRED_EPOCHS: json.dumps(noted)}),))


def refuse_own_entries(names: Iterable[str]) -> None:
    """Raise `InvalidRequestError` if a user gives a summary's entry that the stream writes."""
    for name in names:
        if name in (QUERY_ID, EPOCH_ID):
            raise InvalidRequestError(
                f"snapshot-property.{name} is written by the stream itself; leave it out"
            )


def _query_of(snapshot: Snapshot) -> str | None:
    summary = snapshot.summary
    if isinstance(summary, SummaryText) and not summary.may_hold(QUERY_ID):
        return None
    return summary.get(QUERY_ID)


def _expired_epochs(metadata: TableMetadata) -> dict[str, dict[str, int]]:
    text = metadata.properties.get(EXPIRED_EPOCHS)
    if text is None:
        return {}
    try:
        noted = json.loads(text)
        return {s: {q: int(e) for q, e in epochs.items()} for s, epochs in noted.items()}
    except (ValueError, TypeError, AttributeError) as e:
        raise InvalidMetadataError(
            f"table {metadata.location}: property {EXPIRED_EPOCHS} is damaged ({e}), so batches of "
            "streams may be in the table that cannot be found; unset the property if every "
            "streaming query into the table has ended its last batch"
        ) from e
