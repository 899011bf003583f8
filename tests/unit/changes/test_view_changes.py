"""View metadata after changes: ids, the log, expired versions, kept dialects."""

from __future__ import annotations

import pytest

from iceberg_pyspark.changes.changes import LAST_ADDED, AssignUUID, RemoveProperties, SetProperties
from iceberg_pyspark.changes.view_changes import (
    AssertViewUUID,
    SetCurrentViewVersion,
    ViewUpdate,
    apply_view_updates,
    check_view_requirement,
    new_view_metadata,
    view_definition_updates,
)
from iceberg_pyspark.errors import CommitConflictError, InvalidRequestError
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import LongType, NestedField, StringType
from iceberg_pyspark.spec.views import SqlRepresentation, VersionLogEntry, ViewMetadata

ID = Schema(fields=(NestedField(field_id=1, name="id", type=LongType()),))
NAME = Schema(fields=(NestedField(field_id=1, name="name", type=StringType()),))
UUID = "fa6506c3-7681-40c8-86dc-e36561f83385"


def definition(
    sql: str, *, schema: Schema = ID, dialects: tuple[str, ...] = ("spark",), now_ms: int = 5
) -> tuple[ViewUpdate, ...]:
    representations = [SqlRepresentation(sql, dialect) for dialect in dialects]
    return view_definition_updates(
        schema, representations, default_namespace=("db",), now_ms=now_ms
    )


def new_view(properties: dict[str, str] | None = None) -> ViewMetadata:
    return new_view_metadata(
        definition("SELECT 1"), "/w/db/v/", properties or {}, view_uuid=UUID, now_ms=9
    )


def test_a_new_view() -> None:
    view = new_view({"comment": "c"})
    assert (view.view_uuid, view.location, view.properties) == (UUID, "/w/db/v", {"comment": "c"})
    assert view.current_version_id == 1
    assert view.version_log == (VersionLogEntry(5, 1),)
    assert view.schema.fields == ID.fields
    assert view.schema.schema_id == 0


def test_a_replaced_view_keeps_its_versions() -> None:
    view = apply_view_updates(new_view(), definition("SELECT 2", schema=NAME, now_ms=7), now_ms=9)
    assert [v.version_id for v in view.versions] == [1, 2]
    assert view.current_version.sql("spark") == "SELECT 2"
    assert view.version_log == (VersionLogEntry(5, 1), VersionLogEntry(7, 2))
    assert [s.schema_id for s in view.schemas] == [0, 1]
    assert view.schema.fields == NAME.fields
    back = apply_view_updates(view, (SetCurrentViewVersion(1),), now_ms=11)
    assert back.version_log[-1] == VersionLogEntry(11, 1)


def test_equal_definition_adds_no_view_version() -> None:
    view = new_view()
    assert apply_view_updates(view, definition("SELECT 1", now_ms=8), now_ms=9) is view


def test_properties() -> None:
    view = apply_view_updates(
        new_view({"a": "1", "b": "2"}), (SetProperties({"c": "3"}),), now_ms=9
    )
    view = apply_view_updates(view, (RemoveProperties(("a", "absent")),), now_ms=9)
    assert view.properties == {"b": "2", "c": "3"}


@pytest.mark.parametrize(
    ("size", "version_ids"), [("1", [5]), ("3", [3, 4, 5]), (None, [1, 2, 3, 4, 5])]
)
def test_old_versions_go(size: str | None, version_ids: list[int]) -> None:
    view = new_view({} if size is None else {"version.history.num-entries": size})
    for n in range(4):
        view = apply_view_updates(view, definition(f"SELECT {n} + 1 AS x"), now_ms=9)
    assert [v.version_id for v in view.versions] == version_ids
    assert [e.version_id for e in view.version_log] == version_ids


def test_the_current_version_stays_and_the_log_has_no_gap() -> None:
    view = new_view()
    for n in range(3):
        view = apply_view_updates(view, definition(f"SELECT {n} + 1 AS x"), now_ms=9)
    changes = (SetCurrentViewVersion(1), SetProperties({"version.history.num-entries": "2"}))
    view = apply_view_updates(view, changes, now_ms=9)
    assert [v.version_id for v in view.versions] == [1, 4]
    assert [e.version_id for e in view.version_log] == [4, 1]


def test_dialect_is_dropped_only_if_the_view_allows_it() -> None:
    view = apply_view_updates(
        new_view(), definition("SELECT 2", dialects=("Spark", "trino")), now_ms=9
    )
    with pytest.raises(InvalidRequestError, match=r"trino.*replace\.drop-dialect\.allowed"):
        apply_view_updates(view, definition("SELECT 3"), now_ms=9)
    allowed = (SetProperties({"replace.drop-dialect.allowed": "true"}), *definition("SELECT 3"))
    assert apply_view_updates(view, allowed, now_ms=9).current_version.sql("trino") is None


def test_impossible_view_update_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="two queries"):
        apply_view_updates(
            new_view(), definition("SELECT 2", dialects=("spark", "SPARK")), now_ms=9
        )
    with pytest.raises(InvalidRequestError, match="no version 9"):
        apply_view_updates(new_view(), (SetCurrentViewVersion(9),), now_ms=9)
    with pytest.raises(InvalidRequestError, match="the last added version is referenced"):
        apply_view_updates(new_view(), (SetCurrentViewVersion(LAST_ADDED),), now_ms=9)
    with pytest.raises(InvalidRequestError, match="UUID"):
        apply_view_updates(new_view(), (AssignUUID("other"),), now_ms=9)
    with pytest.raises(InvalidRequestError, match="a new view needs"):
        apply_view_updates(None, definition("SELECT 1"), now_ms=9)


def test_requirements() -> None:
    check_view_requirement(AssertViewUUID(UUID.upper()), new_view())
    with pytest.raises(CommitConflictError, match="replaced by another view"):
        check_view_requirement(AssertViewUUID("other"), new_view())
