"""The services of `make demo CATALOG=rest`: an Iceberg REST catalog whose tables lie in S3.

Those of docker-compose.yml, where they answer; else those of the tests, which `make services` has
made, started on loopback for as long as the demo runs.
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
# of docker-compose.yml, for a machine of one's own
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
  make services"""


@dataclass(frozen=True, kw_only=True)
class Services:
    """How the demo's catalog is reached; `lasting` if it stays when the demo ends."""

    properties: Mapping[str, str] = field(repr=False)
    lasting: bool
    jars: tuple[str, ...] = ()
    """For the JVM: Hadoop's file system of S3, without which Python reads and writes."""


@contextlib.contextmanager
def rest_services(folder: Path) -> Iterator[Services]:
    """The services, those of the tests with their data in a folder; `SystemExit` without any."""
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
    """Start what the tests use; what is not there yet is made, which takes some minutes."""
    # the demo alone needs none of what these import
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
    """Hadoop's file system of S3, if it is among what the tests have made."""
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
        # S3 answers who does not say who he is by a refusal
        return e.code == 403
    except OSError:
        return False
