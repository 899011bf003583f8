"""Questions to a catalog: those there are, and no method besides."""

import pytest

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.sql_catalog import CatalogAnswers


@pytest.fixture
def answers() -> CatalogAnswers:
    made = CatalogAnswers()
    opened = made.answer(
        "catalog.open", {"session": "s", "name": "lake", "options": {"type": "memory"}}
    )
    assert opened == {"handle": "s/lake"}
    return made


def test_questions_are_answered(answers: CatalogAnswers) -> None:
    created = {"catalog": "s/lake", "namespace": ["db"], "properties": {}}
    assert answers.answer("namespace.create", created) == {}
    asked = {"catalog": "s/lake", "namespace": []}
    assert answers.answer("namespaces.list", asked) == {"namespaces": [["db"]]}


@pytest.mark.parametrize(
    "operation", ["facts", "facts.of", "metadata.facts", "open", "_class__", "state", "catalog", ""]
)
def test_other_operations_are_refused(answers: CatalogAnswers, operation: str) -> None:
    with pytest.raises(InvalidRequestError, match="is no question to a catalog"):
        answers.answer(operation, {"catalog": "s/lake"})


def test_a_catalog_that_is_not_open_is_said_so(answers: CatalogAnswers) -> None:
    with pytest.raises(InvalidRequestError, match="catalog lake was opened before"):
        answers.answer("tables.list", {"catalog": "other/lake", "namespace": ["db"]})
