"""Drops and renames in a Hive metastore without an answer: looked up, and never sent again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iceberg_pyspark import TableCatalog
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.hive.hive_catalog import HiveCatalog
from iceberg_pyspark.catalogs.hive.metastore_client import HiveClient, HiveUnreachableError
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    CommitStateUnknownError,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from tests.support.catalog_contract import create, new_name, set_property
from tests.support.hive_catalogs import (
    ALTER,
    NO_ANSWER,
    calling,
    locks_of,
    lost,
    metadata_files,
)
from tests.support.view_contract import first_view

pytestmark = pytest.mark.nightly


def named(identifier: TableIdentifier, name: str) -> TableIdentifier:
    return TableIdentifier(namespace=identifier.namespace, name=name)


def never_carried_out(_: Callable[[], Any]) -> Any:
    raise NO_ANSWER


def test_a_drop_without_an_answer_is_done_where_the_table_is_gone(
    hive_catalog: HiveCatalog, hive_events: TableIdentifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    calling(monkeypatch, "drop_table", lost)
    assert hive_catalog.drop_table(hive_events) is False
    assert not hive_catalog.table_exists(hive_events)
    create(hive_catalog, hive_events)
    assert hive_catalog.drop_table(hive_events) is True


def test_a_drop_without_an_answer_leaves_the_new_table_of_another_client_alone(
    hive_catalog: HiveCatalog, hive_events: TableIdentifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(make: Callable[[], Any]) -> Any:
        make()
        create(hive_catalog, hive_events, {"whose": "theirs"})
        raise NO_ANSWER

    calling(monkeypatch, "drop_table", overtaken)
    hive_catalog.drop_table(hive_events)
    assert hive_catalog.load_table(hive_events).metadata.properties["whose"] == "theirs"


def test_a_drop_that_may_still_come_is_unknown(
    hive_catalog: HiveCatalog, hive_events: TableIdentifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    calling(monkeypatch, "drop_table", never_carried_out)
    with pytest.raises(CommitStateUnknownError, match="drop of table"):
        hive_catalog.drop_table(hive_events)
    assert hive_catalog.table_exists(hive_events)

    def overtaken(_: Callable[[], Any]) -> Any:
        set_property(hive_catalog, hive_events, "later", "1")
        raise NO_ANSWER

    # The pointer has moved, but the table is the same.
    calling(monkeypatch, "drop_table", overtaken)
    with pytest.raises(CommitStateUnknownError, match="drop of table"):
        hive_catalog.drop_table(hive_events)
    assert hive_catalog.load_table(hive_events).metadata.properties["later"] == "1"


def test_a_drop_that_cannot_be_looked_up_is_unknown(
    hive_catalog: HiveCatalog, hive_events: TableIdentifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, broken = HiveClient.call, False

    def failing(self: HiveClient, name: str, /, **arguments: Any) -> Any:
        nonlocal broken
        if broken:
            raise HiveUnreachableError("no metastore can be reached")
        answer = call(self, name, **arguments)
        if name == "drop_table":
            broken = True
            raise NO_ANSWER
        return answer

    monkeypatch.setattr(HiveClient, "call", failing)
    with pytest.raises(CommitStateUnknownError):
        hive_catalog.drop_table(hive_events)


def test_a_purge_without_an_answer_deletes_no_file(
    hive_catalog: HiveCatalog,
    hive_events: TableIdentifier,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name is free, but the table has another name."""
    renamed = named(hive_events, "renamed")

    def overtaken(_: Callable[[], Any]) -> Any:
        hive_catalog.rename_table(hive_events, renamed)
        raise NO_ANSWER

    calling(monkeypatch, "drop_table", overtaken)
    with pytest.raises(CommitStateUnknownError, match="its files were kept"):
        TableCatalog(hive_catalog).drop_table(str(hive_events), purge=True)
    assert metadata_files(tmp_path) == 1
    assert hive_catalog.load_table(renamed).identifier == renamed


