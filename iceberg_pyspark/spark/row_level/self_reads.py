"""Statements that change a table and read it too, such as DELETE with a subquery on the table.

The rows to change and the rows that the statement reads must come from one snapshot: with two, it
would delete rows that another writer has added in the meantime, because the older snapshot does not
have them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.errors import ConcurrentChangeError
from iceberg_pyspark.spark.table_states import TableState
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector


def table_to_pin(target: TableState, referenced_tables: Iterable[TableState]) -> LoadedTable | None:
    """Return the state in which a statement reads its own table, the `target`; None if it does not.

    Without a cache, Spark may have loaded the table once to change it and later once to read it. A
    version, a time and a metadata table select what is read whatever the state is. So does an older
    state than the target's: it is of a DataFrame in a temporary view, from before the statement.
    """
    own = target.loaded_table
    own_states = _own_states(own, (s for s in referenced_tables if s.catalog == target.catalog))
    if any(table.metadata_location == own.metadata_location for table in own_states):
        return own
    newer = [
        table
        for table in own_states
        if any(e.metadata_file == own.metadata_location for e in table.metadata.metadata_log)
    ]
    return min(newer, key=lambda table: len(table.metadata.snapshots), default=None)


class OtherStateError(ConcurrentChangeError):
    """What an operation reads is of another state of its table than the operation's own."""

    def __init__(self, state: LoadedTable) -> None:
        """`state` is the state that was read."""
        super().__init__(
            f"table {state.identifier} was changed between two reads of one operation, which must "
            "see one snapshot of it; run the operation again, or read the table VERSION AS OF a "
            "snapshot"
        )
        self.state = state


def state_read(own: LoadedTable, referenced_tables: Iterable[TableState]) -> LoadedTable | None:
    """Return the state in which a source or a subquery reads its operation's `own` table, or None.

    Unlike in SQL, it may be older than the table: then the operation begins there too, and what
    has been committed since is a conflict. Raises `OtherStateError` for two states.
    """
    states = {state.metadata_location: state for state in _own_states(own, referenced_tables)}
    if not states:
        return None
    state, *others = states.values()
    for other in others:
        raise OtherStateError(other)
    return replace(own, metadata=state.metadata, metadata_location=state.metadata_location)


def _own_states(own: LoadedTable, referenced_tables: Iterable[TableState]) -> list[LoadedTable]:
    return [
        state.loaded_table
        for state in referenced_tables
        if _table_key(state.loaded_table) == _table_key(own)
        and state.metadata_table is None
        and state.selector == SnapshotSelector(branch=state.selector.branch)
    ]


def _table_key(table: LoadedTable) -> str:
    return table.metadata.table_uuid or table.metadata.location
