"""The Glue catalog: its entries in Glue, versions, lost answers, secrets."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.glue.glue_catalog import GlueCatalog
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.errors import (
    CatalogError,
    CommitConflictError,
    CommitStateUnknownError,
    IcebergError,
    NamespaceNotEmptyError,
    NoSuchTableError,
    NotAuthorizedError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from tests.services.glue import SECRET, Glue, GlueError
from tests.support.catalog_contract import create, set_property

EVENTS = TableIdentifier(namespace=("db",), name="events")


@pytest.fixture
def catalog(glue: Glue, tmp_path: Path) -> GlueCatalog:
    catalog = open_catalog(glue, tmp_path)
    catalog.create_namespace(("db",))
    return catalog


def open_catalog(glue: Glue, folder: Path, **properties: str) -> GlueCatalog:
    settings = {"type": "glue", "glue.max-retries": "0", **glue.properties(folder), **properties}
    catalog = load_catalog("lake", **settings)
    assert isinstance(catalog, GlueCatalog)
    return catalog


def test_glue_table_has_the_fields_that_other_tools_read(
    catalog: GlueCatalog, glue: Glue, tmp_path: Path
) -> None:
    first = create(catalog, EVENTS, {"comment": "all events"}).metadata_location
    second = set_property(catalog, EVENTS, "a", "1").metadata_location
    table = glue.tables["db", "events"]
    assert table["TableType"] == "EXTERNAL_TABLE"
    assert table["Description"] == "all events"
    assert table["Parameters"] == {
        "table_type": "ICEBERG",
        "metadata_location": second,
        "previous_metadata_location": first,
    }
    assert table["StorageDescriptor"]["Location"] == f"{tmp_path}/db.db/events"
    columns = [(c["Name"], c["Type"]) for c in table["StorageDescriptor"]["Columns"]]
    assert columns == [("id", "bigint"), ("v", "string")]
    operation, request = glue.requests[-1]
    assert operation == "UpdateTable"
    assert request["SkipArchive"] is True
    assert request["VersionId"] == "0"


def test_archives_are_kept_on_request(glue: Glue, catalog: GlueCatalog, tmp_path: Path) -> None:
    create(catalog, EVENTS)
    keeping = open_catalog(glue, tmp_path, **{"glue.skip-archive": "false"})
    set_property(keeping, EVENTS, "a", "1")
    assert glue.requests[-1][1]["SkipArchive"] is False


def test_the_catalog_of_another_account_is_named_in_each_request(
    glue: Glue, tmp_path: Path
) -> None:
    catalog = open_catalog(glue, tmp_path, **{"glue.id": "123456789012"})
    catalog.create_namespace(("db",))
    create(catalog, EVENTS)
    set_property(catalog, EVENTS, "a", "1")
    catalog.drop_table(EVENTS)
    assert len(glue.requests) > 4
    assert {request["CatalogId"] for _, request in glue.requests} == {"123456789012"}


def test_the_keys_of_a_profile_are_used(
    glue: Glue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "credentials"
    keys.write_text("[me]\naws_access_key_id = AKIDOFME\naws_secret_access_key = s\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(keys))
    settings = {"glue.endpoint": glue.endpoint, "glue.region": "eu-west-1"}
    catalog = GlueCatalog("lake", {**settings, "glue.profile-name": "me"})
    assert catalog.list_namespaces() == []
    assert glue.access_keys == {"AKIDOFME"}


def test_fields_of_other_tools_are_kept(catalog: GlueCatalog, glue: Glue) -> None:
    create(catalog, EVENTS)
    glue.tables["db", "events"]["Parameters"]["classification"] = "events"
    glue.tables["db", "events"]["Owner"] = "them"
    set_property(catalog, EVENTS, "a", "1")
    table = glue.tables["db", "events"]
    assert (table["Parameters"]["classification"], table["Owner"]) == ("events", "them")


def test_a_commit_that_another_came_before_is_refused_by_its_version(
    catalog: GlueCatalog, glue: Glue, tmp_path: Path
) -> None:
    create(catalog, EVENTS)
    other = open_catalog(glue, tmp_path)

    def overtake(operation: str) -> None:
        if operation == "UpdateTable":
            glue.before = lambda operation: None
            set_property(other, EVENTS, "winner", "1")

    glue.before = overtake
    with pytest.raises(CommitConflictError):
        set_property(catalog, EVENTS, "loser", "1")
    properties = catalog.load_table(EVENTS).metadata.properties
    assert (properties.get("winner"), "loser" in properties) == ("1", False)
    files = list(tmp_path.rglob("*.metadata.json"))
    assert len(files) == 2


def test_a_service_without_versions_is_refused(catalog: GlueCatalog, glue: Glue) -> None:
    created = create(catalog, EVENTS)
    del glue.tables["db", "events"]["VersionId"]
    with pytest.raises(CatalogError, match="no version"):
        set_property(catalog, EVENTS, "a", "1")
    assert catalog.load_table(EVENTS) == created


@pytest.mark.parametrize(
    "error",
    [
        GlueError("InternalServiceException", "try again", 500),
        GlueError("OperationTimeoutException", "timed out"),
    ],
)
def test_a_commit_whose_answer_is_lost_is_looked_up(
    catalog: GlueCatalog, glue: Glue, error: GlueError, tmp_path: Path
) -> None:
    glue.fail("after", "CreateTable", error, times=1)
    created = create(catalog, EVENTS)
    assert catalog.load_table(EVENTS) == created
    glue.fail("after", "UpdateTable", error, times=1)
    done = set_property(catalog, EVENTS, "a", "1")
    assert catalog.load_table(EVENTS) == done
    glue.fail("before", "UpdateTable", error, times=1)
    with pytest.raises(CommitStateUnknownError, match="delete no file"):
        set_property(catalog, EVENTS, "b", "1")
    assert len(list(tmp_path.rglob("*.metadata.json"))) == 3


def test_a_request_sent_again_does_not_conflict_with_itself(
    catalog: GlueCatalog, glue: Glue, tmp_path: Path
) -> None:
    create(catalog, EVENTS)
    retrying = open_catalog(glue, tmp_path, **{"glue.max-retries": "2"})
    glue.fail("after", "UpdateTable", GlueError("InternalServiceException", "x", 500), times=1)
    done = set_property(retrying, EVENTS, "a", "1")
    assert [operation for operation, _ in glue.requests].count("UpdateTable") == 2
    assert catalog.load_table(EVENTS) == done


def test_a_refusal_is_certain(catalog: GlueCatalog, glue: Glue, tmp_path: Path) -> None:
    created = create(catalog, EVENTS)
    glue.fail("before", "UpdateTable", GlueError("AccessDeniedException", "no"), times=1)
    with pytest.raises(NotAuthorizedError):
        set_property(catalog, EVENTS, "a", "1")
    glue.fail("before", "UpdateTable", GlueError("InvalidInputException", "no"), times=1)
    with pytest.raises(CatalogError, match="InvalidInputException"):
        set_property(catalog, EVENTS, "a", "1")
    assert catalog.load_table(EVENTS) == created
    assert len(list(tmp_path.rglob("*.metadata.json"))) == 1


def test_tables_of_other_tools_are_left_alone(catalog: GlueCatalog, glue: Glue) -> None:
    glue.tables["db", "events"] = {"Name": "events", "VersionId": "0", "Parameters": {}}
    assert catalog.list_tables(("db",)) == []
    assert not catalog.table_exists(EVENTS)
    with pytest.raises(NoSuchTableError, match="not an Iceberg table"):
        catalog.load_table(EVENTS)
    with pytest.raises(NoSuchTableError):
        catalog.drop_table(EVENTS)
    with pytest.raises(TableAlreadyExistsError):
        create(catalog, EVENTS)
    with pytest.raises(NamespaceNotEmptyError, match="not only Iceberg"):
        catalog.drop_namespace(("db",))
    assert glue.tables.keys() == {("db", "events")}


def test_rename_keeps_a_concurrent_commit(catalog: GlueCatalog, glue: Glue, tmp_path: Path) -> None:
    create(catalog, EVENTS)
    other = open_catalog(glue, tmp_path)

    def overtake(operation: str) -> None:
        if operation == "CreateTable":
            glue.after = lambda operation: None
            set_property(other, EVENTS, "winner", "1")

    glue.after = overtake
    target = TableIdentifier(namespace=("db",), name="renamed")
    with pytest.raises(CatalogError, match="during the rename"):
        catalog.rename_table(EVENTS, target)
    assert catalog.list_tables(("db",)) == [EVENTS]
    assert catalog.load_table(EVENTS).metadata.properties["winner"] == "1"


def test_lists_of_many_pages(catalog: GlueCatalog) -> None:
    for n in range(8):
        catalog.create_namespace((f"ns{n}",))
        create(catalog, TableIdentifier(namespace=("db",), name=f"t{n}"))
    assert len(catalog.list_namespaces()) == 9
    assert [i.name for i in catalog.list_tables(("db",))] == [f"t{n}" for n in range(8)]


def test_sixteen_writers_lose_nothing(catalog: GlueCatalog, glue: Glue, tmp_path: Path) -> None:
    create(catalog, EVENTS)

    def work(writer: int) -> None:
        own = open_catalog(glue, tmp_path)
        table = Table(own, own.load_table(EVENTS))
        for n in range(2):
            rows = pa.table({"id": pa.array([writer * 100 + n], pa.int64()), "v": ["x"]})
            table.append(rows.cast(pa.schema([pa.field("id", pa.int64(), False), ("v", "string")])))

    with ThreadPoolExecutor(16) as pool:
        for running in [pool.submit(work, w) for w in range(16)]:
            running.result()
    table = Table(catalog, catalog.load_table(EVENTS))
    ids = table.scan(columns=["id"]).to_arrow()["id"].to_pylist()
    assert sorted(ids) == [w * 100 + n for w in range(16) for n in range(2)]


def test_a_pickled_catalog_reaches_the_same_tables(catalog: GlueCatalog) -> None:
    created = create(catalog, EVENTS)
    assert pickle.loads(pickle.dumps(catalog)).load_table(EVENTS) == created


def test_secrets_are_not_shown(glue: Glue, tmp_path: Path) -> None:
    catalog = open_catalog(glue, tmp_path)
    glue.before = lambda operation: (_ for _ in ()).throw(
        GlueError("UnrecognizedClientException", f"the key {SECRET} is not valid")
    )
    with pytest.raises(NotAuthorizedError) as raised:
        catalog.list_namespaces()
    chain: BaseException | None = raised.value
    while chain is not None:
        assert SECRET not in f"{chain!r} {chain}"
        chain = chain.__cause__
    assert SECRET not in f"{catalog!r} {catalog.properties!r} {catalog._glue!r}"


def test_namespaces_have_one_level(catalog: GlueCatalog) -> None:
    with pytest.raises(UnsupportedFeatureError, match="no nested namespaces"):
        catalog.create_namespace(("db", "inner"))
    assert not catalog.namespace_exists(("db", "inner"))
    with pytest.raises(IcebergError, match="lower-case letters"):
        catalog.create_namespace(("Db",))


def test_names_have_the_lengths_that_glue_allows(catalog: GlueCatalog) -> None:
    catalog.create_namespace(("d" * 252,))
    with pytest.raises(IcebergError, match="a database in Glue has 1 to 252"):
        catalog.create_namespace(("d" * 253,))
    longest = TableIdentifier(namespace=("db",), name="t" * 255)
    create(catalog, longest)
    assert catalog.load_table(longest).identifier == longest
    with pytest.raises(IcebergError, match="a table in Glue has 1 to 255"):
        create(catalog, replace(longest, name="T"))