def test_nothing_happens_without_a_metastore(
    hive_catalog: HiveCatalog,
    hive_events: TableIdentifier,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreachable(_: Callable[[], Any]) -> Any:
        raise HiveUnreachableError("no metastore can be reached")

    calling(monkeypatch, "drop_table", unreachable)
    with pytest.raises(CatalogUnavailableError):
        hive_catalog.drop_table(hive_events)
    calling(monkeypatch, ALTER, unreachable)
    with pytest.raises(CatalogUnavailableError):
        hive_catalog.rename_table(hive_events, named(hive_events, "renamed"))
    calling(monkeypatch, ALTER, unreachable)
    with pytest.raises(CatalogUnavailableError):
        set_property(hive_catalog, hive_events, "a", "1")
    calling(monkeypatch, "create_table", unreachable)
    with pytest.raises(CatalogUnavailableError):
        create(hive_catalog, named(hive_events, "more"))
    # The commits are refused, so their files are removed.
    assert metadata_files(tmp_path) == 1


def test_a_rename_without_an_answer_is_done_where_the_table_has_the_name(
    each_catalog: HiveCatalog, hive_events: TableIdentifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = named(hive_events, "first"), named(hive_events, "second")
    calling(monkeypatch, ALTER, lost)
    each_catalog.rename_table(hive_events, first)
    assert each_catalog.list_tables(hive_events.namespace) == [first]

    def overtaken(make: Callable[[], Any]) -> Any:
        make()
        set_property(each_catalog, second, "later", "1")
        create(each_catalog, first)
        raise NO_ANSWER

    calling(monkeypatch, ALTER, overtaken)
    each_catalog.rename_table(first, second)
    assert each_catalog.load_table(second).metadata.properties["later"] == "1"
    assert each_catalog.list_tables(hive_events.namespace) == [first, second]
    assert locks_of(each_catalog, hive_events) == locks_of(each_catalog, first) == []


def test_a_rename_that_may_still_come_is_unknown(
    each_catalog: HiveCatalog, hive_events: TableIdentifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    calling(monkeypatch, ALTER, never_carried_out)
    with pytest.raises(CommitStateUnknownError, match="rename of table"):
        each_catalog.rename_table(hive_events, named(hive_events, "renamed"))
    assert each_catalog.list_tables(hive_events.namespace) == [hive_events]
    assert locks_of(each_catalog, hive_events) == []


def test_a_rename_to_a_name_that_was_taken_meanwhile_is_refused(
    hive_catalog: HiveCatalog, hive_events: TableIdentifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = named(hive_events, "taken")

    def overtaken(make: Callable[[], Any]) -> Any:
        create(hive_catalog, taken)
        return make()

    calling(monkeypatch, ALTER, overtaken)
    with pytest.raises(TableAlreadyExistsError):
        hive_catalog.rename_table(hive_events, taken)
    assert hive_catalog.list_tables(hive_events.namespace) == [hive_events, taken]


def test_views_without_an_answer(
    hive_catalog: HiveCatalog, hive_events: TableIdentifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    view, renamed = named(hive_events, "v"), named(hive_events, "w")
    hive_catalog.create_view(view, first_view(hive_catalog, view, "SELECT 1"))
    calling(monkeypatch, ALTER, never_carried_out)
    with pytest.raises(CommitStateUnknownError, match="rename of view"):
        hive_catalog.rename_view(view, renamed)
    calling(monkeypatch, ALTER, lost)
    hive_catalog.rename_view(view, renamed)
    assert hive_catalog.list_views(hive_events.namespace) == [renamed]
    calling(monkeypatch, "drop_table", never_carried_out)
    with pytest.raises(CommitStateUnknownError, match="drop of view"):
        hive_catalog.drop_view(renamed)
    calling(monkeypatch, "drop_table", lost)
    hive_catalog.drop_view(renamed)
    assert hive_catalog.list_views(hive_events.namespace) == []


def test_namespaces_without_an_answer(
    hive_catalog: HiveCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = (new_name("db"),)
    calling(monkeypatch, "create_database", never_carried_out)
    with pytest.raises(CommitStateUnknownError, match="creation of namespace"):
        hive_catalog.create_namespace(namespace)
    calling(monkeypatch, "create_database", lost)
    hive_catalog.create_namespace(namespace, {"owner": "me", "comment": "of the tests"})
    with pytest.raises(NamespaceAlreadyExistsError):
        hive_catalog.create_namespace(namespace)
    calling(monkeypatch, "alter_database", never_carried_out)
    with pytest.raises(CommitStateUnknownError, match="change of the properties"):
        hive_catalog.update_namespace_properties(namespace, removals=["owner"], updates={"a": "1"})
    calling(monkeypatch, "alter_database", lost)
    hive_catalog.update_namespace_properties(namespace, removals=["owner"], updates={"a": "1"})
    properties = hive_catalog.load_namespace_properties(namespace)
    assert (properties["a"], "owner" in properties) == ("1", False)
    calling(monkeypatch, "drop_database", never_carried_out)
    with pytest.raises(CommitStateUnknownError, match="drop of namespace"):
        hive_catalog.drop_namespace(namespace)
    calling(monkeypatch, "drop_database", lost)
    hive_catalog.drop_namespace(namespace)
    assert not hive_catalog.namespace_exists(namespace)


@pytest.mark.parametrize("error", [RuntimeError, MemoryError])
def test_an_unexpected_error_at_the_lock_refuses_the_commit(
    hive_catalog: HiveCatalog,
    hive_events: TableIdentifier,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
) -> None:
    def failing(make: Callable[[], Any]) -> Any:
        make()
        raise error("odd")

    for operation in ("lock", "get_table_req"):
        if operation == "get_table_req":
            # the commit reads the entry when it has the lock
            calling(monkeypatch, "lock", _then(monkeypatch, operation, failing))
        else:
            calling(monkeypatch, operation, failing)
        with pytest.raises(CatalogError, match=r"was not changed: .*odd"):
            set_property(hive_catalog, hive_events, "a", "1")
        assert metadata_files(tmp_path) == 1
        assert locks_of(hive_catalog, hive_events) == []
    assert set_property(hive_catalog, hive_events, "a", "1").metadata.properties["a"] == "1"


def _then(
    monkeypatch: pytest.MonkeyPatch, operation: str, instead: Callable[[Callable[[], Any]], Any]
) -> Callable[[Callable[[], Any]], Any]:
    def hook(make: Callable[[], Any]) -> Any:
        answer = make()
        calling(monkeypatch, operation, instead)
        return answer

    return hook


def test_drop_of_a_missing_table_raises_no_such_table_error(
    hive_catalog: HiveCatalog, hive_events: TableIdentifier
) -> None:
    with pytest.raises(NoSuchTableError):
        hive_catalog.drop_table(named(hive_events, "other"))
