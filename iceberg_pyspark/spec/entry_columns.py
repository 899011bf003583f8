"""Column names of an entry table, which holds the entries of one manifest as columns.

`formats/manifest_columns.py` builds entry tables; `planning/` prunes and joins them. The names are
those of the specification. Values have the physical form of `spec/values.py`: dates and times are
integers. The children of the struct `partition` are named by partition field id.
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
"""The columns of every entry table, in order."""

MetricMap = Literal[
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
]
METRIC_MAPS: tuple[MetricMap, ...] = get_args(MetricMap)
"""The additional columns of a table that was read with complete metrics: maps keyed by field id."""

FILTER_METRICS: tuple[MetricMap, ...] = METRIC_MAPS[1:]
"""The metrics that predicates are evaluated on."""


def metric_column(metric: MetricMap, field_id: int) -> str:
    """Return the name of the column with one metric of one field, for a table with chosen metrics.

    >>> metric_column("lower_bounds", 7)
    'lower_bounds.7'
    """
    return f"{metric}.{field_id}"
