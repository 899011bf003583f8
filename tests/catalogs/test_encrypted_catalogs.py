"""One life of an encrypted table in each catalog and store: no plaintext, and only its own keys."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.errors import CatalogError, IcebergError
from iceberg_pyspark.storage.encryption.key_management import _UNWRAPPED
from tests.services.glue import Glue
from tests.services.rest_fixture import rest_server
from tests.services.s3 import S3Server, s3_server
from tests.support.deleted_rows import delete_rows
from tests.support.encrypted_tables import files_with, key_properties
from tests.support.parameters import cases

SECRETS = ["secret", "PAR1", "PFA1", "Obj\x01", "iceberg.schema"]
ROWS = pa.table({"id": list(range(10)), "v": [f"secret{i}" for i in range(10)]})


@pytest.fixture(scope="module")
def rest_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("rest")
    with rest_server(folder) as server:
        yield server.endpoint, folder


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[dict[str, str], Path]:
    """Return the properties of a catalog, and the folder that has the files of its tables."""
    warehouse = tmp_path / "wh"
    local = {"warehouse": str(warehouse)}
    match request.param:
        case "sqlite":
            return {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", **local}, warehouse
        case "s3":
            server: S3Server = request.getfixturevalue("s3")
            bucket = server.new_bucket()
            of_store = {"warehouse": f"s3://{bucket}/wh", **server.properties()}
            of_catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db"}
            return {**of_catalog, **of_store}, server.buckets / bucket
        case "glue":
            glue: Glue = request.getfixturevalue("glue")
            return {"type": "glue", **glue.properties(warehouse)}, warehouse
        case "hive":
            return {"type": "hive", "uri": request.getfixturevalue("hive_uri"), **local}, warehouse
        case "rest":
            uri, folder = request.getfixturevalue("rest_uri")
            return {"type": "rest", "uri": uri}, folder / "warehouse"
        case database:
            uri = request.getfixturevalue(f"{database}_uri")
            return {"type": "sql", "uri": uri, **local}, warehouse


@cases(
    "place",
    fast=["sqlite"],
    nightly=["glue", "hive", "postgres", "mariadb", "rest", "s3"],
    indirect=True,
)
def test_a_table_stays_encrypted(place: tuple[dict[str, str], Path], tmp_path: Path) -> None:
    properties, folder = place
    keys = key_properties(tmp_path)
    catalog = ice.load_catalog("c", **properties, **keys)
    namespace = f"d_{uuid.uuid4().hex[:8]}"
    catalog.create_namespace(namespace)
    name = f"{namespace}.t"
    encrypted = {"format-version": "3", "encryption.key-id": "keyA"}
    table = catalog.create_table(name, "id BIGINT, v STRING", properties=encrypted)
    table.append(ROWS)
    table.append(ROWS)
    delete_rows(table, "id", [3])
    with table.transaction() as transaction:
        transaction.append(ROWS)
        transaction.update_schema().add_column("w", "int")
    _UNWRAPPED.clear()
    table = catalog.load_table(name)
    assert table.scan("v = 'secret4'").to_arrow().num_rows == 3
    assert len(table.metadata.encryption_keys) == 5, "one key-encryption key, four manifest lists"
    maintenance = table.maintenance()
    maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    maintenance.rewrite_manifests()
    maintenance.compute_table_stats()
    assert table.refresh().verify(check_files=True).findings == ()
    later = datetime(2200, 1, 1, tzinfo=timezone.utc)
    maintenance.expire_snapshots(older_than=later, retain_last=1)
    orphans = maintenance.remove_orphan_files(older_than=later, force=True)
    assert orphans.orphan_file_locations == ()
    assert table.refresh().scan().to_arrow().num_rows == 28
    assert len(files_with(folder, ["keyA"])) == 0
    assert files_with(folder, SECRETS) == []
    stranger = ice.load_catalog("c", **properties).load_table(name)
    with pytest.raises(IcebergError, match=r"encrypted, .*encryption\.kms-type"):
        stranger.scan().to_arrow()
    catalog.drop_table(name, purge=True)
    left = [f for f in folder.rglob("*") if f.is_file() and f"/{namespace}/" in str(f)]
    # the REST server writes checksums beside metadata files
    assert not [f for f in left if f.suffix != ".crc"]


@pytest.mark.nightly
@pytest.mark.parametrize("place", ["hive"], indirect=True)
def test_a_metadata_file_that_lost_the_key_is_refused(
    place: tuple[dict[str, str], Path], tmp_path: Path
) -> None:
    """Otherwise whoever can write to the store could make others write plaintext."""
    properties = {**place[0], **key_properties(tmp_path)}
    catalog = ice.load_catalog("c", **properties)
    name = f"d_{uuid.uuid4().hex[:8]}.t"
    catalog.create_namespace(name.partition(".")[0])
    encrypted = {"format-version": "3", "encryption.key-id": "keyA"}
    table = catalog.create_table(name, "id BIGINT, v STRING", properties=encrypted)
    table.append(ROWS)
    file = Path(catalog.load_table(name).loaded.metadata_location.removeprefix("file:"))
    file.write_text(file.read_text().replace('"encryption.key-id"', '"no.key-id"'))
    with pytest.raises(CatalogError, match="is None in the metadata file, and keyA in the Hive"):
        ice.load_catalog("c", **properties).load_table(name)
