"""Tests that every catalog must pass: subclass `CatalogContract` and give it a `catalog` fixture.

Every test uses new names, so the suite can also run against a shared catalog. The class flags state
which features a catalog cannot support; the catalog must refuse these features with
`UnsupportedFeatureError`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from iceberg_pyspark.catalogs.catalog import (
    Catalog,
    LoadedTable,
    LocatingCatalog,
    Namespace,
    TableIdentifier,
)
from iceberg_pyspark.changes.changes import (
    AssertCreate,
    AssertTableUUID,
    RemoveProperties,
    SetProperties,
    SetSnapshotRef,
)
from iceberg_pyspark.changes.new_table import new_table_metadata, new_table_updates
from iceberg_pyspark.changes.outcomes import Done
from iceberg_pyspark.errors import (
    CommitConflictError,
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import SnapshotRef
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import LongType, NestedField, StringType
from iceberg_pyspark.storage.open_storage import open_storage
from tests.support.parameters import cases

SCHEMA = Schema(
    fields=(
        NestedField(field_id=1, name="id", type=LongType(), required=True),
        NestedField(field_id=2, name="v", type=StringType()),
    )
)


def new_name(prefix: str) -> str:
    """Return a name that no other test uses."""
    return f"{prefix}_{uuid.uuid4().hex[:12]}"


def beside(identifier: TableIdentifier) -> TableIdentifier:
    """Return an unused name in the same namespace."""
    return TableIdentifier(namespace=identifier.namespace, name=new_name("beside"))


def first_metadata(location: str, properties: Mapping[str, str] | None = None) -> TableMetadata:
    """Return the metadata of a new table with two columns."""
    return new_table_metadata(
        SCHEMA,
        None,
        None,
        location,
        properties or {},
        table_uuid=str(uuid.uuid4()),
        now_ms=1_700_000_000_000,
    )


def create(
    catalog: Catalog, identifier: TableIdentifier, properties: Mapping[str, str] | None = None
) -> LoadedTable:
    """Create a table with two columns at its default location."""
    location = catalog.default_table_location(identifier)
    return catalog.create_table(identifier, first_metadata(location, properties))


def set_property(
    catalog: Catalog, identifier: TableIdentifier, key: str, value: str
) -> LoadedTable:
    """Commit one property, without any requirement."""
    return catalog.commit_table(identifier, (), (SetProperties({key: value}),)).result()


class CatalogContract:
    can_rename: ClassVar[bool] = True
    can_register: ClassVar[bool] = True
    has_namespace_properties: ClassVar[bool] = True
    skips_idle_commits: ClassVar[bool] = True
    tells_case_of_namespaces: ClassVar[bool] = True
    has_nested_namespaces: ClassVar[bool] = True
    has_odd_names: ClassVar[bool] = True
    marks_in_namespaces: ClassVar[str] = ""
    """Those of slash and dot that a level of a namespace may have."""
    marks_in_folders: ClassVar[str] = "."
    """Those of slash and dot that a namespace with tables may have: each level is a folder."""
    refused_names: ClassVar[tuple[str, ...]] = ()
    """Names that the catalog's store cannot represent."""

    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        raise NotImplementedError

    @pytest.fixture
    def namespace(self, catalog: Catalog) -> Namespace:
        namespace = (new_name("db"),)
        catalog.create_namespace(namespace)
        return namespace

    @pytest.fixture
    def identifier(self, namespace: Namespace) -> TableIdentifier:
        return TableIdentifier(namespace=namespace, name=new_name("events"))

    # namespaces

    def test_a_created_namespace_exists_and_is_listed(self, catalog: Catalog) -> None:
        namespace = (new_name("db"),)
        assert not catalog.namespace_exists(namespace)
        catalog.create_namespace(namespace)
        assert catalog.namespace_exists(namespace)
        assert namespace in catalog.list_namespaces()
        assert catalog.list_tables(namespace) == []
        with pytest.raises(NamespaceAlreadyExistsError, match=namespace[0]):
            catalog.create_namespace(namespace)

    def check_levels_are_refused(self, catalog: Catalog, top: str) -> None:
        for create_parent in (False, True):
            if create_parent:
                catalog.create_namespace((top,))
            with pytest.raises(UnsupportedFeatureError):
                catalog.create_namespace((top, "a"))
            assert not catalog.namespace_exists((top, "a"))
        assert catalog.list_namespaces((top,)) == []

    def test_nested_namespaces_are_listed_level_by_level(self, catalog: Catalog) -> None:
        top = new_name("db")
        if not self.has_nested_namespaces:
            self.check_levels_are_refused(catalog, top)
            return
        catalog.create_namespace((top,))
        catalog.create_namespace((top, "a"))
        catalog.create_namespace((top, "a", "b"))
        catalog.create_namespace((top, "c"))
        assert catalog.list_namespaces((top,)) == [(top, "a"), (top, "c")]
        assert catalog.list_namespaces((top, "a")) == [(top, "a", "b")]
        assert catalog.list_namespaces((top, "a", "b")) == []
        assert (top,) in catalog.list_namespaces()
        assert (top, "a") not in catalog.list_namespaces()

    def test_a_namespace_whose_parent_was_never_created_brings_it_along(
        self, catalog: Catalog
    ) -> None:
        top = new_name("db")
        if not self.has_nested_namespaces:
            self.check_levels_are_refused(catalog, top)
            return
        catalog.create_namespace((top, "a"))
        assert catalog.namespace_exists((top,))
        assert catalog.list_namespaces((top,)) == [(top, "a")]

    def test_similar_names_are_different_namespaces(self, catalog: Catalog) -> None:
        # The catalog must not treat % and _ as wildcards of LIKE, nor ignore the case of names.
        top = new_name("db")
        if not self.has_nested_namespaces:
            self.check_levels_are_refused(catalog, top)
            return
        for name in (f"{top}_x", f"{top}%x", f"{top}!x", f"{top}X"):
            catalog.create_namespace((name, "inner"))
        others = [f"{top}ax", f"{top}", f"{top}_", f"{top}%", f"{top}!!x"]
        if self.tells_case_of_namespaces:
            others.append(f"{top}_X")
        for name in others:
            assert not catalog.namespace_exists((name,)), name
        assert catalog.list_namespaces((f"{top}_x",)) == [(f"{top}_x", "inner")]

    def test_dropping_a_namespace(self, catalog: Catalog, namespace: Namespace) -> None:
        catalog.drop_namespace(namespace)
        assert not catalog.namespace_exists(namespace)
        with pytest.raises(NoSuchNamespaceError):
            catalog.drop_namespace(namespace)

    def test_a_namespace_with_a_table_or_a_child_is_not_dropped(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        create(catalog, identifier)
        with pytest.raises(NamespaceNotEmptyError):
            catalog.drop_namespace(identifier.namespace)
        parent = (new_name("db"),)
        if self.has_nested_namespaces:
            catalog.create_namespace((*parent, "child"))
            with pytest.raises(NamespaceNotEmptyError):
                catalog.drop_namespace(parent)
        assert catalog.table_exists(identifier)

    def test_namespace_properties(self, catalog: Catalog) -> None:
        namespace = (new_name("db"),)
        if not self.has_namespace_properties:
            with pytest.raises(UnsupportedFeatureError):
                catalog.create_namespace(namespace, {"owner": "me"})
            catalog.create_namespace(namespace)
            with pytest.raises(UnsupportedFeatureError):
                catalog.update_namespace_properties(namespace, removals=(), updates={"a": "b"})
            return
        catalog.create_namespace(namespace, {"owner": "me", "note": "'; DROP TABLE x; --"})
        catalog.update_namespace_properties(
            namespace, removals=["owner", "absent"], updates={"note": "%_", "new": ""}
        )
        properties = catalog.load_namespace_properties(namespace)
        # A server may add a location to the properties.
        properties.pop("location", None)
        assert properties == {"note": "%_", "new": ""}

    def test_missing_name_raises_no_such_error(self, catalog: Catalog) -> None:
        missing = (new_name("nope"),)
        table = TableIdentifier(namespace=missing, name="t")
        assert not catalog.namespace_exists(missing)
        assert not catalog.table_exists(table)
        for ask in (catalog.list_tables, catalog.list_namespaces, catalog.drop_namespace):
            with pytest.raises(NoSuchNamespaceError):
                ask(missing)
        with pytest.raises(NoSuchNamespaceError):
            catalog.load_namespace_properties(missing)
        with pytest.raises(NoSuchTableError):
            catalog.load_table(table)
        with pytest.raises(NoSuchTableError):
            catalog.drop_table(table)
        with pytest.raises(NoSuchTableError):
            set_property(catalog, table, "a", "b")
        if not self.has_namespace_properties:
            # Namespaces are folders, which a table brings along.
            create(catalog, table)
            assert catalog.namespace_exists(missing)
            return
        with pytest.raises(NoSuchNamespaceError):
            create(catalog, table)

    # tables

    def test_a_created_table_loads_as_it_was_created(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        location = catalog.default_table_location(identifier)
        created = create(catalog, identifier, {"format-version": "3", "owner": "me"})
        assert created.identifier == identifier
        loaded = catalog.load_table(identifier)
        assert loaded == created
        assert loaded.metadata.format_version == 3
        assert loaded.metadata.properties["owner"] == "me"
        assert loaded.metadata.location == location
        assert catalog.table_exists(identifier)
        assert catalog.list_tables(identifier.namespace) == [identifier]

    @pytest.mark.parametrize("version", ["1", "2", "3"])
    def test_every_format_version_commits(
        self, catalog: Catalog, identifier: TableIdentifier, version: str
    ) -> None:
        create(catalog, identifier, {"format-version": version})
        set_property(catalog, identifier, "a", "1")
        assert catalog.load_table(identifier).metadata.format_version == int(version)

    def test_a_table_is_created_once(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        created = create(catalog, identifier)
        with pytest.raises(TableAlreadyExistsError, match=identifier.name):
            create(catalog, identifier)
        assert catalog.load_table(identifier) == created

    def test_a_table_can_be_created_by_a_commit(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        metadata = first_metadata(catalog.default_table_location(identifier))
        updates = new_table_updates(metadata)
        done = catalog.commit_table(identifier, (AssertCreate(),), updates).result()
        assert done.metadata.table_uuid == metadata.table_uuid
        assert catalog.load_table(identifier) == done
        with pytest.raises(CommitConflictError):
            catalog.commit_table(identifier, (AssertCreate(),), updates).result()

    def test_a_commit_moves_the_metadata_and_logs_the_old_file(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        created = create(catalog, identifier)
        done = set_property(catalog, identifier, "a", "1")
        assert done.metadata.properties["a"] == "1"
        assert done.metadata_location != created.metadata_location
        assert [e.metadata_file for e in done.metadata.metadata_log] == [created.metadata_location]
        assert catalog.load_table(identifier) == done

    def test_a_commit_that_changes_nothing_writes_nothing(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        created = create(catalog, identifier)
        assert catalog.commit_table(identifier, (), ()).result() == created
        if not self.skips_idle_commits:
            return
        again = catalog.commit_table(identifier, (), (RemoveProperties(("absent",)),)).result()
        assert again == created

    def test_a_failed_requirement_changes_nothing(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        created = create(catalog, identifier)
        wrong = (AssertTableUUID(str(uuid.uuid4())),)
        with pytest.raises(CommitConflictError):
            catalog.commit_table(identifier, wrong, (SetProperties({"a": "1"}),)).result()
        assert catalog.load_table(identifier) == created

    def test_a_commit_on_an_older_table_loses_no_other_commit(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        """Even with a stale `base`, a commit must detect the newer table in its swap."""
        old = create(catalog, identifier)
        set_property(catalog, identifier, "theirs", "1")
        outcome = catalog.commit_table(identifier, (), (SetProperties({"ours": "1"}),), base=old)
        assert isinstance(outcome, Done) or isinstance(outcome.error, CommitConflictError)
        expected = {"theirs", "ours"} if isinstance(outcome, Done) else {"theirs"}
        now = catalog.load_table(identifier)
        assert {"theirs", "ours"} & now.metadata.properties.keys() == expected
        done = catalog.commit_table(identifier, (), (SetProperties({"ours": "2"}),), base=now)
        assert done.result().metadata.properties["theirs"] == "1"

    def test_an_update_that_cannot_be_applied_changes_nothing(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        created = create(catalog, identifier)
        with pytest.raises(InvalidRequestError):
            catalog.commit_table(
                identifier,
                (),
                (SetProperties({"a": "1"}), SetSnapshotRef("main", SnapshotRef(snapshot_id=1))),
            ).result()
        assert catalog.load_table(identifier) == created

    def test_a_table_recreated_under_a_writer_refuses_its_commit(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        old = create(catalog, identifier)
        catalog.drop_table(identifier)
        new = create(catalog, identifier)
        required = (AssertTableUUID(old.metadata.table_uuid or ""),)
        with pytest.raises(CommitConflictError):
            catalog.commit_table(identifier, required, (SetProperties({"a": "1"}),)).result()
        assert catalog.load_table(identifier) == new

    def test_a_dropped_table_is_gone_and_its_name_free(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        create(catalog, identifier)
        set_property(catalog, identifier, "a", "1")
        catalog.drop_table(identifier)
        assert not catalog.table_exists(identifier)
        assert catalog.list_tables(identifier.namespace) == []
        with pytest.raises(NoSuchTableError):
            catalog.load_table(identifier)
        again = create(catalog, identifier)
        assert "a" not in again.metadata.properties
        assert catalog.load_table(identifier) == again

    def test_the_other_tables_in_a_folder_are_known(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        if not isinstance(catalog, LocatingCatalog):
            pytest.skip("the catalog has no pointers that it could tell")
        location = catalog.default_table_location(identifier)
        table = catalog.create_table(identifier, first_metadata(location))
        copy = TableIdentifier(namespace=identifier.namespace, name=new_name("copy"))
        folder = f"{location}/metadata"
        assert catalog.other_pointers(identifier, folder) == []
        assert catalog.other_pointers(copy, folder) == [table.metadata_location]
        catalog.register_table(copy, table.metadata_location)
        assert catalog.other_pointers(identifier, folder) == [table.metadata_location]
        assert catalog.other_pointers(identifier, location) == []
        assert catalog.other_pointers(identifier, f"{folder}/x") == []

    def test_old_metadata_is_deleted_only_when_the_table_asks(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        first = create(catalog, identifier, {"write.metadata.previous-versions-max": "2"})
        for i in range(4):
            set_property(catalog, identifier, "a", str(i))
        assert _is_file(first, first.metadata_location)
        set_property(catalog, identifier, "write.metadata.delete-after-commit.enabled", "true")
        before = catalog.load_table(identifier)
        oldest = before.metadata.metadata_log[0].metadata_file
        last = set_property(catalog, identifier, "a", "last")
        assert not _is_file(last, oldest)
        assert all(_is_file(last, e.metadata_file) for e in last.metadata.metadata_log)
        assert len(last.metadata.metadata_log) == 2

    @pytest.mark.parametrize("value", ["1", "yes", "TRUE ", ""])
    def test_invalid_boolean_property_counts_as_false(
        self, catalog: Catalog, identifier: TableIdentifier, value: str
    ) -> None:
        # Java uses Boolean.parseBoolean; such a value once destroyed the table after the swap.
        create(catalog, identifier, {"write.metadata.previous-versions-max": "1"})
        set_property(catalog, identifier, "write.metadata.delete-after-commit.enabled", value)
        for n in range(4):
            done = set_property(catalog, identifier, "n", str(n))
        assert catalog.load_table(identifier) == done
        assert done.metadata.properties["n"] == "3"

    def test_gzipped_metadata(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        create(catalog, identifier, {"write.metadata.compression-codec": "gzip"})
        done = set_property(catalog, identifier, "a", "1")
        assert done.metadata_location.endswith(".gz.metadata.json")
        storage = open_storage(done.metadata_location, done.config)
        assert storage.read_bytes(done.metadata_location)[:2] == b"\x1f\x8b"
        assert catalog.load_table(identifier) == done

    # rename and register

    def test_rename(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        created = create(catalog, identifier)
        other = (new_name("db"),)
        catalog.create_namespace(other)
        target = TableIdentifier(namespace=other, name="renamed")
        if not self.can_rename:
            with pytest.raises(UnsupportedFeatureError):
                catalog.rename_table(identifier, target)
            assert catalog.load_table(identifier) == created
            return
        catalog.rename_table(identifier, target)
        assert not catalog.table_exists(identifier)
        assert catalog.load_table(target).metadata == created.metadata
        with pytest.raises(NoSuchTableError):
            catalog.rename_table(identifier, target)
        nowhere = TableIdentifier(namespace=(new_name("nope"),), name="t")
        with pytest.raises(NoSuchNamespaceError):
            catalog.rename_table(target, nowhere)
        create(catalog, identifier)
        with pytest.raises(TableAlreadyExistsError):
            catalog.rename_table(identifier, target)

    def test_register(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        created = create(catalog, identifier)
        target = TableIdentifier(namespace=identifier.namespace, name=new_name("adopted"))
        if not self.can_register:
            for dry_run in (True, False):
                with pytest.raises(UnsupportedFeatureError):
                    catalog.register_table(target, created.metadata_location, dry_run=dry_run)
            return
        for dry_run in (True, False):
            with pytest.raises(TableAlreadyExistsError):
                catalog.register_table(identifier, created.metadata_location, dry_run=dry_run)
        planned = catalog.register_table(target, created.metadata_location, dry_run=True)
        assert planned.metadata == created.metadata
        assert not catalog.table_exists(target)
        catalog.drop_table(identifier)
        registered = catalog.register_table(target, created.metadata_location)
        assert registered.metadata == created.metadata
        assert catalog.load_table(target) == registered
        assert set_property(catalog, target, "a", "1").metadata.properties["a"] == "1"

    # names

    @cases(
        "name",
        fast=[
            *(
                "%",
                "_",
                "a b",
                "a*b",
                "a'b",
                'a"b',
                "'; DROP TABLE iceberg_tables; --",
                "häß",
                "日本",
            ),
            *("a%2Fb", "A", "a:b", "a#b", "a?b", "metadata", "a..b"),
        ],
        nightly=["a+b", "-", "data", "~"],
    )
    def test_odd_names_round_trip(self, catalog: Catalog, namespace: Namespace, name: str) -> None:
        if not self.has_odd_names:
            self.check_an_odd_name_is_refused(catalog, namespace, name)
            return
        odd_namespace = (*namespace, name.replace(".", "!"))
        if name in self.refused_names:
            with pytest.raises(StorageError, match="not supported in"):
                catalog.create_namespace(odd_namespace)
            return
        catalog.create_namespace(odd_namespace)
        assert catalog.list_namespaces(namespace) == [odd_namespace]
        identifier = TableIdentifier(namespace=odd_namespace, name=name)
        create(catalog, identifier)
        set_property(catalog, identifier, "a", name)
        assert catalog.list_tables(odd_namespace) == [identifier]
        assert catalog.list_tables(namespace) == []
        assert catalog.load_table(identifier).metadata.properties["a"] == name

    def check_an_odd_name_is_refused(
        self, catalog: Catalog, namespace: Namespace, name: str
    ) -> None:
        if name in ("_", "metadata", "data"):
            create(catalog, TableIdentifier(namespace=namespace, name=name))
            return
        with pytest.raises(InvalidRequestError):
            catalog.create_namespace((name,))
        with pytest.raises(InvalidRequestError):
            create(catalog, TableIdentifier(namespace=namespace, name=name))
        assert not catalog.table_exists(TableIdentifier(namespace=namespace, name=name))
        assert catalog.list_tables(namespace) == []

    def test_names_that_differ_do_not_meet(self, catalog: Catalog, namespace: Namespace) -> None:
        if not self.has_odd_names:
            create(catalog, TableIdentifier(namespace=namespace, name="t"))
            for name in ("T", "t ", "\N{FULLWIDTH LATIN SMALL LETTER T}"):
                other = TableIdentifier(namespace=namespace, name=name)
                assert not catalog.table_exists(other)
                with pytest.raises(NoSuchTableError):
                    catalog.drop_table(other)
                with pytest.raises(InvalidRequestError):
                    create(catalog, other)
            assert [i.name for i in catalog.list_tables(namespace)] == ["t"]
            return
        names = ["t", "T", "t ", "t%20", "t_", "t%", "tx", "\N{FULLWIDTH LATIN SMALL LETTER T}"]
        names = [name for name in names if name not in self.refused_names]
        for name in names:
            create(catalog, TableIdentifier(namespace=namespace, name=name), {"is": name})
        for name in names:
            loaded = catalog.load_table(TableIdentifier(namespace=namespace, name=name))
            assert loaded.metadata.properties["is"] == name
        catalog.drop_table(TableIdentifier(namespace=namespace, name="t_"))
        assert {i.name for i in catalog.list_tables(namespace)} == {*names} - {"t_"}

    @pytest.mark.parametrize(
        "name", ["", ".", "..", "a/b", "../up", "a\\b", "a\0b", "a\nb", "a\tb", "\x7f", "x" * 256]
    )
    def test_names_that_are_refused(
        self, catalog: Catalog, namespace: Namespace, name: str
    ) -> None:
        with pytest.raises(InvalidRequestError):
            create(catalog, TableIdentifier(namespace=namespace, name=name))
        assert catalog.list_tables(namespace) == []

    @pytest.mark.parametrize("name", ["", "..", "a\0b", "a\nb"])
    def test_namespaces_that_are_refused(self, catalog: Catalog, name: str) -> None:
        with pytest.raises(InvalidRequestError):
            catalog.create_namespace((name,))

    @pytest.mark.parametrize("mark", ["/", "."])
    def test_a_namespace_with_a_slash_or_dot_is_refused_or_itself(
        self, catalog: Catalog, mark: str
    ) -> None:
        top = new_name("db")
        namespace = (f"{top}{mark}x",)
        if mark not in self.marks_in_namespaces:
            with pytest.raises(InvalidRequestError):
                catalog.create_namespace(namespace)
        else:
            catalog.create_namespace(namespace)
            assert catalog.namespace_exists(namespace)
            table = TableIdentifier(namespace=namespace, name="t")
            if mark in self.marks_in_folders:
                create(catalog, table)
                assert catalog.list_tables(namespace) == [table]
            else:
                with pytest.raises(InvalidRequestError):
                    create(catalog, table)
        assert (namespace in catalog.list_namespaces()) is (mark in self.marks_in_namespaces)
        assert not catalog.namespace_exists((top,))


def _is_file(table: LoadedTable, location: str) -> bool:
    return open_storage(location, table.config).exists(location)
