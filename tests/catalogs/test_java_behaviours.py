"""The tests of Java's catalogs, `org.apache.iceberg.catalog.CatalogTests`, and our counterparts.

Each value is the name of our test, in the contracts or in a file, or the reason why there is none.
The functions check that the named tests exist, and that all tests of Java are listed.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from jobs.find_java import find_java_home
from tests.services import rest_fixture
from tests.support.catalog_contract import CatalogContract
from tests.support.change_contract import ChangeContract

_EMPTY_NAMESPACE = "no catalog here takes an empty name as a namespace"
_EXPIRY = "test_what_expired_is_gone_with_what_only_it_used"
_DEFAULTS = "test_table_catalog.py::test_defaults_and_overrides_of_the_catalog"
_AS_CREATED = "one function, `new_table_properties`, serves creations and replacements"

_UNIQUE = "test_unique_locations.py"

BEHAVIOURS = {
    # Namespaces.
    "testCreateNamespace": "test_a_created_namespace_exists_and_is_listed",
    "testCreateExistingNamespace": "test_a_created_namespace_exists_and_is_listed",
    "testCreateNamespaceWithProperties": "test_namespace_properties",
    "testLoadNamespaceMetadata": "test_what_is_not_there_is_a_typed_error",
    "testSetNamespaceProperties": "test_namespace_properties",
    "testUpdateNamespaceProperties": "test_namespace_properties",
    "testUpdateAndSetNamespaceProperties": "test_namespace_properties",
    "testSetNamespacePropertiesNamespaceDoesNotExist": "test_what_is_not_there_is_a_typed_error",
    "testRemoveNamespaceProperties": "test_namespace_properties",
    "testRemoveNamespacePropertiesNamespaceDoesNotExist": "test_what_is_not_there_is_a_typed_error",
    "testDropNamespace": "test_dropping_a_namespace",
    "testDropNonexistentNamespace": "test_dropping_a_namespace",
    "testDropNonEmptyNamespace": "test_a_namespace_with_a_table_or_a_child_is_not_dropped",
    "testDropNamespaceWithNestedNamespace": (
        "test_a_namespace_with_a_table_or_a_child_is_not_dropped"
    ),
    "testListNamespaces": "test_a_created_namespace_exists_and_is_listed",
    "testListNestedNamespaces": "test_nested_namespaces_are_listed_level_by_level",
    "testListNonExistingNamespace": "test_what_is_not_there_is_a_typed_error",
    "testNamespaceWithSlash": "test_namespaces_that_are_refused",
    "testNamespaceWithDot": "test_namespaces_that_are_refused",
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
    "testLoadTable": "test_a_table_has_all_that_it_was_created_with",
    "testLoadTableWithNonExistingNamespace": "test_what_is_not_there_is_a_typed_error",
    "testLoadMetadataTable": "test_a_metadata_table",
    "testLoadMissingTable": "test_what_is_not_there_is_a_typed_error",
    "testLoadTableWithMissingMetadataFile": (
        "test_a_table_whose_metadata_file_is_gone_is_an_error"
    ),
    "testListTables": "test_tables_are_listed_in_their_own_namespace",
    "tableCreationWithoutNamespace": "test_what_is_not_there_is_a_typed_error",
    "testRenameTable": "test_rename",
    "createTableInUniqueLocation": f"{_UNIQUE}::test_a_new_table_gets_a_folder_of_its_own",
    "dropAfterRenameDoesntCorruptTable": (
        f"{_UNIQUE}::test_dropping_a_table_of_a_renamed_tables_name_keeps_the_renamed_tables_files"
    ),
    "testRenameTableMissingSourceTable": "test_rename",
    "renameTableNamespaceMissing": "test_rename",
    "testRenameTableDestinationTableAlreadyExists": "test_rename",
    "testDropTable": "test_a_dropped_table_is_gone_and_its_name_free",
    "testDropTableWithPurge": "test_purging_deletes_files_and_dropping_does_not",
    "testDropTableWithoutPurge": "test_purging_deletes_files_and_dropping_does_not",
    "testDropMissingTable": "test_what_is_not_there_is_a_typed_error",
    "testRegisterTable": "test_a_registered_table_goes_on_where_it_was",
    "testRegisterExistingTable": "test_register",
    # Changes of metadata.
    "testUpdateTableSchema": "test_changed_schema_spec_and_order_are_loaded",
    "testUUIDValidation": "test_a_change_of_a_table_that_was_recreated_is_refused",
    "testUpdateTableSchemaServerSideRetry": "test_changes_of_different_things_all_hold",
    "testUpdateTableSchemaConflict": "test_a_change_of_what_another_changed_is_refused",
    "testUpdateTableSchemaAssignmentConflict": "test_a_change_of_what_another_changed_is_refused",
    "testUpdateTableSchemaThenRevert": (
        "test_a_change_taken_back_is_the_schema_spec_and_order_there_was"
    ),
    "testUpdateTableSpec": "test_changed_schema_spec_and_order_are_loaded",
    "testUpdateTableSpecServerSideRetry": "test_changes_of_different_things_all_hold",
    "testUpdateTableSpecConflict": "test_a_change_of_what_another_changed_is_refused",
    "testUpdateTableAssignmentSpecConflict": "test_a_change_of_what_another_changed_is_refused",
    "testUpdateTableSpecThenRevert": (
        "test_a_change_taken_back_is_the_schema_spec_and_order_there_was"
    ),
    "testRemoveUnusedSpec": _EXPIRY,
    "testRemoveUnusedSchemas": _EXPIRY,
    "testUpdateTableSortOrder": "test_changed_schema_spec_and_order_are_loaded",
    "testUpdateTableSortOrderServerSideRetry": "test_changes_of_different_things_all_hold",
    "testUpdateTableOrderThenRevert": (
        "test_a_change_taken_back_is_the_schema_spec_and_order_there_was"
    ),
    "testMetadataFileLocationsRemovalAfterCommit": (
        "test_old_metadata_is_deleted_only_when_the_table_asks"
    ),
    # Rows and transactions.
    "testAppend": "test_appends_at_the_same_time_all_hold",
    "testConcurrentAppendEmptyTable": "test_appends_at_the_same_time_all_hold",
    "testConcurrentAppendNonEmptyTable": "test_appends_at_the_same_time_all_hold",
    "testUpdateTransaction": "test_a_transaction_is_one_change",
    "testCreateTransaction": "test_a_table_with_rows_is_there_all_at_once",
    "createTableTransaction": "test_a_table_has_all_that_it_was_created_with",
    "testCompleteCreateTransaction": "test_a_table_with_rows_is_there_all_at_once",
    "testCompleteCreateTransactionV2": "test_a_table_with_rows_is_there_all_at_once",
    "testCompleteCreateTransactionMultipleSchemas": "CTAS has one schema: no changes can follow it",
    "testConcurrentCreateTransaction": "test_a_table_that_another_created_meanwhile_stays",
    "testDefaultTablePropertiesCreateTransaction": _DEFAULTS,
    "testOverrideTablePropertiesCreateTransaction": _DEFAULTS,
    # Replaced tables: CREATE OR REPLACE creates a table that does not exist, and replaces one that
    # does.
    "testCreateOrReplaceTransactionCreate": "test_a_table_with_rows_is_there_all_at_once",
    "testCompleteCreateOrReplaceTransactionCreate": "test_a_table_with_rows_is_there_all_at_once",
    "testCreateOrReplaceTransactionConcurrentCreate": (
        "test_a_table_that_another_created_meanwhile_stays"
    ),
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
    "testReplaceTransactionRequiresTableExists": "test_what_is_not_there_is_a_typed_error",
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


def test_every_test_that_is_named_is_there() -> None:
    contracts = {*dir(CatalogContract), *dir(ChangeContract)}
    for place in BEHAVIOURS.values():
        file, _, test = place.rpartition("::")
        if file:
            assert f"def {test}(" in (Path(__file__).parent / file).read_text(encoding="utf-8")
        elif place.startswith("test_"):
            assert place in contracts, place


def test_every_test_of_java_is_listed() -> None:
    """Compare the list with the methods of the class in Iceberg's own jar of tests."""
    jar = rest_fixture.program() / f"iceberg-core-{rest_fixture.VERSION}-tests.jar"
    javap = find_java_home() / "bin" / "javap"
    command = [str(javap), "-cp", str(jar), "org.apache.iceberg.catalog.CatalogTests"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    names = set(re.findall(r"^  public void (\w+)\(", done.stdout, re.MULTILINE))
    # the class also has public helpers
    assert {name for name in names if not name.startswith("assert")} == BEHAVIOURS.keys()
