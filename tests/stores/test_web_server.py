"""Tables on a web server, by http and https: read, never written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import load_catalog, load_table
from iceberg_pyspark.errors import FileNotWrittenError, StorageError
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.memory_files import process_memory
from iceberg_pyspark.storage.open_storage import open_storage
from tests.support.http_server import (
    BreakConnection,
    Reply,
    Request,
    RequestHandler,
    TestServer,
    http_server,
)
from tests.support.tls import new_certificates


@dataclass
class ServedFiles:
    """Answers GET and HEAD of files by path; `supports_ranges` False sends whole files always."""

    files: dict[str, bytes] = field(default_factory=dict)
    supports_ranges: bool = True

    def __call__(self, request: Request) -> Reply:
        data = self.files.get(request.path)
        if data is None:
            return Reply(404, b"no such file")
        if request.method == "HEAD":
            return Reply(200, b"", {"Content-Length": str(len(data))})
        span = re.fullmatch(r"bytes=(\d*)-(\d+)", request.headers.get("range", ""))
        if span is None or not self.supports_ranges:
            return Reply(200, data)
        start = int(span[1]) if span[1] else max(len(data) - int(span[2]), 0)
        end = min(int(span[2]) if span[1] else len(data), len(data) - 1)
        if start >= len(data):
            return Reply(416, b"", {"Content-Range": f"bytes */{len(data)}"})
        content_range = {"Content-Range": f"bytes {start}-{end}/{len(data)}"}
        return Reply(206, data[start : end + 1], content_range)


ROWS = pa.table({"id": list(range(50_000)), "v": [str(i) * 10 for i in range(50_000)]})
LINK_LOCAL = "http://169.254.169.254"


@pytest.fixture(scope="module")
def web() -> Iterator[tuple[TestServer, ServedFiles]]:
    files = ServedFiles()
    with http_server(files) as server:
        yield server, files


@pytest.fixture(scope="module")
def table_location(web: tuple[TestServer, ServedFiles]) -> str:
    server, files = web
    return put_table(server.uri, files)


@pytest.fixture
def io() -> FileIO:
    return open_storage("http://host/t", {})


@pytest.fixture
def serve() -> Iterator[Callable[[RequestHandler], TestServer]]:
    with ExitStack() as servers:
        yield lambda answer: servers.enter_context(http_server(answer))


def put_table(uri: str, files: ServedFiles) -> str:
    """Copy a table to a server's files, and return the location of its metadata there."""
    catalog = load_catalog("web", type="memory", warehouse="memory://web")
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table("db.t", schema="id bigint, v string")
    table.append(ROWS)
    copy = table.maintenance().rewrite_table_path(
        source_prefix=table.location, target_prefix=f"{uri}/lake/t"
    )
    assert copy.file_list_location is not None
    memory = process_memory(table.location)
    for line in memory.read_bytes(copy.file_list_location).decode().splitlines():
        source, _, target = line.partition(",")
        files.files[target.removeprefix(uri)] = memory.read_bytes(source)
    catalog.drop_table("db.t", purge=True)
    return f"{uri}/lake/t/metadata/{copy.latest_version}"


def test_a_table_is_read_by_ranges(
    web: tuple[TestServer, ServedFiles], table_location: str
) -> None:
    server, _ = web
    server.requests.clear()
    scan = load_table(table_location).scan(filter="id >= 49990")
    assert sorted(scan.to_arrow()["id"].to_pylist()) == list(range(49_990, 50_000))
    data = [r for r in server.requests if r.path.endswith(".parquet") and r.method == "GET"]
    assert data
    assert all(r.headers["range"].startswith("bytes=") for r in data)
    assert data[0].headers["range"].startswith("bytes=-"), "the footer is read first"
    # a range of a compressed answer would not be that of the file
    assert {r.headers["accept-encoding"] for r in server.requests} == {"identity"}


