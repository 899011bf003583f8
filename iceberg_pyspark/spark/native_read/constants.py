"""Identity partition values as constant columns of a file.

Specification, "Column Projection": a field that a file lacks has its identity partition value.
Files of migrated tables lack partition columns; other files store the same value, so as in Java the
column is not read at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spark.bridge.compared_types import COMPARED_TYPES
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.partitioning import PartitionSpec, identity_source_ids

CONSTANT_TYPES = COMPARED_TYPES


def constant_name(field_id: int) -> str:
    """Return the name of the column in the table of files that holds a field's constant."""
    return f"__ice_id_{field_id}"


def why_not_constant(
    fields: Iterable[types.NestedField], specs: Iterable[PartitionSpec]
) -> str | None:
    """Return the reason if files may lack fields that Spark cannot get as constants, or None."""
    partition_source_ids = {i for spec in specs for i in identity_source_ids(spec)}
    for f in fields:
        if f.field_id in partition_source_ids and not isinstance(f.type, CONSTANT_TYPES):
            return f"it is partitioned by {f.name} of type {f.type}"
        if any(inner.field_id in partition_source_ids for inner in types.walk_fields(f.type)):
            return f"it is partitioned by a field of column {f.name}"
    return None


def constant_ids(spec: PartitionSpec) -> frozenset[int]:
    """Return the ids of the columns that are constant in each file of a partition spec."""
    return frozenset(identity_source_ids(spec))


def constant_values(
    specs: Mapping[int, PartitionSpec], tasks: Sequence[ScanTask], field_id: int
) -> list[Any]:
    """Return each file's value of a constant column, in the form of `spec/values.py`."""
    spec_ids = {t.spec_id for t in tasks}
    positions = {i: identity_source_ids(specs[i])[field_id] for i in spec_ids}
    return [t.partition[positions[t.spec_id]] for t in tasks]
