"""The services of `make demo CATALOG=rest`: an Iceberg REST catalog with tables in S3.

If the services of docker-compose.yml run, the demo uses them. Otherwise, the demo starts the
services of the tests, which `python -m tests.services` has built, on loopback until the demo ends.
"""

from __future__ import annotations

import contextlib
import importlib
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

COMPOSE_CATALOG = "http://127.0.0.1:8181"
COMPOSE_S3 = "http://127.0.0.1:9000"
# the settings of docker-compose.yml, which is for use on one's own machine
_COMPOSE = {
    "type": "rest",
    "uri": COMPOSE_CATALOG,
    "warehouse": "s3://warehouse/",
    "s3.endpoint": COMPOSE_S3,
    "s3.region": "us-east-1",
    "s3.access-key-id": "iceberg",
    "s3.secret-access-key": "iceberg-iceberg",
    "s3.path-style-access": "true",
}
_HINT = """\
there is no REST catalog and no S3 server to show: start them by
  docker compose up --detach
or have those of the tests made, once, by
  .venv/bin/python -m tests.services"""


@dataclass(frozen=True, kw_only=True)
class Services:
    """The connection to the demo's catalog.

    `lasting` is true if the servers keep running after the demo.
    """

    properties: Mapping[str, str] = field(repr=False)
    lasting: bool
    jars: tuple[str, ...] = ()
    """Hadoop's file system of S3 for the JVM; without it, Python reads and writes."""


@contextlib.contextmanager
def rest_services(folder: Path) -> Iterator[Services]:
    """Yield the running services; the services of the tests store their data in `folder`.

    Raise `SystemExit` if there are no services.
    """
    if _answers(f"{COMPOSE_CATALOG}/v1/config") and _answers(COMPOSE_S3):
        yield Services(properties=_COMPOSE, lasting=True, jars=_made_jars())
        return
    with contextlib.ExitStack() as running:
        try:
            properties = _start(folder, running)
        except ImportError as e:
            raise SystemExit(f"{_HINT} (missing here: {e.name})") from e
        yield Services(properties=properties, lasting=False, jars=_made_jars())


def _start(folder: Path, running: contextlib.ExitStack) -> Mapping[str, str]:
    """Start the services of the tests; building missing parts takes some minutes."""
    # imported here, because the demo without services does not need these modules
    rest_fixture = importlib.import_module("tests.services.rest_fixture")
    s3 = importlib.import_module("tests.services.s3")
    iceberg_aws = importlib.import_module("tests.services.iceberg_aws")
    server = running.enter_context(s3.s3_server(folder / "s3"))
    store = {**server.properties(), "warehouse": f"s3://{server.new_bucket()}/warehouse"}
    (folder / "rest").mkdir()
    of_java = {
        "s3.endpoint": store["s3.endpoint"],
        "s3.access-key-id": store["s3.access-key-id"],
        "s3.secret-access-key": store["s3.secret-access-key"],
        "s3.path-style-access": "true",
        "client.region": store["s3.region"],
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "warehouse": store["warehouse"],
    }
    catalog = running.enter_context(
        rest_fixture.rest_server(
            folder / "rest", of_java, jars=iceberg_aws.s3_file_io_jars(rest_fixture.VERSION)
        )
    )
    return {**store, "type": "rest", "uri": catalog.endpoint}


def _made_jars() -> tuple[str, ...]:
    """Return the jars of Hadoop's file system of S3 if the tests have built them."""
    try:
        hadoop_aws = importlib.import_module("tests.services.hadoop_aws")
    except ImportError:
        return ()
    return tuple(str(jar) for jar in hadoop_aws.made_jars())


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except urllib.error.HTTPError as e:
        # S3 refuses anonymous requests
        return e.code == 403
    except OSError:
        return False
