"""Drops, renames and namespaces in Glue without an answer: looked up; no deletion is sent twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from botocore.exceptions import EndpointConnectionError

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.glue import glue_client
from iceberg_pyspark.catalogs.glue.glue_catalog import GlueCatalog
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    CommitStateUnknownError,
    NamespaceAlreadyExistsError,
    NotAuthorizedError,
)
from tests.services.glue import Glue, GlueError
from tests.support.catalog_contract import create

EVENTS = TableIdentifier(namespace=("db",), name="events")
RENAMED = TableIdentifier(namespace=("db",), name="renamed")
LOST = GlueError("InternalServiceException", "try again", 500)
REFUSED = GlueError("AccessDeniedException", "no")
THROTTLED = GlueError("ThrottlingException", "slower")


@pytest.fixture
def catalog(glue: Glue, tmp_path: Path) -> GlueCatalog:
    """Return a catalog with retries and a table."""
    catalog = GlueCatalog("lake", {**glue.properties(tmp_path), "glue.max-retries": "1"})
    catalog.create_namespace(("db",))
    create(catalog, EVENTS)
    glue.requests.clear()
    return catalog


def sent(glue: Glue, operation: str) -> int:
    return [name for name, _ in glue.requests].count(operation)


def test_a_drop_without_an_answer_is_looked_up_and_not_repeated(
    catalog: GlueCatalog, glue: Glue
) -> None:
    glue.fail("after", "DeleteTable", LOST, times=2)
    assert catalog.drop_table(EVENTS) is False
    assert sent(glue, "DeleteTable") == 1
    create(catalog, EVENTS)
    glue.after = lambda operation: None
    glue.fail("before", "DeleteTable", LOST, times=1)
    with pytest.raises(CommitStateUnknownError, match="drop of table"):
        catalog.drop_table(EVENTS)
    assert catalog.table_exists(EVENTS)
    assert sent(glue, "DeleteTable") == 1


def test_a_drop_that_glue_refuses_because_of_its_rate_limit_is_tried_again(
    catalog: GlueCatalog, glue: Glue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glue_client, "_FIRST_WAIT_S", 0)
    glue.fail("before", "DeleteTable", THROTTLED, times=1)
    assert catalog.drop_table(EVENTS) is True
    assert not catalog.table_exists(EVENTS)


def test_a_rename_without_an_answer_is_done_where_the_table_has_the_name(
    catalog: GlueCatalog, glue: Glue
) -> None:
    glue.fail("after", "CreateTable", LOST, times=2)
    catalog.rename_table(EVENTS, RENAMED)
    assert catalog.list_tables(("db",)) == [RENAMED]
    glue.fail("after", "DeleteTable", LOST, times=2)
    catalog.rename_table(RENAMED, EVENTS)
    assert catalog.list_tables(("db",)) == [EVENTS]


@pytest.mark.parametrize(
    ("operation", "names"), [("CreateTable", [EVENTS]), ("DeleteTable", [EVENTS, RENAMED])]
)
def test_a_rename_that_may_still_come_is_unknown(
    catalog: GlueCatalog, glue: Glue, operation: str, names: list[TableIdentifier]
) -> None:
    glue.fail("before", operation, LOST, times=2)
    with pytest.raises(CommitStateUnknownError, match="rename of table"):
        catalog.rename_table(EVENTS, RENAMED)
    # The old name is never deleted by guess, nor the new one: the other deletion may still come.
    assert catalog.list_tables(("db",)) == names


def test_a_rename_whose_deletion_is_refused_leaves_no_second_name(
    catalog: GlueCatalog, glue: Glue
) -> None:
    glue.fail("before", "DeleteTable", REFUSED, times=1)
    with pytest.raises(NotAuthorizedError):
        catalog.rename_table(EVENTS, RENAMED)
    assert catalog.list_tables(("db",)) == [EVENTS]
    glue.fail("before", "DeleteTable", REFUSED, times=2)
    with pytest.raises(CommitStateUnknownError, match=r"drop db\.renamed without purging"):
        catalog.rename_table(EVENTS, RENAMED)
    assert catalog.list_tables(("db",)) == [EVENTS, RENAMED]


def test_a_rename_that_cannot_look_at_the_table_leaves_no_second_name(
    catalog: GlueCatalog, glue: Glue
) -> None:
    def lose_the_next_look(operation: str) -> None:
        if operation == "CreateTable":
            glue.fail("before", "GetTable", LOST, times=2)

    glue.after = lose_the_next_look
    with pytest.raises(CatalogError, match="get_table"):
        catalog.rename_table(EVENTS, RENAMED)
    assert catalog.list_tables(("db",)) == [EVENTS]


def test_namespaces_without_an_answer(catalog: GlueCatalog, glue: Glue) -> None:
    properties = {"owner": "me", "comment": "of the tests"}
    glue.fail("before", "CreateDatabase", LOST, times=2)
    with pytest.raises(CommitStateUnknownError, match="creation of namespace"):
        catalog.create_namespace(("n",), properties)
    glue.fail("after", "CreateDatabase", LOST, times=1)
    # botocore repeats the request, which then meets the database of its first attempt
    catalog.create_namespace(("n",), properties)
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace(("n",), properties)
    glue.fail("before", "UpdateDatabase", LOST, times=2)
    with pytest.raises(CommitStateUnknownError, match="change of the properties"):
        catalog.update_namespace_properties(("n",), removals=["owner"], updates={"a": "1"})
    glue.fail("after", "UpdateDatabase", LOST, times=2)
    catalog.update_namespace_properties(("n",), removals=["owner"], updates={"a": "1"})
    assert catalog.load_namespace_properties(("n",)) == {"comment": "of the tests", "a": "1"}
    glue.fail("before", "DeleteDatabase", LOST, times=2)
    with pytest.raises(CommitStateUnknownError, match="drop of namespace"):
        catalog.drop_namespace(("n",))
    glue.before = lambda operation: None
    glue.fail("after", "DeleteDatabase", LOST, times=2)
    catalog.drop_namespace(("n",))
    assert sent(glue, "DeleteDatabase") == 1
    assert not catalog.namespace_exists(("n",))


def test_nothing_is_dropped_where_glue_cannot_be_reached(
    catalog: GlueCatalog, glue: Glue, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = catalog._glue._client_here(0)

    def unreachable(**_: object) -> None:
        raise EndpointConnectionError(endpoint_url=glue.endpoint)

    monkeypatch.setattr(client, "delete_table", unreachable)
    with pytest.raises(CatalogUnavailableError):
        catalog.drop_table(EVENTS)
    assert catalog.table_exists(EVENTS)
