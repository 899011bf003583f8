"""The catalog property `unique-table-location`: new tables get folders of their own."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.warehouse import default_location

UNIQUE = {"unique-table-location": "true"}
ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


@pytest.fixture(params=["sql", "memory"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> ice.TableCatalog:
    return ice.load_catalog("lake", type=request.param, warehouse=str(tmp_path), **UNIQUE)


def test_a_new_table_gets_a_folder_of_its_own(catalog: ice.TableCatalog, tmp_path: Path) -> None:
    first = catalog.create_table("db.t", "id BIGINT")
    catalog.rename_table("db.t", "db.renamed")
    second = catalog.create_table("db.t", "id BIGINT")
    assert first.location != second.location
    for table in (first, second):
        assert re.fullmatch(f"{tmp_path}/db/t-[0-9a-f]{{32}}", table.location)
    placed = catalog.create_table("db.placed", "id BIGINT", location=f"{tmp_path}/elsewhere")
    assert placed.location == f"{tmp_path}/elsewhere"


def test_dropping_a_table_of_a_renamed_tables_name_keeps_the_renamed_tables_files(
    catalog: ice.TableCatalog,
) -> None:
    catalog.create_table("db.t", "id BIGINT").append(ROWS)
    catalog.rename_table("db.t", "db.renamed")
    other = catalog.create_table("db.t", "id BIGINT")
    other.append(ROWS)
    catalog.drop_table("db.t", purge=True)
    assert not list(Path(other.location).rglob("*.parquet"))
    assert catalog.load_table("db.renamed").scan().to_arrow().sort_by("id") == ROWS


@pytest.mark.parametrize(
    ("namespace_properties", "folder"),
    [({}, "/w/db.db/t"), ({"location": "s3://bucket/db/"}, "s3://bucket/db/t")],
)
def test_the_uuid_is_part_of_the_tables_folder_alone(
    namespace_properties: dict[str, str], folder: str
) -> None:
    identifier = TableIdentifier(namespace=("db",), name="t")

    def location_with(**properties: str) -> str:
        everywhere = {"warehouse": "/w", **properties}
        return default_location(
            "lake", everywhere, namespace_properties, identifier, namespace_suffix=".db"
        )

    assert re.fullmatch(f"{folder}-[0-9a-f]{{32}}", location_with(**UNIQUE))
    assert location_with() == folder
