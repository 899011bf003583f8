"""A REST catalog whose server signs requests to S3: Iceberg's fixture behind a signing proxy."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.services import rest_fixture
from tests.services.iceberg_aws import s3_file_io_jars
from tests.services.s3 import ACCESS_KEY, REGION, S3Server
from tests.support.http_server import Reply, Request, http_server
from tests.support.rest_front import forwarded
from tests.support.signer_double import SignerDouble

CATALOG_TOKEN = "Zq1-of-the-catalog"
TABLE_TOKEN = "Zq2-of-the-table"


@dataclass
class SigningCatalog:
    """The server; `token` is the token that it returns with a table."""

    s3: S3Server
    behind: str
    signer: SignerDouble
    token: str | None = TABLE_TOKEN
    uri: str = ""
    client: httpx.Client = field(default_factory=httpx.Client)

    @property
    def properties(self) -> dict[str, str]:
        """Properties of a catalog that logs in with a token; they contain no key of the store."""
        return {"type": "rest", "uri": self.uri, "token": CATALOG_TOKEN}

    def __call__(self, request: Request) -> Reply:
        if request.path.endswith("/sign"):
            return self.signer(request)

        def let_it_sign(table: dict[str, Any]) -> None:
            table["config"] = {
                "s3.remote-signing-enabled": "true",
                "s3.signer.endpoint": f"{request.path.rstrip('/')}/sign".lstrip("/"),
                "s3.endpoint": self.s3.endpoint,
                "s3.region": REGION,
                **({} if self.token is None else {"token": self.token}),
            }

        names = ("content-type", "x-iceberg-access-delegation", "accept")
        return forwarded(self.client, self.behind, request, names, let_it_sign)


@contextlib.contextmanager
def signing_catalog(s3: S3Server, folder: Path) -> Iterator[SigningCatalog]:
    """Yield a catalog whose tables are in a new bucket."""
    own = {
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "warehouse": f"s3://{s3.new_bucket()}/lake",
        **s3.properties(),
        "client.region": REGION,
    }
    signer = SignerDouble(ACCESS_KEY, s3.secret, {CATALOG_TOKEN, TABLE_TOKEN}, cache="private")
    jars = s3_file_io_jars(rest_fixture.VERSION)
    with rest_fixture.rest_server(folder, own, jars) as server:
        catalog = SigningCatalog(s3, server.endpoint, signer)
        with http_server(catalog) as front:
            catalog.uri = front.uri
            yield catalog
