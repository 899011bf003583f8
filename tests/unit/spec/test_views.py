"""View metadata: JSON in both directions, and what is refused."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from iceberg_pyspark.errors import IcebergError, InvalidMetadataError, UnsupportedFeatureError
from iceberg_pyspark.spec.views import (
    SqlRepresentation,
    UnknownRepresentation,
    view_metadata_from_bytes,
    view_metadata_from_json,
    view_metadata_to_bytes,
    view_metadata_to_json,
)

# the specification's own example, plus a second version and unspecified fields
VIEW: dict[str, Any] = {
    "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
    "format-version": 1,
    "location": "s3://bucket/warehouse/default.db/event_agg",
    "current-version-id": 2,
    "properties": {"comment": "Daily event counts"},
    "versions": [
        {
            "version-id": 1,
            "timestamp-ms": 1573518431292,
            "schema-id": 1,
            "default-catalog": "prod",
            "default-namespace": ["default"],
            "summary": {"engine-name": "Spark", "engine-version": "3.3.2"},
            "representations": [
                {"type": "sql", "sql": "SELECT count(1) FROM events", "dialect": "spark"}
            ],
        },
        {
            "version-id": 2,
            "timestamp-ms": 1573518981593,
            "schema-id": 1,
            "summary": {},
            "default-namespace": [],
            "representations": [
                {"type": "sql", "sql": "SELECT 1", "dialect": "trino"},
                {"type": "plan", "bytes": "AAEC"},
            ],
        },
    ],
    "schemas": [
        {
            "schema-id": 1,
            "type": "struct",
            "fields": [{"id": 1, "name": "event_count", "required": False, "type": "int"}],
        }
    ],
    "version-log": [
        {"timestamp-ms": 1573518431292, "version-id": 1},
        {"timestamp-ms": 1573518981593, "version-id": 2},
    ],
    "later": {"kept": True},
}


def test_view_metadata_round_trips() -> None:
    view = view_metadata_from_json(VIEW)
    assert view_metadata_to_json(view) == VIEW
    assert view_metadata_from_bytes(view_metadata_to_bytes(view), "v") == view
    assert view.current_version.default_namespace == ()
    assert view.current_version.sql("TRINO") == "SELECT 1"
    assert view.current_version.sql("spark") is None
    assert view.version(1).sql("spark") == "SELECT count(1) FROM events"
    assert view.schema.fields[0].name == "event_count"
    assert view.current_version.representations == (
        SqlRepresentation("SELECT 1", "trino"),
        UnknownRepresentation({"type": "plan", "bytes": "AAEC"}),
    )


@pytest.mark.parametrize(
    ("path", "value", "error", "words"),
    [
        (("format-version",), 2, UnsupportedFeatureError, "format-version 2"),
        (("current-version-id",), 7, InvalidMetadataError, "current-version-id"),
        (("versions",), [], InvalidMetadataError, "versions"),
        (("schemas",), [], InvalidMetadataError, "schemas"),
        (("versions", 1, "version-id"), 1, InvalidMetadataError, r"versions\[1\]"),
        (("versions", 1, "schema-id"), 9, InvalidMetadataError, "no schema 9"),
        (("versions", 0, "default-namespace"), "db", InvalidMetadataError, "default-namespace"),
        (("versions", 0, "representations", 0, "sql"), 3, InvalidMetadataError, "sql"),
        (("view-uuid",), None, InvalidMetadataError, "view-uuid"),
        (("location",), None, InvalidMetadataError, "location"),
    ],
)
def test_invalid_view_metadata_is_refused_by_name(
    path: tuple[Any, ...], value: Any, error: type[IcebergError], words: str
) -> None:
    data = deepcopy(VIEW)
    place: Any = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(error, match=words):
        view_metadata_from_json(data)
