"""Questions to a catalog."""

import pytest

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge.protocol.catalogs import (
    CatalogOpen,
    NamespaceCreate,
    NamespacesList,
)
from iceberg_pyspark.spark.bridge.protocol.tables import TablesList
from iceberg_pyspark.spark.sql_catalog.catalog import CatalogCallbacks


@pytest.fixture
def answers() -> CatalogCallbacks:
    made = CatalogCallbacks()
    opened = made.open(CatalogOpen(session="s", name="lake", options={"type": "memory"}))
    assert opened.handle == "s/lake"
    return made


def test_questions_are_answered(answers: CatalogCallbacks) -> None:
    answers.namespace_create(NamespaceCreate(catalog="s/lake", namespace=("db",), properties={}))
    found = answers.namespaces_list(NamespacesList(catalog="s/lake", namespace=()))
    assert found.namespaces == (("db",),)


def test_a_catalog_that_is_not_open_is_said_so(answers: CatalogCallbacks) -> None:
    with pytest.raises(InvalidRequestError, match="catalog lake was opened before"):
        answers.tables_list(TablesList(catalog="other/lake", namespace=("db",)))
