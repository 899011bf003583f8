"""Table metadata as other writers leave it: what is missing or wrong, and who reads it.

The documentation has the same list.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]

SNAPSHOT: Document = {
    "snapshot-id": 1,
    "sequence-number": 1,
    "timestamp-ms": 1_600_000_000_000,
    "summary": {"operation": "append"},
    "manifest-list": "s3://b/t/metadata/list.avro",
    "schema-id": 0,
}
DOCUMENT: Document = {
    "format-version": 2,
    "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": "s3://b/t",
    "last-sequence-number": 1,
    "last-updated-ms": 1_600_000_000_000,
    "last-column-id": 2,
    "schemas": [
        {
            "type": "struct",
            "schema-id": 0,
            "fields": [{"id": 1, "name": "x", "required": True, "type": "long"}],
        }
    ],
    "current-schema-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "default-spec-id": 0,
    "last-partition-id": 999,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "default-sort-order-id": 0,
    "properties": {},
    "current-snapshot-id": 1,
    "refs": {"main": {"snapshot-id": 1, "type": "branch"}},
    "snapshots": [SNAPSHOT],
}


@dataclass(frozen=True, slots=True)
class ForeignMetadata:
    """Metadata that differs from what the specification asks, and whether each side reads it."""

    name: str
    document: Document
    is_read: bool
    java_reads: bool


def _case(
    name: str, change: Callable[[Document], object], *, is_read: bool, java_reads: bool = False
) -> ForeignMetadata:
    document = copy.deepcopy(DOCUMENT)
    if "v3" in name:
        document |= {"format-version": 3, "next-row-id": 5}
        document["snapshots"][0] |= {"first-row-id": 0, "added-rows": 5}
    change(document)
    return ForeignMetadata(name, document, is_read, java_reads)


def _without(key: str) -> Callable[[Document], object]:
    return lambda document: document.pop(key)


def _column(type_: str, **more: Any) -> Callable[[Document], object]:
    field = {"id": 2, "name": "n", "required": False, "type": type_, **more}
    return lambda document: document["schemas"][0]["fields"].append(field)


FOREIGN_METADATA = [
    _case("v2 without last-sequence-number", _without("last-sequence-number"), is_read=True),
    _case("v2 without last-partition-id", _without("last-partition-id"), is_read=True),
    _case("v2 without default-sort-order-id", _without("default-sort-order-id"), is_read=True),
    _case(
        "v2 whose last-sequence-number lags",
        lambda d: d.update({"last-sequence-number": 0}),
        is_read=True,
    ),
    _case(
        "v3 whose next-row-id lags",
        lambda d: d.update({"next-row-id": 1}),
        is_read=True,
        java_reads=True,
    ),
    _case(
        "v3 first-row-id without added-rows",
        lambda d: d["snapshots"][0].pop("added-rows"),
        is_read=True,
    ),
    _case(
        "v3 added-rows without first-row-id",
        lambda d: d["snapshots"][0].pop("first-row-id"),
        is_read=True,
        java_reads=True,
    ),
    _case("a schema without its type", lambda d: d["schemas"][0].pop("type"), is_read=True),
    _case("v3 with a required unknown", _column("unknown", required=True), is_read=True),
    _case(
        "v3 with geography(OGC:CRS84, flat)", _column("geography(OGC:CRS84, flat)"), is_read=True
    ),
    _case("v2 with timestamp_ns", _column("timestamp_ns"), is_read=True, java_reads=True),
    _case(
        "v2 with a default", _column("int", **{"initial-default": 1}), is_read=True, java_reads=True
    ),
    _case(
        "v3 with a default of unknown", _column("unknown", **{"initial-default": 1}), is_read=False
    ),
    _case("v3 without next-row-id", _without("next-row-id"), is_read=False),
    _case("v2 without last-column-id", _without("last-column-id"), is_read=False),
    _case("v2 without current-schema-id", _without("current-schema-id"), is_read=False),
    _case("v2 without default-spec-id", _without("default-spec-id"), is_read=False),
    _case("v2 without sort-orders", _without("sort-orders"), is_read=False),
    _case("v2 without table-uuid", _without("table-uuid"), is_read=False),
    _case("v2 without last-updated-ms", _without("last-updated-ms"), is_read=False),
]
