"""Run-time filters: skips files by the join keys of the other side of a join.

Spark asks which columns support such filters, and passes the values as conditions. A file is
skipped if no row can match: by its partition, whatever the transform, or by its column bounds. This
only affects speed, because the join still compares the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from iceberg_pyspark.spark.bridge.compared_types import COMPARED_TYPES
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import VoidTransform
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.table.reading.scan import TableScan


def columns_for_skipping(metadata: TableMetadata) -> Iterator[NestedField]:
    """The top-level columns by whose values files are likely to differ.

    They are what files are partitioned by, and what the table is sorted by first. Floats are not
    among them: a join takes for equal what bounds do not.
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


def remaining_locations(scan: TableScan, location: Callable[[str], str | None]) -> tuple[str, ...]:
    """The data files of a pruned scan.

    `location` is where the JVM finds a file, or None where it is known by the name it has.
    """
    paths = (
        p
        for planned_files in scan.plan().files()
        for p in planned_files.entries["file_path"].to_pylist()
    )
    return tuple(location(path) or path for path in paths)
