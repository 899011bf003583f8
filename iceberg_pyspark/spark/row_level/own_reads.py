"""Statements that change a table and read it too, such as DELETE with a subquery on the table.

The rows to change and the rows that the statement reads must come from one snapshot: with two, it
would delete rows that another writer has added in the meantime, because the older snapshot does not
have them.
"""

from __future__ import annotations

from collections.abc import Iterable

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.spark.table_states import TableState
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector


def table_to_pin(target: TableState, tables_read: Iterable[TableState]) -> LoadedTable | None:
    """Return the state in which a statement reads its own table, the `target`; None if it does not.

    Without a cache, Spark may have loaded the table once to change it and later once to read it. A
    version, a time and a metadata table select what is read whatever the state is. So does an older
    state than the target's: it is of a DataFrame in a temporary view, from before the statement.
    """
    own = target.loaded_table
    own_states = [
        state.loaded_table
        for state in tables_read
        if state.catalog == target.catalog
        and _table_key(state.loaded_table) == _table_key(own)
        and state.metadata_table is None
        and state.selector == SnapshotSelector(branch=state.selector.branch)
    ]
    if any(table.metadata_location == own.metadata_location for table in own_states):
        return own
    newer = [
        table
        for table in own_states
        if any(e.metadata_file == own.metadata_location for e in table.metadata.metadata_log)
    ]
    return min(newer, key=lambda table: len(table.metadata.snapshots), default=None)


def _table_key(table: LoadedTable) -> str:
    return table.metadata.table_uuid or table.metadata.location
