"""The tests of Java's catalogs and our counterparts: `CatalogTests` and `ViewCatalogTests`.

The compatibility kit of REST servers runs the same two classes. Each value is the name of our
test, in the contracts (which test_catalog_contract.py, rest/test_contract.py and tests/stores run
for each catalog) or in a file, or the reason why there is none. The functions check that the named
tests exist, and that all tests of Java are listed.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from jobs.find_java import find_java_home
from tests.services import rest_fixture
from tests.support.change_contract import ChangeContract
from tests.support.view_contract import ViewChangeContract

_EMPTY_NAMESPACE = "no catalog here takes an empty name as a namespace"
_EXPIRY = "test_expiry_removes_refs_schemas_and_specs_of_expired_snapshots"
_CONCURRENT = "test_concurrent_changes_of_different_parts_are_all_kept"
_DEFAULTS = "test_table_catalog.py::test_defaults_and_overrides_of_the_catalog"
_AS_CREATED = "one function, `new_table_properties`, serves creations and replacements"

_UNIQUE = "test_unique_locations.py"

BEHAVIOURS = {
    # Namespaces.
    "testCreateNamespace": "test_a_created_namespace_exists_and_is_listed",
    "testCreateExistingNamespace": "test_a_created_namespace_exists_and_is_listed",
    "testCreateNamespaceWithProperties": "test_namespace_properties",
    "testLoadNamespaceMetadata": "test_missing_name_raises_no_such_error",
    "testSetNamespaceProperties": "test_namespace_properties",
    "testUpdateNamespaceProperties": "test_namespace_properties",
    "testUpdateAndSetNamespaceProperties": "test_namespace_properties",
    "testSetNamespacePropertiesNamespaceDoesNotExist": "test_missing_name_raises_no_such_error",
    "testRemoveNamespaceProperties": "test_namespace_properties",
    "testRemoveNamespacePropertiesNamespaceDoesNotExist": "test_missing_name_raises_no_such_error",
    "testDropNamespace": "test_dropping_a_namespace",
    "testDropNonexistentNamespace": "test_dropping_a_namespace",
    "testDropNonEmptyNamespace": "test_a_namespace_with_a_table_or_a_child_is_not_dropped",
    "testDropNamespaceWithNestedNamespace": (
        "test_a_namespace_with_a_table_or_a_child_is_not_dropped"
    ),
    "testListNamespaces": "test_a_created_namespace_exists_and_is_listed",
    "testListNestedNamespaces": "test_nested_namespaces_are_listed_level_by_level",
    "testListNonExistingNamespace": "test_missing_name_raises_no_such_error",
    "testNamespaceWithSlash": "test_a_namespace_with_a_slash_or_dot_is_refused_or_itself",
    "testNamespaceWithDot": "test_a_namespace_with_a_slash_or_dot_is_refused_or_itself",
    "listNamespacesWithEmptyNamespace": _EMPTY_NAMESPACE,
    "createAndDropEmptyNamespace": _EMPTY_NAMESPACE,
    "namespacePropertiesOnEmptyNamespace": _EMPTY_NAMESPACE,
    "listTablesInEmptyNamespace": _EMPTY_NAMESPACE,
    # Tables.
    "testBasicCreateTable": "test_a_created_table_loads_as_it_was_created",
    "testTableNameWithSlash": "test_names_that_are_refused",
    "testTableNameWithDot": "test_odd_names_round_trip",
    "testBasicCreateTableThatAlreadyExists": "test_a_table_is_created_once",
    "testCompleteCreateTable": "test_a_table_has_all_that_it_was_created_with",
    "testDefaultTableProperties": _DEFAULTS,
    "testOverrideTableProperties": _DEFAULTS,
    "testCreateTableWithDefaultColumnValue": "test_a_column_keeps_its_default",
    "testCreateTableWithVariantColumn": "test_columns_of_every_type_are_created_and_added",
    "testCreateV2TableWithVariantColumnFails": "test_a_type_of_version_3_needs_version_3",
    "testAddVariantColumnToExistingTable": "test_columns_of_every_type_are_created_and_added",
    "testLoadTable": "test_a_table_has_all_that_it_was_created_with",
    "testLoadTableWithNonExistingNamespace": "test_missing_name_raises_no_such_error",
    "testLoadMetadataTable": "test_a_metadata_table",
    "testLoadMissingTable": "test_missing_name_raises_no_such_error",
    "testLoadTableWithMissingMetadataFile": (
        "test_a_table_whose_metadata_file_is_gone_is_an_error"
    ),
    "testListTables": "test_tables_are_listed_in_their_own_namespace",
    "tableCreationWithoutNamespace": "test_missing_name_raises_no_such_error",
    "testRenameTable": "test_rename",
    "createTableInUniqueLocation": f"{_UNIQUE}::test_new_table_gets_its_own_folder",
    "dropAfterRenameDoesntCorruptTable": (
        f"{_UNIQUE}::test_dropping_a_table_of_a_renamed_tables_name_keeps_the_renamed_tables_files"
    ),
    "testRenameTableMissingSourceTable": "test_rename",
    "renameTableNamespaceMissing": "test_rename",
    "testRenameTableDestinationTableAlreadyExists": "test_rename",
    "testDropTable": "test_a_dropped_table_is_gone_and_its_name_free",
    "testDropTableWithPurge": "test_purging_deletes_files_and_dropping_does_not",
    "testDropTableWithoutPurge": "test_purging_deletes_files_and_dropping_does_not",
    "testDropMissingTable": "test_missing_name_raises_no_such_error",
    "testRegisterTable": "test_registered_table_continues_its_history",
    "testRegisterExistingTable": "test_register",
    # Changes of metadata.
    "testUpdateTableSchema": "test_changed_schema_spec_and_order_are_loaded",
    "testUUIDValidation": "test_a_change_of_a_table_that_was_recreated_is_refused",
    "testUpdateTableSchemaServerSideRetry": _CONCURRENT,
    "testUpdateTableSchemaConflict": "test_a_change_of_what_another_changed_is_refused",
    "testUpdateTableSchemaAssignmentConflict": "test_a_change_of_what_another_changed_is_refused",
    "testUpdateTableSchemaThenRevert": (
        "test_a_change_taken_back_is_the_schema_spec_and_order_there_was"
    ),
    "testUpdateTableSpec": "test_changed_schema_spec_and_order_are_loaded",
    "testUpdateTableSpecServerSideRetry": _CONCURRENT,
    "testUpdateTableSpecConflict": "test_a_change_of_what_another_changed_is_refused",
    "testUpdateTableAssignmentSpecConflict": "test_a_change_of_what_another_changed_is_refused",
    "testUpdateTableSpecThenRevert": (
        "test_a_change_taken_back_is_the_schema_spec_and_order_there_was"
    ),
    "testRemoveUnusedSpec": _EXPIRY,
    "testRemoveUnusedSchemas": _EXPIRY,
    "testUpdateTableSortOrder": "test_changed_schema_spec_and_order_are_loaded",
    "testUpdateTableSortOrderServerSideRetry": _CONCURRENT,
    "testUpdateTableOrderThenRevert": (
        "test_a_change_taken_back_is_the_schema_spec_and_order_there_was"
    ),
    "testMetadataFileLocationsRemovalAfterCommit": (
        "test_old_metadata_is_deleted_only_when_the_table_asks"
    ),
    # Rows and transactions.
    "testAppend": "test_concurrent_appends_are_all_kept",
    "testConcurrentAppendEmptyTable": "test_concurrent_appends_are_all_kept",
    "testConcurrentAppendNonEmptyTable": "test_concurrent_appends_are_all_kept",
    "testUpdateTransaction": "test_a_transaction_is_one_change",
    "testCreateTransaction": "test_a_table_with_rows_is_there_all_at_once",
    "createTableTransaction": "test_a_table_has_all_that_it_was_created_with",
    "testCompleteCreateTransaction": "test_a_table_with_rows_is_there_all_at_once",
    "testCompleteCreateTransactionV2": "test_a_table_with_rows_is_there_all_at_once",
    "testCompleteCreateTransactionMultipleSchemas": (
        "test_a_table_can_be_created_with_several_schemas_and_specs"
    ),
    "testConcurrentCreateTransaction": "test_concurrently_created_table_is_kept",
    "testDefaultTablePropertiesCreateTransaction": _DEFAULTS,
    "testOverrideTablePropertiesCreateTransaction": _DEFAULTS,
    # Replaced tables: CREATE OR REPLACE creates a table that does not exist, and replaces one that
    # does.
    "testCreateOrReplaceTransactionCreate": "test_a_table_with_rows_is_there_all_at_once",
    "testCompleteCreateOrReplaceTransactionCreate": "test_a_table_with_rows_is_there_all_at_once",
    "testCreateOrReplaceTransactionConcurrentCreate": ("test_concurrently_created_table_is_kept"),
    "testCreateOrReplaceReplaceTransactionReplace": (
        "test_a_replaced_table_keeps_its_uuid_and_history"
    ),
    "testCompleteCreateOrReplaceTransactionReplace": (
        "test_a_replaced_table_keeps_its_uuid_and_history"
    ),
    "testReplaceTransaction": "test_a_replaced_table_keeps_its_uuid_and_history",
    "testCompleteReplaceTransaction": "test_a_replaced_table_keeps_its_uuid_and_history",
    "replaceTableTransaction": "test_a_replaced_table_keeps_its_uuid_and_history",
    "testReplaceTableKeepsSnapshotLog": "test_a_replaced_table_keeps_its_uuid_and_history",
    "testReplaceTransactionRequiresTableExists": "test_missing_name_raises_no_such_error",
    "testConcurrentReplaceTransactions": "test_of_two_replacements_the_last_holds",
    "testConcurrentReplaceTransactionSchema": "test_of_two_replacements_the_last_holds",
    "testConcurrentReplaceTransactionSchema2": "test_of_two_replacements_the_last_holds",
    "testConcurrentReplaceTransactionSchemaConflict": "test_of_two_replacements_the_last_holds",
    "testConcurrentReplaceTransactionPartitionSpec": "test_of_two_replacements_the_last_holds",
    "testConcurrentReplaceTransactionPartitionSpec2": "test_of_two_replacements_the_last_holds",
    "testConcurrentReplaceTransactionPartitionSpecConflict": (
        "test_of_two_replacements_the_last_holds"
    ),
    "testConcurrentReplaceTransactionSortOrder": "Spark's REPLACE TABLE has no sort order",
    "testConcurrentReplaceTransactionSortOrderConflict": "Spark's REPLACE TABLE has no sort order",
    "testDefaultTablePropertiesReplaceTransaction": _AS_CREATED,
    "testOverrideTablePropertiesReplaceTransaction": _AS_CREATED,
    "testCatalogWithCustomMetricsReporter": "it names a Java class",
}

NEWER = {
    "testCreateTableWithVariantColumn",
    "testCreateV2TableWithVariantColumnFails",
    "testAddVariantColumnToExistingTable",
}
"""Tests that the release of the fixture does not have yet."""

_LIFE = "test_a_view_is_created_replaced_renamed_and_dropped"
_COMPLETE = "test_a_view_has_all_that_it_was_created_with"
_NAMES = "test_a_view_and_a_table_do_not_share_a_name"
_NO_TABLE = "test_no_table_takes_the_name_of_a_view"
_NO_VIEW = "test_no_view_takes_the_name_of_a_table"
_LISTED = "test_views_are_listed_in_their_own_namespace"
_REPLACED = "test_a_replaced_view_has_another_version_and_schema"
_DROPPED = "test_changes_of_a_view_that_another_dropped_are_refused"
_VIEW_DEFAULTS = "test_table_catalog.py::test_defaults_and_overrides_of_views"
_TWO_QUERIES = "test_two_queries_in_one_dialect_are_refused"
_VALUES = "the types of Python say what is missing: no definition lacks a query or schema"

VIEW_BEHAVIOURS = {
    # Creation.
    "basicCreateView": _LIFE,
    "completeCreateView": _COMPLETE,
    "createViewWithCustomMetadataLocation": _COMPLETE,
    "defaultViewProperties": _VIEW_DEFAULTS,
    "overrideViewProperties": _VIEW_DEFAULTS,
    "createViewErrorCases": _TWO_QUERIES,
    "createViewThatAlreadyExists": _NAMES,
    "createViewConflict": "test_of_creators_at_the_same_time_one_has_the_view",
    # Views and tables of one name.
    "loadViewWithNonExistingNamespace": _NAMES,
    "loadViewThatAlreadyExistsAsTable": (
        "test_loading_a_view_as_a_table_or_the_reverse_is_refused"
    ),
    "loadTableThatAlreadyExistsAsView": (
        "test_loading_a_view_as_a_table_or_the_reverse_is_refused"
    ),
    "createViewThatAlreadyExistsAsTable": _NAMES,
    "createTableThatAlreadyExistsAsView": _NAMES,
    "createTableViaTransactionThatAlreadyExistsAsView": _NO_TABLE,
    "replaceTableViaTransactionThatAlreadyExistsAsView": (
        "test_loading_a_view_as_a_table_or_the_reverse_is_refused"
    ),
    "createOrReplaceTableViaTransactionThatAlreadyExistsAsView": _NO_TABLE,
    "replaceViewThatAlreadyExistsAsTable": _NO_VIEW,
    "createOrReplaceViewThatAlreadyExistsAsTable": _NO_VIEW,
    "registerTableThatAlreadyExistsAsView": _NO_TABLE,
    "registerViewThatAlreadyExistsAsTable": ("test_a_dropped_view_is_registered_under_its_name"),
    # Names.
    "renameView": _LIFE,
    "renameViewUsingDifferentNamespace": "test_a_view_is_renamed_into_another_namespace",
    "renameViewNamespaceMissing": "test_a_view_is_renamed_into_another_namespace",
    "renameViewSourceMissing": _LIFE,
    "renameViewTargetAlreadyExistsAsView": "test_a_view_is_renamed_into_another_namespace",
    "renameViewTargetAlreadyExistsAsTable": _NAMES,
    "renameTableTargetAlreadyExistsAsView": _NAMES,
    "listViews": _LISTED,
    "listViewsInEmptyNamespace": _EMPTY_NAMESPACE,
    "listViewsAndTables": _LISTED,
    "dropNonEmptyNamespace": _LISTED,
    # Changes.
    "createOrReplaceView": "test_a_view_is_moved_by_its_replacement",
    "replaceViewErrorCases": _DROPPED,
    "replaceViewVersion": _REPLACED,
    "replaceViewVersionByUpdatingSQLForDialect": _LIFE,
    "replaceViewVersionErrorCases": _TWO_QUERIES,
    "updateViewProperties": "test_properties_and_the_location_change_without_a_new_version",
    "updateViewPropertiesErrorCases": _VALUES,
    "updateViewPropertiesConflict": _DROPPED,
    "replaceViewVersionConflict": _DROPPED,
    "replaceViewConflict": _DROPPED,
    "createAndReplaceViewWithLocation": "test_a_view_is_moved_by_its_replacement",
    "updateViewLocation": "test_properties_and_the_location_change_without_a_new_version",
    "updateViewLocationConflict": _DROPPED,
    "concurrentReplaceViewVersion": "test_replacements_at_the_same_time_are_all_versions",
    "testSqlForMultipleDialects": _COMPLETE,
    "testSqlForCaseInsensitive": _COMPLETE,
    "testSqlForInvalidArguments": _VALUES,
    # Registered views.
    "registerView": "test_a_dropped_view_is_registered_under_its_name",
    "registerExistingView": "test_a_view_is_registered",
}


def test_every_test_that_is_named_is_there() -> None:
    contracts = {*dir(ViewChangeContract), *dir(ChangeContract)}
    for place in (*BEHAVIOURS.values(), *VIEW_BEHAVIOURS.values()):
        file, _, test = place.rpartition("::")
        if file:
            assert f"def {test}(" in (Path(__file__).parent / file).read_text(encoding="utf-8")
        elif place.startswith("test_"):
            assert place in contracts, place


@pytest.mark.nightly
def test_every_test_of_java_is_listed() -> None:
    """Compare the lists with the methods of the classes in Iceberg's own jar of tests."""
    jar = rest_fixture.program() / f"iceberg-core-{rest_fixture.VERSION}-tests.jar"
    javap = find_java_home() / "bin" / "javap"
    classes = [
        "org.apache.iceberg.catalog.CatalogTests",
        "org.apache.iceberg.view.ViewCatalogTests",
    ]
    command = [str(javap), "-cp", str(jar), *classes]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    names = set(re.findall(r"^  public void (\w+)\(", done.stdout, re.MULTILINE))
    # the classes also have public helpers
    tests = {name for name in names if not name.startswith("assert")}
    assert tests == (BEHAVIOURS.keys() | VIEW_BEHAVIOURS.keys()) - NEWER
