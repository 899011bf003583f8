"""versitygw, an S3 server on loopback; of several conditional puts it lets only one win."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyarrow.fs import S3FileSystem

from tests.services.go import go_binary
from tests.services.server import Server, running
from tests.support.ports import LOOPBACK, free_port

VERSION = "1.8.0"
REGION = "us-east-1"
ACCESS_KEY = "AKIAICEBERGTEST"


@dataclass(frozen=True)
class S3Server:
    """A running server with a new secret."""

    server: Server
    secret: str
    buckets: Path
    access_log: Path

    @property
    def endpoint(self) -> str:
        return self.server.endpoint

    def properties(self, endpoint: str | None = None) -> dict[str, str]:
        """Return the Iceberg properties that connect to this server, or to `endpoint` if given."""
        return {
            "s3.endpoint": endpoint or self.endpoint,
            "s3.region": REGION,
            "s3.access-key-id": ACCESS_KEY,
            "s3.secret-access-key": self.secret,
            "s3.path-style-access": "true",
        }

    def requests(self, kind: str = "") -> Counter[str]:
        """Return the counts of requests so far by their names in the access log, as in `GetObject`.

        `kind` selects the requests for objects whose names have this extension.
        """
        text = self.access_log.read_text() if self.access_log.exists() else ""
        lines = text.splitlines()
        if kind:
            lines = [line for line in lines if f".{kind} " in line or f".{kind}?" in line]
        return Counter(re.findall(r" s3_(\w+) ", "\n".join(lines)))

    def unfinished_uploads(self, bucket: str) -> list[str]:
        """Return the parts of multipart uploads that were neither completed nor aborted."""
        parts = self.buckets / bucket / ".sgwtmp" / "multipart"
        return [str(p) for p in parts.rglob("*") if p.is_file()]

    def new_bucket(self) -> str:
        """Create a bucket and return its name."""
        bucket = f"b-{uuid.uuid4().hex[:12]}"
        client = S3FileSystem(
            access_key=ACCESS_KEY,
            secret_key=self.secret,
            endpoint_override=self.endpoint,
            region=REGION,
            allow_bucket_creation=True,
        )
        client.create_dir(bucket)
        return bucket


def program() -> Path:
    """Return the server's program, built if necessary."""
    return go_binary("versitygw", "github.com/versity/versitygw/cmd/versitygw", VERSION)


@contextlib.contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """Yield a server whose buckets are folders inside `folder`."""
    port, secret = free_port(), f"secret-{uuid.uuid4().hex}"
    buckets = folder / "buckets"
    buckets.mkdir(parents=True)
    access_log = folder / "requests.log"
    options = ["--port", f"{LOOPBACK}:{port}", "--quiet", "--access-log", str(access_log)]
    command = [str(program()), *options, "posix", str(buckets)]
    keys = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": secret}
    log = folder / "versitygw.log"
    with running("versitygw", command, port=port, log=log, environment=keys) as server:
        yield S3Server(server, secret, buckets, access_log)
