"""Names that may be a metadata table: a real table of that name wins, in SQL and by options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iceberg_pyspark import TableCatalog, load_catalog
from iceberg_pyspark.errors import InvalidRequestError, NoSuchTableError
from iceberg_pyspark.spark.bridge.protocol.catalog_messages import CatalogOpen
from iceberg_pyspark.spark.bridge.protocol.table_messages import TableLoad
from iceberg_pyspark.spark.data_source.read_job import open_read_job
from iceberg_pyspark.spark.sql_catalog.catalog_requests import CatalogCallbacks


def properties(tmp_path: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": str(tmp_path / "w")}


@pytest.fixture
def catalog(tmp_path: Path) -> TableCatalog:
    new_catalog = load_catalog("c", **properties(tmp_path))
    new_catalog.create_namespace("db")
    new_catalog.create_table("db.t", "id BIGINT")
    return new_catalog


def columns_in_source(tmp_path: Path, name: str, **options: str) -> list[str]:
    catalog_options = {f"catalog.{k}": v for k, v in properties(tmp_path).items()}
    job = open_read_job({"path": name, "catalog": "c", **catalog_options, **options})
    # The next step only has the pinned table.
    again = open_read_job(
        {"path": name, "catalog": "c", **catalog_options, **options}, job.pinned_table
    )
    names: list[str] = again.schema().names
    assert again.reader(again.schema()) is not None
    return names


def columns_in_sql(tmp_path: Path, *levels: str) -> list[str]:
    callbacks = CatalogCallbacks()
    opened = callbacks.open(CatalogOpen(session="s", name="c", options=properties(tmp_path)))
    request = TableLoad(catalog=opened.handle, namespace=levels[:-1], name=levels[-1])
    return [f["name"] for f in json.loads(callbacks.table_load(request).schema)["fields"]]


def test_a_table_of_that_name_wins(catalog: TableCatalog, tmp_path: Path) -> None:
    assert columns_in_source(tmp_path, "db.t.refs")[0] == "name"
    assert columns_in_sql(tmp_path, "db", "t", "refs")[0] == "name"
    catalog.create_namespace("db.t")
    catalog.create_table("db.t.refs", "answer BIGINT")
    assert columns_in_source(tmp_path, "db.t.refs") == ["answer"]
    assert columns_in_sql(tmp_path, "db", "t", "refs") == ["answer"]


def test_unknown_metadata_table_raises_no_such_table(catalog: TableCatalog, tmp_path: Path) -> None:
    for name in ("db.t.nope", "db.nope.files"):
        with pytest.raises(NoSuchTableError, match="nope"):
            columns_in_source(tmp_path, name)
        with pytest.raises(NoSuchTableError, match="nope"):
            columns_in_sql(tmp_path, *name.split("."))


def test_a_path_with_a_mark(catalog: TableCatalog, tmp_path: Path) -> None:
    path = catalog.load_table("db.t").location
    job = open_read_job({"path": f"{path}#snapshots"})
    assert job.schema().names[0] == "committed_at"


def test_options_are_applied_or_refused(catalog: TableCatalog, tmp_path: Path) -> None:
    assert columns_in_source(tmp_path, "db.t.files", columns="FILE_PATH, content") == [
        *("file_path", "content")
    ]
    with pytest.raises(
        InvalidRequestError, match=r"db\.t\.files has no column 'x'; it has: content"
    ):
        columns_in_source(tmp_path, "db.t.files", columns="x")
    with pytest.raises(InvalidRequestError, match=r"use \.filter\(\.\.\.\) on the DataFrame"):
        columns_in_source(tmp_path, "db.t.files", filter="content = 0")
