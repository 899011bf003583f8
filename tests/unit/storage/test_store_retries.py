"""Object stores that fail for a while: requests are repeated, and not for ever."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage import store_properties
from iceberg_pyspark.storage.objects.object_store_io import ObjectStoreFileIO
from tests.support.http_server import BreakConnection, Reply, Request, http_server
from tests.support.object_stores import STORES, StoreAt, s3_store

HEADERS = {"ETag": '"x"', "Last-Modified": "Mon, 23 Nov 2026 09:00:00 GMT"}


def busy(_: Request) -> Reply:
    return Reply(503, b"<Error><Code>SlowDown</Code></Error>")


def broken(_: Request) -> Reply:
    raise BreakConnection


FAILURES = pytest.mark.parametrize("failure", [busy, broken])


@dataclass
class Failing:
    """A server that fails `times` times, and then answers."""

    failure: Callable[[Request], Reply]
    times: int
    requests: list[Request] = field(default_factory=list)

    def __call__(self, request: Request) -> Reply:
        self.requests.append(request)
        if len(self.requests) <= self.times:
            return self.failure(request)
        return Reply(200, b"bytes", HEADERS)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of milliseconds also where no property shortens them."""
    growing = store_properties._retry_config

    def shortened(*, retries: int | None = None, **_: int | None) -> dict[str, object]:
        return growing(retries=retries, min_ms=1, max_ms=5)

    monkeypatch.setattr(store_properties, "_retry_config", shortened)


@FAILURES
@pytest.mark.parametrize("store", STORES)
def test_a_read_outlives_failures(store: StoreAt, failure: Callable[[Request], Reply]) -> None:
    server = Failing(failure, times=3)
    with http_server(server) as at:
        location, properties = store(at.uri)
        assert ObjectStoreFileIO(properties).read_bytes(location) == b"bytes"
    assert len(server.requests) == 4


@FAILURES
@pytest.mark.parametrize("retries", [0, 2])
def test_the_property_bounds_the_attempts(
    failure: Callable[[Request], Reply], retries: int
) -> None:
    server = Failing(failure, times=100)
    with http_server(server) as at:
        location, properties = s3_store(at.uri)
        io = ObjectStoreFileIO({**properties, "s3.retry.num-retries": str(retries)})
        with pytest.raises(StorageError, match=f"max_retries: {retries}" if retries else "GET"):
            io.read_bytes(location)
    assert len(server.requests) == retries + 1


@pytest.mark.parametrize("store", STORES)
def test_the_attempts_are_bounded_without_a_property(store: StoreAt) -> None:
    server = Failing(busy, times=100)
    with http_server(server) as at:
        location, properties = store(at.uri)
        with pytest.raises(StorageError, match="503"):
            ObjectStoreFileIO(properties).read_bytes(location)
    assert len(server.requests) == 11


@FAILURES
@pytest.mark.parametrize("store", STORES)
def test_opening_a_file_has_no_more_attempts_than_reading_it(
    store: StoreAt, failure: Callable[[Request], Reply]
) -> None:
    server = Failing(failure, times=100)
    with http_server(server) as at:
        location, properties = store(at.uri)
        with pytest.raises(StorageError, match="after 10 retries"):
            ObjectStoreFileIO(properties).open_input(location)
    assert len(server.requests) == 11


def test_an_empty_file_opens_after_a_failure() -> None:
    """S3 refuses its range, and a request before has failed."""
    server = Failing(busy, times=1)

    def answer(request: Request) -> Reply:
        reply = server(request)
        if reply.status == 503:
            return reply
        if request.method == "HEAD":
            return Reply(200, b"", {**HEADERS, "Content-Length": "0"})
        return Reply(416, b"<Error><Code>InvalidRange</Code></Error>")

    with http_server(answer) as at:
        location, properties = s3_store(at.uri)
        io = ObjectStoreFileIO({**properties, "s3.retry.num-retries": "1"})
        assert io.open_input(location).read() == b""


def test_an_answer_that_is_final_is_not_asked_for_again() -> None:
    server = Failing(lambda _: Reply(403, b"<Error><Code>AccessDenied</Code></Error>"), times=100)
    with http_server(server) as at:
        location, properties = s3_store(at.uri)
        with pytest.raises(StorageError, match="AccessDenied"):
            ObjectStoreFileIO(properties).read_bytes(location)
    assert len(server.requests) == 1
