"""Run-time filters: skips files by the join keys of the other side of a join.

Spark asks which columns support such filters, and passes the values as conditions. A file is
skipped if no row can match: by its partition, whatever the transform, or by its column bounds. This
only affects speed, because the join still compares the rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from iceberg_pyspark.spark.bridge.compared_types import COMPARED_TYPES
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import VoidTransform
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.table.reading.scan import TableScan


def columns_for_skipping(metadata: TableMetadata) -> Iterator[NestedField]:
    """Yield the top-level columns by whose values files are likely to differ.

    These are the columns that files are partitioned by, and the first column of the sort order.
    Floats are excluded: a join treats 0.0 and -0.0 as equal, but bounds do not.
    """
    ids = {
        f.source_id
        for spec in metadata.partition_specs
        for f in spec.fields
        if not isinstance(f.transform, VoidTransform)
    }
    ids |= {f.source_id for f in metadata.default_sort_order.fields[:1]}
    for f in metadata.current_schema.fields:
        if f.field_id in ids and isinstance(f.type, COMPARED_TYPES):
            yield f


def remaining_locations(scan: TableScan) -> tuple[str, ...]:
    """Return the locations of the data files of a pruned scan, as its table has them."""
    return tuple(
        path
        for planned_files in scan.plan().files()
        for path in planned_files.entries["file_path"].to_pylist()
    )
