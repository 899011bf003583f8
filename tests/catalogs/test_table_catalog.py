"""The Python API of catalogs, used through the top-level package."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.catalogs.catalog import TableIdentifier, ViewCatalog
from iceberg_pyspark.catalogs.memory_catalog import MemoryCatalog
from iceberg_pyspark.errors import (
    InvalidRequestError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spec.views import SqlRepresentation
from iceberg_pyspark.sql_text.schema_text import parse_schema
from iceberg_pyspark.table.commits.define_view import (
    NewDefinition,
    create_view,
    replace_view,
    set_view_properties,
)
from tests.support.catalog_contract import SCHEMA
from tests.support.view_contract import first_view


@pytest.fixture
def catalog(tmp_path: Path) -> ice.TableCatalog:
    return ice.load_catalog("lake", type="sql", warehouse=str(tmp_path / "warehouse"))


def test_a_table_from_text(catalog: ice.TableCatalog) -> None:
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.events",
        schema="id BIGINT NOT NULL, ts TIMESTAMP, v STRING",
        partitioned_by=["days(ts)", "bucket(16, id)"],
        sorted_by=["ts DESC"],
        properties={"format-version": "3"},
    )
    assert isinstance(table, ice.Table)
    assert table.metadata.format_version == 3
    assert [f.name for f in table.spec.fields] == ["ts_day", "id_bucket"]
    assert table.sort_order.fields[0].direction == "desc"
    for name in ("db.events", "lake.db.events", "`db`.`events`"):
        assert catalog.load_table(name).metadata == table.metadata
        assert catalog.table_exists(name)
    assert catalog.list_tables("db") == ["db.events"]
    assert catalog.list_namespaces() == ["db"]


def test_a_table_from_an_iceberg_or_an_arrow_schema(catalog: ice.TableCatalog) -> None:
    catalog.create_namespace("db")
    table = catalog.create_table("db.a", SCHEMA)
    assert table.schema.fields == SCHEMA.fields
    arrow = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())])
    assert catalog.create_table("db.b", arrow).schema.fields == SCHEMA.fields
    with pytest.raises(InvalidRequestError, match="list"):
        catalog.create_table("db.c", ["id"])


def test_a_table_is_loaded_by_name_and_by_path_without_a_catalog_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = tmp_path / "warehouse"
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TYPE", "hadoop")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", str(warehouse))
    table = ice.load_catalog("lake").create_table("db.a", "id INT")
    for name in ("lake.db.a", table.location, table.loaded.metadata_location):
        assert ice.load_table(name).metadata == table.metadata
    assert ice.load_table("db.a", catalog="lake").metadata == table.metadata
    loaded = ice.load_table("db.a", type="hadoop", warehouse=str(warehouse))
    assert loaded.metadata == table.metadata
    with pytest.raises(NoSuchTableError, match=r"db\.b"):
        ice.load_table("db.b", catalog="lake")
    monkeypatch.chdir(tmp_path)
    for missing, where in (("lake.db.nope", "lake"), ("sea.db.nope", "default")):
        with pytest.raises(NoSuchTableError, match=rf"catalog '{where}'.* check the name.*: lake"):
            ice.load_table(missing)
    with pytest.raises(InvalidRequestError, match="is a path, which belongs to no catalog"):
        ice.load_table(table.location, catalog="lake")


def test_properties_of_a_path_are_those_of_its_store(tmp_path: Path) -> None:
    path = tmp_path / "db" / "a"
    ice.load_catalog("lake", type="hadoop", warehouse=str(tmp_path)).create_table("db.a", "id INT")
    table = ice.load_table(str(path), **{"read.restrict-locations": "true"})
    assert table.loaded.config == {"read.restrict-locations": "true"}


def test_a_catalog_shows_where_it_is_and_no_secret() -> None:
    catalog = ice.load_catalog(
        "lake<b>", type="memory", warehouse="mem://w", **{"s3.secret-access-key": "hush"}
    )
    assert repr(catalog) == "TableCatalog lake<b>: type memory, warehouse mem://w"
    html = catalog._repr_html_()
    assert html.startswith("<table><caption>TableCatalog lake&lt;b&gt;</caption>")
    assert "<td>s3.secret-access-key</td><td>***</td>" in html
    assert "hush" not in html


def test_tables_come_and_go(catalog: ice.TableCatalog) -> None:
    catalog.create_namespace("db")
    catalog.create_table("db.a", "id INT")
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("db.a", "id INT")
    location = catalog.load_table("db.a").loaded.metadata_location
    catalog.rename_table("db.a", "lake.db.b")
    assert catalog.list_tables("db") == ["db.b"]
    catalog.drop_table("db.b")
    with pytest.raises(NoSuchTableError):
        catalog.load_table("db.b")
    catalog.create_namespace("new")
    assert catalog.register_table("new.c", location).identifier.name == "c"


def test_namespaces(catalog: ice.TableCatalog) -> None:
    catalog.create_namespace("a", {"owner": "me"})
    catalog.create_namespace("a.`b c`")
    assert catalog.list_namespaces("a") == ["a.b c"]
    catalog.update_namespace_properties("a", removals=["owner"], updates={"note": "x"})
    assert catalog.load_namespace_properties("a") == {"note": "x"}
    catalog.drop_namespace("a.b c")
    assert catalog.namespace_exists("a")
    assert not catalog.namespace_exists("a.b c")


def test_names_that_need_quotes_are_listed_with_them(tmp_path: Path) -> None:
    catalog = ice.load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    catalog.create_table("`a.b`.`c``d`", "id INT")
    (name,) = catalog.list_tables("`a.b`")
    assert name == "`a.b`.`c``d`"
    assert catalog.table_exists(name)


def test_a_name_with_a_slash_is_a_path(catalog: ice.TableCatalog, tmp_path: Path) -> None:
    path = f"{tmp_path}/tables/events"
    table = catalog.create_table(path, "id INT")
    assert table.location == path
    assert catalog.load_table(path).metadata == table.metadata
    assert catalog.list_namespaces() == []
    with pytest.raises(InvalidRequestError, match="path"):
        catalog.rename_table(path, "db.events")


def test_defaults_and_overrides_of_the_catalog(tmp_path: Path) -> None:
    catalog = ice.load_catalog(
        "lake",
        type="memory",
        warehouse=str(tmp_path),
        **{"table-default.a": "default", "table-default.b": "default", "table-override.c": "fixed"},
    )
    catalog.create_namespace("db")
    table = catalog.create_table("db.a", "id INT", properties={"b": "mine", "c": "mine"})
    assert {k: table.properties[k] for k in "abc"} == {"a": "default", "b": "mine", "c": "fixed"}


def test_defaults_and_overrides_of_views(tmp_path: Path) -> None:
    properties = {"warehouse": str(tmp_path), "view-default.a": "default"}
    properties |= {"view-default.b": "default", "view-override.c": "fixed", "table-default.d": "1"}
    views = MemoryCatalog("lake", properties)
    views.create_namespace(("db",))
    name = TableIdentifier(namespace=("db",), name="v")
    definition = NewDefinition(
        schema=parse_schema("id INT"),
        query=SqlRepresentation("SELECT 1 AS id", "spark"),
        default_namespace=("db",),
        properties={"b": "mine", "c": "mine"},
    )
    created = create_view(views, name, definition).metadata
    assert created.properties == {"a": "default", "b": "mine", "c": "fixed"}
    set_view_properties(views, name, {"a": "mine", "c": "mine"})
    replaced = replace_view(views, name, replace(definition, properties={"b": "new"})).metadata
    assert replaced.properties == {"a": "mine", "b": "new", "c": "fixed"}


def test_importing_the_package_imports_neither_pyspark_nor_pyarrow() -> None:
    script = (
        "import sys, iceberg_pyspark\n"
        "assert not {'pyspark', 'pyarrow', 'sqlalchemy'} & sys.modules.keys()\n"
        "iceberg_pyspark.load_catalog\n"
        "assert 'pyspark' not in sys.modules\n"
        "assert set(iceberg_pyspark.__all__) <= set(dir(iceberg_pyspark))\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_unknown_name_of_the_package() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = ice.nope  # type: ignore[attr-defined]


def test_a_view_is_registered_by_name(catalog: ice.TableCatalog, tmp_path: Path) -> None:
    views = catalog.catalog
    assert isinstance(views, ViewCatalog)
    views.create_namespace(("db",))
    identifier = TableIdentifier(namespace=("db",), name="v")
    created = views.create_view(identifier, first_view(views, identifier, "SELECT 1"))
    views.drop_view(identifier)
    catalog.create_namespace("other")
    catalog.register_view("other.adopted", created.metadata_location)
    adopted = TableIdentifier(namespace=("other",), name="adopted")
    assert views.load_view(adopted).metadata == created.metadata
    folders = ice.load_catalog("folders", type="hadoop", warehouse=str(tmp_path))
    with pytest.raises(UnsupportedFeatureError, match="has no views"):
        folders.register_view("db.v", created.metadata_location)
    with pytest.raises(UnsupportedFeatureError, match="has no views"):
        catalog.register_view("/warehouse/db/v", created.metadata_location)
