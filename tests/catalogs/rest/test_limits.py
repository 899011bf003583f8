"""Servers that send a byte now and then, or without an end: time and size are limited."""

from __future__ import annotations

import gzip
import threading
from functools import partial

import httpx
import pytest

from iceberg_pyspark.catalogs.rest.authentication import NoAuthentication
from iceberg_pyspark.catalogs.rest.commits import outcome_of, read_nothing
from iceberg_pyspark.catalogs.rest.oauth2 import OAuth2, oauth2_settings
from iceberg_pyspark.catalogs.rest.rest_session import (
    HttpSettings,
    LostAnswer,
    Session,
    http_client,
    http_settings,
)
from iceberg_pyspark.changes.outcomes import Unknown
from iceberg_pyspark.errors import CatalogUnavailableError, CommitConflictError, StorageError
from iceberg_pyspark.storage.credentials import credential_renewal, table_services
from iceberg_pyspark.storage.credentials.table_services import RemoteSigning
from tests.support.stalling_server import (
    OK,
    Answer,
    Send,
    endless_body,
    serving,
    silent,
    slow_body,
    slow_headers,
)

_TIME = "rest.client.request-timeout-ms"
_SIZE = "rest.client.max-response-bytes"
_BOMB = gzip.compress(gzip.compress(bytes(50_000_000)))


def whole(content: bytes, encoding: str = "") -> bytes:
    header = f"Content-Encoding: {encoding}\r\n" if encoding else ""
    return OK + f"{header}Content-Length: {len(content)}\r\n\r\n".encode() + content


def send_whole(content: bytes, encoding: str, send: Send, _ended: threading.Event) -> None:
    send(whole(content, encoding))


def settings_of(uri: str, **properties: str) -> HttpSettings:
    return http_settings("c", {"uri": uri, "rest.client.max-retries": "2", **properties})


def asked(uri: str, method: str, **properties: str) -> object:
    settings = settings_of(uri, **properties)
    with http_client("c", settings) as client:
        return Session("c", settings, client, NoAuthentication()).try_to_ask(method, "v1/x")


@pytest.mark.parametrize("answer", [silent, slow_headers, slow_body, endless_body])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_request_ends_when_its_time_is_over(answer: Answer, method: str) -> None:
    with serving(answer) as uri:
        lost = asked(uri, method, **{_TIME: "200", _SIZE: str(2**31 - 1)})
    assert isinstance(lost, LostAnswer)
    assert lost.was_sent
    assert lost.is_final
    assert f"raise {_TIME}" in str(lost.error)
    outcome = outcome_of(lost, "c", "db.t", read_nothing, lambda _: CommitConflictError("refused"))
    assert isinstance(outcome, Unknown)


def test_reused_connection_has_the_time_limit() -> None:
    def once(send: Send, ended: threading.Event) -> None:
        send(whole(b"{}"))
        ended.wait(0.1)
        slow_body(send, ended)

    with serving(once) as uri:
        settings = settings_of(uri, **{_TIME: "300"})
        with http_client("c", settings) as client:
            session = Session("c", settings, client, NoAuthentication())
            assert session.ask("GET", "v1/x").body == b"{}"
            with pytest.raises(CatalogUnavailableError, match=_TIME):
                session.ask("GET", "v1/x")


@pytest.mark.parametrize(
    "answer",
    [
        endless_body,
        partial(send_whole, b"x" * 1001, ""),
        partial(send_whole, gzip.compress(bytes(1_000_000)), "gzip"),
    ],
)
def test_an_answer_ends_when_it_is_too_large(answer: Answer) -> None:
    with serving(answer) as uri:
        lost = asked(uri, "POST", **{_SIZE: "1000"})
    assert isinstance(lost, LostAnswer)
    assert lost.was_sent
    assert lost.is_final
    assert f"it may have 1000 bytes: raise {_SIZE}" in str(lost.error)


def test_compressed_answers_are_read_and_strange_ones_are_not() -> None:
    body = b"[" + b" " * 998 + b"]"
    with serving(partial(send_whole, gzip.compress(body), "gzip")) as uri:
        answer = asked(uri, "GET", **{_SIZE: "1000"})
    assert getattr(answer, "body", answer) == body
    for content, encoding in (
        (_BOMB, "gzip, gzip"),
        (b"no gzip", "gzip"),
        (gzip.compress(body)[:-9], "gzip"),
    ):
        with serving(partial(send_whole, content, encoding)) as uri:
            lost = asked(uri, "POST")
        assert isinstance(lost, LostAnswer)
        assert lost.was_sent
        assert "DecodingError" in str(lost.error)


@pytest.mark.parametrize(("answer", "name"), [(slow_headers, _TIME), (endless_body, _SIZE)])
def test_tokens_have_the_same_limits(answer: Answer, name: str) -> None:
    with serving(answer) as uri:
        properties = {"credential": "id:secret", _TIME: "200", _SIZE: "1000"}
        settings = settings_of(uri, **properties)
        with http_client("c", settings) as client:
            login = OAuth2(oauth2_settings("c", properties, uri, settings.limits), client)
            with pytest.raises(CatalogUnavailableError, match=f"OAuth2 server .*raise {name}"):
                login.headers("GET", uri, b"")


def test_a_lost_answer_stays_one_when_the_next_attempt_cannot_be_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = httpx.ConnectError("refused")
    attempts = iter([httpx.ReadTimeout("lost"), refused, refused])

    def fail(*_: object, **__: object) -> None:
        raise next(attempts)

    monkeypatch.setattr("iceberg_pyspark.catalogs.rest.rest_session.receive", fail)
    settings = settings_of("http://127.0.0.1:1")
    with http_client("c", settings) as client:
        session = Session("c", settings, client, NoAuthentication())
        lost = session.try_to_ask("POST", "v1/x", is_repeatable=True)
    assert isinstance(lost, LostAnswer)
    assert lost.was_sent


@pytest.mark.parametrize("answer", [slow_headers, endless_body])
def test_renewed_keys_and_signatures_of_tasks_have_limits(
    monkeypatch: pytest.MonkeyPatch, answer: Answer
) -> None:
    monkeypatch.setattr(table_services, "_TIMEOUT_S", 0.2)
    monkeypatch.setattr(table_services, "_LARGEST_ANSWER", 1000)
    with serving(answer) as uri:
        with pytest.raises(StorageError, match="gave no answer"):
            credential_renewal._Endpoint(uri, "t").renew({})
        signing = RemoteSigning(
            source="none", namespace=("db",), name="t", endpoint=uri, for_tasks=True
        )
        with pytest.raises(StorageError, match="gave no answer"):
            table_services._TaskSigner().sign(signing, {})
