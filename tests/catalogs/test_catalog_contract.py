"""The contract of `tests/support/catalog_contract.py`, run for each catalog."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

import pytest

from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.catalogs.glue.catalog import GlueCatalog
from iceberg_pyspark.catalogs.hadoop.catalog import FilesystemCatalog
from iceberg_pyspark.catalogs.hive.catalog import HiveCatalog
from iceberg_pyspark.catalogs.memory import MemoryCatalog
from iceberg_pyspark.catalogs.sql.catalog import SqlCatalog
from tests.services.glue import Glue
from tests.support.catalog_contract import CatalogContract
from tests.support.change_contract import ChangeContract
from tests.support.sql_catalogs import create_v0_tables
from tests.support.view_contract import ViewChangeContract, ViewContract

C = TypeVar("C")
STATEMENTS = (
    "test_a_created_namespace_exists_and_is_listed",
    "test_nested_namespaces_are_listed_level_by_level",
    "test_similar_names_are_different_namespaces",
    "test_dropping_a_namespace",
    "test_a_namespace_with_a_table_or_a_child_is_not_dropped",
    "test_namespace_properties",
    "test_what_is_not_there_is_a_typed_error",
    "test_a_created_table_loads_as_it_was_created",
    "test_a_table_is_created_once",
    "test_a_commit_moves_the_metadata_and_logs_the_old_file",
    "test_a_commit_on_an_older_table_loses_no_other_commit",
    "test_a_dropped_table_is_gone_and_its_name_free",
    "test_rename",
    "test_register",
    "test_names_that_differ_do_not_meet",
    "test_tables_are_listed_in_their_own_namespace",
    "test_appends_at_the_same_time_all_hold",
)
"""Tests that together use each statement of a SQL catalog about namespaces and tables."""
OF_VIEWS = (
    "test_a_view_is_created_replaced_renamed_and_dropped",
    "test_a_view_and_a_table_do_not_share_a_name",
    "test_a_view_is_registered",
)


def nightly(*, but: Collection[str]) -> Callable[[type[C]], type[C]]:
    """Mark the inherited tests of a class, but for those that are named."""

    def marked(contract: type[C]) -> type[C]:
        names = {name for name in dir(contract) if name.startswith("test_")}
        assert names.issuperset(but)
        for name in sorted(names.difference(but)):
            setattr(contract, name, pytest.mark.nightly(copied(getattr(contract, name))))
        return contract

    return marked


def copied(test: Callable[..., None]) -> Callable[..., None]:
    """Return a function like the test, so that a mark on it is not a mark in all classes."""

    @functools.wraps(test)
    def copy(*arguments: Any, **keywords: Any) -> None:
        test(*arguments, **keywords)

    return copy


class TestMemoryCatalog(ViewChangeContract, ChangeContract):
    marks_in_namespaces = "/."

    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        return MemoryCatalog("memory", {"warehouse": str(tmp_path)})


class TestFilesystemCatalog(CatalogContract, ChangeContract):
    marks_in_namespaces = "."
    can_rename = False
    can_register = False
    has_namespace_properties = False

    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        return FilesystemCatalog("hadoop", {"warehouse": str(tmp_path)})


class TestSqliteCatalog(ViewChangeContract, ChangeContract):
    marks_in_namespaces = "/"

    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        uri = f"sqlite:///{tmp_path}/catalog.db"
        return SqlCatalog("sql", {"uri": uri, "warehouse": str(tmp_path / "warehouse")})


@nightly(but=(*STATEMENTS, *OF_VIEWS))
class TestSqliteCatalogInMemory(ViewChangeContract, ChangeContract):
    marks_in_namespaces = "/"

    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        return SqlCatalog("sql", {"uri": "sqlite://", "warehouse": str(tmp_path)})


@nightly(
    but=(*STATEMENTS, *OF_VIEWS),
)
class TestSqliteCatalogOfSchemaV0(ViewContract, ChangeContract):
    marks_in_namespaces = "/"
    has_views = False

    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        create_v0_tables(tmp_path / "catalog.db")
        uri = f"jdbc:sqlite:{tmp_path}/catalog.db"
        return SqlCatalog("sql", {"uri": uri, "warehouse": f"{tmp_path}/warehouse"})


@nightly(
    but=(
        *STATEMENTS,
        *OF_VIEWS,
        "test_a_change_of_a_table_that_was_recreated_is_refused",
        "test_a_change_of_what_another_changed_is_refused",
        "test_a_commit_that_changes_nothing_writes_nothing",
        "test_a_dropped_view_is_registered_under_its_name",
        "test_a_failed_requirement_changes_nothing",
        "test_a_namespace_with_a_slash_or_dot_is_refused_or_itself",
        "test_a_table_recreated_under_a_writer_refuses_its_commit",
        "test_a_table_that_another_created_meanwhile_stays",
        "test_a_view_is_moved_by_its_replacement",
        "test_a_view_is_renamed_into_another_namespace",
        "test_an_update_that_cannot_be_applied_changes_nothing",
        "test_changes_of_a_view_that_another_dropped_are_refused",
        "test_names_that_are_refused",
        "test_namespaces_that_are_refused",
        "test_no_table_takes_the_name_of_a_view",
        "test_no_view_takes_the_name_of_a_table",
        "test_odd_names_round_trip",
        "test_of_creators_at_the_same_time_one_has_the_view",
        "test_of_two_replacements_the_last_holds",
        "test_replacements_at_the_same_time_are_all_versions",
        "test_views_are_listed_in_their_own_namespace",
    ),
)
class TestPostgresCatalog(ViewChangeContract, ChangeContract):
    marks_in_namespaces = "/"

    @pytest.fixture
    def catalog(self, postgres_uri: str, tmp_path: Path) -> Catalog:
        return SqlCatalog("sql", {"uri": postgres_uri, "warehouse": str(tmp_path)})


@nightly(
    but=(
        *STATEMENTS,
        *OF_VIEWS,
        "test_odd_names_round_trip",
        "test_replacements_at_the_same_time_are_all_versions",
        "test_views_are_listed_in_their_own_namespace",
    ),
)
class TestMariaDBCatalog(ViewChangeContract, ChangeContract):
    marks_in_namespaces = "/"

    @pytest.fixture
    def catalog(self, mariadb_uri: str, tmp_path: Path) -> Catalog:
        return SqlCatalog("sql", {"uri": mariadb_uri, "warehouse": str(tmp_path)})


class TestGlueCatalog(CatalogContract, ChangeContract):
    has_nested_namespaces = False
    has_odd_names = False

    @pytest.fixture
    def catalog(self, glue: Glue, tmp_path: Path) -> Catalog:
        return GlueCatalog("glue", glue.properties(tmp_path))


class TestHiveCatalog(ViewChangeContract, ChangeContract):
    has_nested_namespaces = False
    has_odd_names = False

    @pytest.fixture
    def catalog(self, hive_uri: str, tmp_path: Path) -> Catalog:
        return HiveCatalog("hive", {"uri": hive_uri, "warehouse": str(tmp_path)})
