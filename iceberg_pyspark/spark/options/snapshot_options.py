"""Read options that select a range of snapshots, for incremental reads.

The names are Iceberg's (`SparkReadOptions`). All kinds of reads accept these options.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iceberg_pyspark.spark.options.option_values import number_option

_START_SNAPSHOT_ID = number_option("start-snapshot-id")
_END_SNAPSHOT_ID = number_option("end-snapshot-id")
_START_TIMESTAMP = number_option("start-timestamp")
_END_TIMESTAMP = number_option("end-timestamp")
_FIELDS = {
    "start_snapshot_id": _START_SNAPSHOT_ID,
    "end_snapshot_id": _END_SNAPSHOT_ID,
    "start_timestamp_ms": _START_TIMESTAMP,
    "end_timestamp_ms": _END_TIMESTAMP,
}

BETWEEN_SNAPSHOTS = frozenset(option.name for option in _FIELDS.values())
"""The names of the options."""


def snapshot_bounds(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the bounds in the options as fields of a `SnapshotSelector`; names are in lower case.

    Raise `InvalidRequestError` for a value that is not a whole number.
    """
    bounds = {name: option.of(values) for name, option in _FIELDS.items()}
    return {name: bound for name, bound in bounds.items() if bound is not None}
