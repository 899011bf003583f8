"""Column names of an entry table: the manifest entries of one manifest as columns.

`storage/manifest_columns.py` makes such tables, `planning/` prunes and joins them; both know the
columns by these names, which are the specification's. Values are in the physical form of
`spec/values.py`: dates and times are integers. The struct `partition` names its children by
partition field id.
"""

from __future__ import annotations

from typing import Literal, get_args

ENTRY_COLUMNS = (
    "status",
    "snapshot_id",
    "sequence_number",
    "file_sequence_number",
    "content",
    "file_path",
    "file_format",
    "spec_id",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "key_metadata",
    "split_offsets",
    "equality_ids",
    "sort_order_id",
    "first_row_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)
"""The columns every entry table has, in order."""

MetricMap = Literal[
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
]
METRIC_MAPS: tuple[MetricMap, ...] = get_args(MetricMap)
"""The columns more that a table read with whole metrics has: maps by field id."""

FILTER_METRICS: tuple[MetricMap, ...] = METRIC_MAPS[1:]
"""The metrics a predicate is evaluated on."""


def metric_column(metric: MetricMap, field_id: int) -> str:
    """The column that holds one metric of one field, in a table read with metrics of chosen fields.

    >>> metric_column("lower_bounds", 7)
    'lower_bounds.7'
    """
    return f"{metric}.{field_id}"
