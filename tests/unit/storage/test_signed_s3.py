"""Requests to S3 that a server signs one by one; no key is in this process."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from iceberg_pyspark.errors import (
    FileAlreadyExistsError,
    FileNotWrittenError,
    InvalidMetadataError,
    StorageError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.storage import store_properties
from iceberg_pyspark.storage.credentials.table_services import SIGNING
from iceberg_pyspark.storage.files.file_io import FileIO, delete_files, files_per_request
from iceberg_pyspark.storage.objects import object_store_io, signed_requests
from iceberg_pyspark.storage.open_storage import RoutingFileIO, open_storage
from tests.support.http_server import BreakConnection, Reply, Request, TestServer, http_server
from tests.support.s3_double import S3Double, access_key
from tests.support.signer_double import SignerDouble, signing_text
from tests.support.stalling_server import (
    Answer,
    endless_body,
    serving,
    silent,
    slow_body,
    slow_headers,
)

KEY, SECRET = "AKIASIGNER", "the-signers-own-secret"
FILE = "s3://bucket/t/f"


class Both:
    """A store and its signer at one address; puts in `broken` end without an answer."""

    def __init__(self) -> None:
        self.signer = SignerDouble(KEY, SECRET, tokens={"of-the-table"})
        self.store = S3Double({KEY})
        self.broken: list[str] = []

    def __call__(self, request: Request) -> Reply:
        if request.path == "/sign":
            return self.signer(request)
        assert self.signer.was_signed(request)
        reply = self.store(request)
        if request.method == "PUT" and self.broken:
            how = self.broken.pop(0)
            if how == "lost":
                raise BreakConnection
            return Reply(int(how), b"<Error><Code>AnError</Code></Error>")
        return reply


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Both, TestServer]]:
    monkeypatch.setattr(signed_requests, "_sleep", lambda _: None)
    monkeypatch.setattr(object_store_io, "_honours_conditions", {})
    both = Both()
    with http_server(both) as server:
        yield both, server


def properties(server: TestServer, **more: Any) -> dict[str, str]:
    return {
        "s3.remote-signing-enabled": "true",
        "s3.endpoint": server.uri,
        "s3.region": "r-1",
        SIGNING: signing_text(f"{server.uri}/sign", token="of-the-table", **more),
    }


def opened(server: TestServer) -> FileIO:
    return open_storage("s3://bucket/t", properties(server))


def test_every_request_is_signed_and_no_key_is_here(both: tuple[Both, TestServer]) -> None:
    double, server = both
    io = opened(server)
    io.create_exclusive(FILE, b"0123456789")
    with pytest.raises(FileAlreadyExistsError):
        io.create_exclusive(FILE, b"another")
    assert io.read_range(FILE, 2, 3) == b"234"
    assert io.size(FILE) == 10
    with io.open_input(FILE) as stream:
        assert stream.read() == b"0123456789"
    io.delete(FILE)
    assert not io.exists(FILE)
    sent = [r for r in server.requests if r.path != "/sign"]
    assert len(double.signer.signed) == len(sent) > 8
    assert {access_key(r) for r in sent} == {KEY}
    assert {s["asked-by"] for s in double.signer.signed} == {"of-the-table"}
    assert {s["region"] for s in double.signer.signed} == {"r-1"}
    conditions = [s for s in double.signer.signed if "if-none-match" in s["headers"]]
    assert len(conditions) == 4
    assert SECRET not in repr(vars(open_storage)) + repr(io)
    assert "of-the-table" not in repr(io)


def test_many_files_are_deleted_one_by_one(both: tuple[Both, TestServer]) -> None:
    """A signer signs requests for one object; not every signer knows the request for several."""
    _, server = both
    io = opened(server)
    locations = [f"s3://bucket/t/{n}" for n in range(3)]
    for location in locations:
        io.create_exclusive(location, b"x")
    assert files_per_request(io, locations[0]) == 1
    assert delete_files(io, [*locations, "s3://bucket/t/missing"]) == {}
    assert not any(io.exists(location) for location in locations)
    paths = [p for p in server.paths("DELETE") if "probe" not in p]
    assert paths == [f"/bucket/t/{name}" for name in (0, 1, 2, "missing")]
    assert server.paths("POST").count("/bucket") == 0


def test_a_signature_of_reads_is_kept_where_the_server_lets_us(
    both: tuple[Both, TestServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    double, server = both
    io = opened(server)
    io.write_bytes(FILE, b"0123456789")
    double.signer.cache = "private"
    double.signer.signed.clear()
    assert [io.read_range(FILE, n, 1) for n in range(5)] == [b"0", b"1", b"2", b"3", b"4"]
    assert [s["method"] for s in double.signer.signed] == ["GET"]
    # If the store no longer accepts a signature, a new signature is requested.
    double.store.keys, double.signer.access_key = {"AKIANEW"}, "AKIANEW"
    assert io.read_range(FILE, 5, 1) == b"5"
    assert len(double.signer.signed) == 2
    io.write_bytes(FILE, b"new")
    io.write_bytes(FILE, b"newer")
    assert [s["method"] for s in double.signer.signed[2:]] == ["PUT", "PUT"]
    monkeypatch.setattr(signed_requests, "_now_s", lambda: 1e12)
    assert io.read_range(FILE, 0, 1) == b"n"
    assert len(double.signer.signed) == 5


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (Reply(403, {"error": {"message": "token of-the-table"}}), "was not signed: .* 403"),
        (Reply(200, {"headers": {}}), "neither uri nor headers"),
        (Reply(200, {"uri": "http://evil/bucket/t/f", "headers": {}}), "a different request"),
    ],
)
def test_a_put_that_is_not_signed_is_not_sent(
    both: tuple[Both, TestServer], refusal: Reply, expected: str
) -> None:
    double, server = both
    io = opened(server)
    io.create_exclusive("s3://bucket/t/other", b"")
    before = len([r for r in server.requests if r.path != "/sign"])
    double.signer.refusals = [refusal]
    with pytest.raises(FileNotWrittenError, match=expected) as caught:
        io.create_exclusive(FILE, b"x")
    assert "of-the-table" not in str(caught.value)
    assert len([r for r in server.requests if r.path != "/sign"]) == before
    io.create_exclusive(FILE, b"x")


def test_put_without_an_answer_is_looked_up_or_unknown(
    both: tuple[Both, TestServer],
) -> None:
    double, server = both
    io = opened(server)
    io.create_exclusive("s3://bucket/t/other", b"")
    for how, kind in (("lost", StorageError), ("500", StorageError)):
        double.broken = [how]
        with pytest.raises(kind) as caught:
            io.create_exclusive(f"{FILE}-{how}", b"x")
        assert not isinstance(caught.value, FileNotWrittenError)
        # The put was carried out, so a read finds the file.
        assert io.read_bytes(f"{FILE}-{how}") == b"x"
    double.store.keys.clear()
    with pytest.raises(FileNotWrittenError, match=r"refused it with 403 \(ExpiredToken\)"):
        io.create_exclusive(FILE, b"x")
    double.store.keys.add(KEY)
    # A put that replaces a file is repeated.
    double.broken = ["lost", "500", "503"]
    io.write_bytes(FILE, b"y")
    assert io.read_bytes(FILE) == b"y"


def test_a_signer_may_add_a_query_and_change_nothing(both: tuple[Both, TestServer]) -> None:
    double, server = both
    io = opened(server)
    double.signer.change = lambda a: {**a, "uri": a["uri"] + "?X-Amz-Date=1"}
    io.write_bytes(FILE, b"x")
    for change in (
        lambda a: {**a, "uri": a["uri"].replace("/t/f", "/t/g")},
        lambda a: {**a, "uri": a["uri"] + "?acl="},
        lambda a: {**a, "uri": a["uri"].replace("http://", "http://me@")},
        lambda a: {**a, "uri": 1},
    ):
        double.signer.change = change
        with pytest.raises(StorageError, match=r"signer of table db\.t"):
            io.read_bytes(FILE)
    drop = {"if-none-match": ["never"]}
    double.signer.change = lambda a: {**a, "headers": {**a["headers"], **drop}}
    with pytest.raises(FileAlreadyExistsError):
        io.create_exclusive(FILE, b"z")


def test_remote_signing_without_a_signer_is_refused(both: tuple[Both, TestServer]) -> None:
    _, server = both
    arguments = properties(server)
    without = {k: v for k, v in arguments.items() if k != SIGNING}
    with pytest.raises(UnsupportedFeatureError, match=r"s3\.remote-signing-enabled is not supp"):
        open_storage("s3://bucket/t", without)
    with pytest.raises(InvalidMetadataError, match="leave it out") as caught:
        open_storage("s3://bucket/t", {**without, SIGNING: '{"token": "a-secret"'})
    assert "a-secret" not in str(caught.value)


def test_tasks_without_a_token_of_the_table_are_refused(both: tuple[Both, TestServer]) -> None:
    _, server = both
    arguments = properties(server)
    arguments[SIGNING] = json.dumps({**json.loads(arguments[SIGNING]), "for_tasks": False})
    io = open_storage("s3://bucket/t", arguments)
    assert isinstance(io, RoutingFileIO)
    with pytest.raises(UnsupportedFeatureError, match=r"table db\.t.*issued no token"):
        io.within("s3://bucket/t")
    with pytest.raises(StorageError, match="issued no token"):
        io.read_bytes(FILE)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (silent, "no answer .*Timeout"),
        (slow_headers, "no answer .*Timeout"),
        (slow_body, "no answer .*Timeout"),
        (endless_body, "larger than anything"),
    ],
)
def test_a_store_that_does_not_end_its_answer(
    answer: Answer, expected: str, both: tuple[Both, TestServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_properties, "_REQUEST_TIMEOUT", timedelta(seconds=0.2))
    monkeypatch.setattr(signed_requests, "_LARGEST_ANSWER", 1_000_000)
    with serving(answer) as uri:
        stalling = {**properties(both[1]), "s3.endpoint": uri, "s3.retry.num-retries": "1"}
        io = open_storage("s3://bucket/t", stalling)
        started = time.monotonic()
        with pytest.raises(StorageError, match=expected):
            io.read_bytes(FILE)
        # a put may have been carried out
        with pytest.raises(StorageError, match=expected) as caught:
            io.write_bytes(FILE, b"x")
        assert not isinstance(caught.value, FileNotWrittenError)
        assert time.monotonic() - started < 5
