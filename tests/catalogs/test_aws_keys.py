"""The keys of encrypted tables in AWS's key management service, as moto has it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from botocore.session import Session

import iceberg_pyspark as ice
from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.encryption.key_management import _UNWRAPPED
from tests.services.moto import moto_server
from tests.support.encrypted_tables import files_with

pytestmark = pytest.mark.nightly
_ACCESS = {"access-key-id": "moto", "secret-access-key": "geheim", "region": "eu-west-1"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Yield the properties of a catalog with the server's keys."""
    with moto_server(tmp_path_factory.mktemp("moto")) as server:
        yield {
            "encryption.kms-type": "aws",
            "kms.endpoint": server.endpoint,
            **{f"kms.{name}": value for name, value in _ACCESS.items()},
        }


def client_of(service: dict[str, str]) -> Any:
    return Session().create_client(
        "kms",
        region_name=_ACCESS["region"],
        endpoint_url=service["kms.endpoint"],
        aws_access_key_id=_ACCESS["access-key-id"],
        aws_secret_access_key=_ACCESS["secret-access-key"],
    )


def test_the_service_wraps_the_keys_of_a_table(service: dict[str, str], tmp_path: Path) -> None:
    client = client_of(service)
    key_id = client.create_key()["KeyMetadata"]["KeyId"]
    catalog = ice.load_catalog("c", type="hadoop", warehouse=str(tmp_path / "wh"), **service)
    properties = {"format-version": "3", "encryption.key-id": key_id}
    table = catalog.create_table("d.t", "id BIGINT, v STRING", properties=properties)
    table.append(pa.table({"id": [1, 2], "v": ["secret1", "secret2"]}))
    _UNWRAPPED.clear()
    assert catalog.load_table("d.t").scan().to_arrow().num_rows == 2
    assert files_with(tmp_path / "wh", ["secret"]) == []
    # another region of the service has no such key
    elsewhere = {**service, "kms.region": "us-east-1"}
    other = ice.load_catalog("c", type="hadoop", warehouse=str(tmp_path / "wh"), **elsewhere)
    with pytest.raises(StorageError, match=r"table d\.t: .*refused key") as error:
        other.load_table("d.t").scan().to_arrow()
    assert "geheim" not in str(error.value)


def test_a_key_that_the_service_does_not_have(service: dict[str, str], tmp_path: Path) -> None:
    catalog = ice.load_catalog("c", type="hadoop", warehouse=str(tmp_path / "wh"), **service)
    properties = {"format-version": "3", "encryption.key-id": "alias/none"}
    table = catalog.create_table("d.t", "id BIGINT", properties=properties)
    with pytest.raises(StorageError, match="alias/none"):
        table.append(pa.table({"id": [1]}))
    assert not list((tmp_path / "wh/d/t").rglob("*.avro"))
    assert not list((tmp_path / "wh/d/t").rglob("*.parquet"))
