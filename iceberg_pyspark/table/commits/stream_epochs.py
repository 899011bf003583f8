"""The batches of streams in a table, exactly once, by the keys of Iceberg's Java connector.

Each batch is one snapshot, whose summary has the query's id and the number of the batch, its epoch.
A batch that Spark runs again is found among the ancestors of the branch's snapshot: a batch that a
rollback has removed is written again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iceberg_pyspark.changes.changes import Changes
from iceberg_pyspark.changes.ref_changes import ancestors_of
from iceberg_pyspark.errors import CommitConflictError
from iceberg_pyspark.spec.table_metadata import TableMetadata

QUERY_ID = "spark.sql.streaming.queryId"
EPOCH_ID = "spark.sql.streaming.epochId"


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
        for snapshot in ancestors_of(metadata, head):
            if snapshot.has_value(QUERY_ID, self.query_id):
                epoch = snapshot.number(EPOCH_ID)
                return epoch is not None and epoch >= self.epoch
        return False

    def check_absent(self, metadata: TableMetadata, branch: str) -> Changes:
        """Return no changes; raise `CommitConflictError` if the branch has the batch."""
        if self.is_in(metadata, branch):
            raise CommitConflictError(
                f"table {metadata.location}: another process has committed batch {self.epoch} of "
                f"streaming query {self.query_id} to branch {branch}; stop one of the two queries "
                "that use this checkpoint"
            )
        return Changes()
