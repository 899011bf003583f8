"""The request to the server to plan a scan.

Open API specification of the REST catalog, `PlanTableScanRequest`. The snapshot is always
specified, so that all reads of a statement see the same snapshot. A limit is not sent as
`min-rows-requested`, because a server may count rows that deletes or the reader remove.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from iceberg_pyspark.catalogs.catalog import ScanToPlan
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.expressions.json import predicate_to_json
from iceberg_pyspark.expressions.predicates import (
    AlwaysTrue,
    And,
    BoundLiteral,
    BoundSet,
    BoundUnary,
    Or,
    Predicate,
)
from iceberg_pyspark.expressions.rewriting import and_, columns_of, or_, push_not
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.metadata_columns import LAST_UPDATED_SEQUENCE_NUMBER, ROW_LINEAGE_VERSION
from iceberg_pyspark.spec.schema import Schema

_UNSENT_TYPES = (types.BinaryType, types.FixedType, types.UUIDType)
"""Types whose JSON values are strings, which a server may compare as text.

UUIDs have two possible orders.
"""


def scan_to_json(scan: ScanToPlan) -> dict[str, Any]:
    """Return the request body for a scan.

    Raise `UnsupportedFeatureError` if the scan needs what the answer cannot contain.
    """
    ids = {f.field_id for f in scan.projection.fields}
    is_asked = LAST_UPDATED_SEQUENCE_NUMBER.field_id in ids
    if is_asked and scan.metadata.format_version >= ROW_LINEAGE_VERSION:
        raise UnsupportedFeatureError(
            f"{LAST_UPDATED_SEQUENCE_NUMBER.name} is not known where a server plans the scan: its "
            "answer has no sequence numbers; leave the column out"
        )
    body: dict[str, Any] = {
        "snapshot-id": scan.snapshot_id,
        "case-sensitive": True,
        "use-snapshot-schema": scan.schema.schema_id != scan.metadata.current_schema.schema_id,
    }
    names = scan.schema.name_by_id
    selected_ids = set(_column_ids(scan.projection)) | columns_of(scan.predicate)
    # without selected columns, send no list: a server may read an empty list as all or no columns
    if any(i in names for i in selected_ids):
        body["select"] = sorted(names[i] for i in selected_ids if i in names)
    request_filter = _sendable_predicate(push_not(scan.predicate))
    if not isinstance(request_filter, AlwaysTrue):
        body["filter"] = predicate_to_json(request_filter)
    if any(i in names for i in scan.metrics):
        body["stats-fields"] = sorted(names[i] for i in scan.metrics if i in names)
    return body


def _column_ids(projection: Schema) -> Iterator[int]:
    """Yield the column ids of a projection: for a struct, only the ids of its selected children."""
    for f in projection.fields:
        children = Schema(fields=f.type.fields) if isinstance(f.type, types.StructType) else None
        yield from [f.field_id] if children is None else _column_ids(children)


def _sendable_predicate(predicate: Predicate) -> Predicate:
    """Weaken a predicate without `Not` to the parts that a server compares as we do."""
    match predicate:
        case And(left, right):
            return and_(_sendable_predicate(left), _sendable_predicate(right))
        case Or(left, right):
            return or_(_sendable_predicate(left), _sendable_predicate(right))
        case BoundUnary(column=column) if not isinstance(column.type, types.PrimitiveType):
            # Java's server cannot bind a test of a struct, list or map
            return AlwaysTrue()
        case BoundLiteral(literal=literal) if not _is_sent(predicate, literal):
            return AlwaysTrue()
        case BoundSet(literals=literals) if not all(_is_sent(predicate, v) for v in literals):
            return AlwaysTrue()
        case _:
            return predicate


def _is_sent(leaf: BoundLiteral | BoundSet, literal: Any) -> bool:
    if isinstance(literal, float) and not math.isfinite(literal):
        return False
    return not isinstance(leaf.column.type, _UNSENT_TYPES)
