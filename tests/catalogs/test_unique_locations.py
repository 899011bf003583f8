"""The catalog property `unique-table-location`: new tables get folders of their own."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.table_folders import default_location

UNIQUE = {"unique-table-location": "true"}
ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


@pytest.fixture(params=["sql", "memory"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> ice.TableCatalog:
    return ice.load_catalog("lake", type=request.param, warehouse=str(tmp_path), **UNIQUE)


def test_new_table_gets_its_own_folder(catalog: ice.TableCatalog, tmp_path: Path) -> None:
    catalog.create_namespace("db", if_not_exists=True)
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
    catalog.create_namespace("db", if_not_exists=True)
    catalog.create_table("db.t", "id BIGINT").append(ROWS)
    catalog.rename_table("db.t", "db.renamed")
    other = catalog.create_table("db.t", "id BIGINT")
    other.append(ROWS)
    catalog.drop_table("db.t", purge=True)
    assert not list(Path(other.location).rglob("*.parquet"))
    assert catalog.load_table("db.renamed").scan().to_arrow().sort_by("id") == ROWS


def test_a_purge_deletes_data_whose_metadata_files_are_elsewhere(
    catalog: ice.TableCatalog, tmp_path: Path
) -> None:
    elsewhere = {"write.metadata.path": f"{tmp_path}/metadata/t"}
    catalog.create_namespace("db", if_not_exists=True)
    catalog.create_table("db.t", "id BIGINT", properties=elsewhere).append(ROWS)
    moved = catalog.create_table("db.moved", "id BIGINT")
    moved.append(ROWS)
    moved.update_properties().set({"write.metadata.path": f"{tmp_path}/metadata/m"}).commit()
    for name in ("db.t", "db.moved"):
        catalog.drop_table(name, purge=True)
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_purge_keeps_the_folder_of_a_renamed_table_that_metadata_claims(
    catalog: ice.TableCatalog, tmp_path: Path
) -> None:
    catalog.create_namespace("db", if_not_exists=True)
    catalog.create_table("db.t", "id BIGINT").append(ROWS)
    catalog.rename_table("db.t", "db.renamed")
    renamed = catalog.load_table("db.renamed")
    claims = {"write.metadata.path": f"{tmp_path}/metadata/t"}
    metadata = catalog.create_table("db.t", "id BIGINT", properties=claims).metadata
    catalog.drop_table("db.t")
    t = TableIdentifier(namespace=("db",), name="t")
    catalog.catalog.create_table(t, replace(metadata, location=renamed.location))
    catalog.load_table("db.t").append(ROWS)
    catalog.drop_table("db.t", purge=True)
    assert renamed.refresh().scan().to_arrow().sort_by("id") == ROWS
    # Files of the dropped table that lie between those of the other stay.
    assert len(list(Path(renamed.location).rglob("*.parquet"))) == 2


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