def test_a_table_on_a_web_server_is_not_changed(
    web: tuple[TestServer, ServedFiles], table_location: str, io: FileIO
) -> None:
    server, files = web
    file = f"{server.uri}/lake/new"
    server.requests.clear()
    with pytest.raises(StorageError, match="web servers are only read"):
        load_table(table_location).append(ROWS)
    for change in (
        lambda: io.write_bytes(file, b"x"),
        lambda: io.open_output(file),
        lambda: io.create_exclusive(file, b"x"),
    ):
        with pytest.raises(FileNotWrittenError, match="cannot"):
            change()
    with pytest.raises(StorageError, match=r"cannot delete .*only read"):
        io.delete(f"{server.uri}{next(iter(files.files))}")
    assert {r.method for r in server.requests} <= {"GET", "HEAD"}


def test_a_missing_file_and_a_failure_differ(
    web: tuple[TestServer, ServedFiles], serve: Callable[[RequestHandler], TestServer], io: FileIO
) -> None:
    missing = f"{web[0].uri}/none"
    assert io.exists(missing) is False
    for read in (io.read_bytes, io.size, io.open_input):
        with pytest.raises(StorageError, match="no such file"):
            read(missing)

    def broken(request: Request) -> Reply:
        raise BreakConnection

    for answer, text in ((lambda _: Reply(503, b"busy"), "503"), (broken, "isconnected")):
        file = f"{serve(answer).uri}/file"
        for action in (io.exists, io.size, io.read_bytes, io.open_input):
            with pytest.raises(StorageError, match=text):
                action(file)


def test_a_server_without_ranges_is_refused(io: FileIO) -> None:
    files = ServedFiles({"/file": bytes(range(100))}, supports_ranges=False)
    with http_server(files) as server, pytest.raises(StorageError, match="must support ranges"):
        io.read_range(f"{server.uri}/file", 10, 5)


def test_no_other_server_is_asked(
    serve: Callable[[RequestHandler], TestServer], io: FileIO
) -> None:
    other = serve(lambda _: Reply(200, b"other bytes"))
    for target in (other.uri, LINK_LOCAL):
        headers = {"Location": f"{target}/latest"}
        file = f"{serve(lambda _, h=headers: Reply(302, b'', h)).uri}/file"  # type: ignore[misc]
        for action in (
            io.read_bytes,
            io.open_input,
            io.size,
            io.exists,
            lambda place: io.read_range(place, 0, 4),
        ):
            with pytest.raises(StorageError, match=f"redirects to {target}; redirects to another"):
                action(file)
    assert other.requests == []


def test_a_redirect_on_the_same_server_is_followed(
    serve: Callable[[RequestHandler], TestServer], io: FileIO
) -> None:
    def moved(request: Request) -> Reply:
        if request.path == "/old":
            return Reply(302, b"", {"Location": "/new"})
        return Reply(200, b"bytes")

    assert io.read_bytes(f"{serve(moved).uri}/old") == b"bytes"


def test_an_unknown_certificate_is_refused(tmp_path: Path, io: FileIO) -> None:
    tls = new_certificates(tmp_path).of_server()
    with http_server(ServedFiles({"/file": b"x"}), tls=tls) as server:
        for action in (io.read_bytes, io.exists):
            with pytest.raises(StorageError, match="certificate"):
                action(f"{server.uri}/file")
    assert server.requests == []


@pytest.mark.nightly
def test_a_table_is_read_by_https(tmp_path: Path) -> None:
    certificates = new_certificates(tmp_path)
    files = ServedFiles()
    count = "import iceberg_pyspark as i, sys; print(i.load_table(sys.argv[1]).scan().count())"
    with http_server(files, tls=certificates.of_server()) as server:
        # the library reads the trusted certificates when it is imported
        counted = subprocess.run(
            [sys.executable, "-c", count, put_table(server.uri, files)],
            env={
                **os.environ,
                "SSL_CERT_FILE": str(certificates.authority),
                "PYTHONPATH": os.getcwd(),
            },
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert counted.stdout.strip() == str(ROWS.num_rows)
