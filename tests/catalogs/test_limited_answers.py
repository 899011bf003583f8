"""Servers of Glue and Hive that are silent, slow or endless: requests have limits."""

from __future__ import annotations

import struct
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from iceberg_pyspark.catalogs.glue import glue_client
from iceberg_pyspark.catalogs.glue.glue_client import GlueClient
from iceberg_pyspark.catalogs.hive import metastore_client as hive_client
from iceberg_pyspark.catalogs.hive.metastore_client import HiveClient, HiveUnreachableError
from iceberg_pyspark.errors import CatalogError, CatalogUnavailableError, CommitStateUnknownError
from tests.services.glue import glue_properties
from tests.support.stalling_server import (
    OK,
    Answer,
    Send,
    endless_body,
    serving,
    silent,
    slow_body,
    slow_headers,
    slowly,
)


def thrift_reply(name: str) -> bytes:
    """Return the start of a reply to a call of Thrift's binary protocol."""
    text = name.encode()
    return struct.pack(">iI", -0x7FFEFFFE, len(text)) + text + struct.pack(">i", 0)


def endless_reply(send: Send, ended: threading.Event) -> None:
    # a list of so many texts that no client would read to its end
    send(thrift_reply("get_all_databases") + struct.pack(">bhbi", 15, 0, 11, 9_000_000))
    while not ended.is_set():
        send(struct.pack(">i", 4096) + bytes(4096))


def whole_then(answer: Answer, send: Send, ended: threading.Event) -> None:
    """Answer the first request, and the next one of the connection with `answer`."""
    send(OK + b"Content-Length: 2\r\n\r\n{}")
    ended.wait(0.1)
    answer(send, ended)


def hive(uri: str, limit: str) -> HiveClient:
    properties = {"uri": uri.replace("http:", "thrift:"), "clients": "1"}
    return HiveClient("c", {**properties, "hive.metastore.client.socket.timeout": limit})


@pytest.mark.parametrize(
    "answer", [silent, partial(slowly, thrift_reply("get_all_databases") + b"\x0f\0\0\x0b\x00\x10")]
)
def test_a_metastore_that_does_not_end_its_answer(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HiveClient, "_introduce", lambda *_: None)
    with serving(answer) as uri:
        started = time.monotonic()
        with pytest.raises(CatalogUnavailableError, match=r"127\.0\.0\.1.*socket\.timeout"):
            hive(uri, "300ms").call("get_all_databases")
        with pytest.raises(CommitStateUnknownError, match=r"drop_table.*socket\.timeout"):
            hive(uri, "300ms").change("drop_table", dbname="d", name="t", deleteData=False)
        assert time.monotonic() - started < 5


def test_metastore_stuck_in_the_greeting_got_no_change() -> None:
    with serving(partial(slowly, thrift_reply("set_ugi") + b"\x0f\0\0\x0b\x00\x10")) as uri:
        client = hive(uri, "300ms")
        with pytest.raises(HiveUnreachableError, match=r"set_ugi.*socket\.timeout"):
            client.change("drop_table", dbname="d", name="t", deleteData=False)


def test_a_metastore_whose_answer_has_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HiveClient, "_introduce", lambda *_: None)
    monkeypatch.setattr(hive_client, "_MAX_MESSAGE", 10_000_000)
    with (
        serving(endless_reply) as uri,
        pytest.raises(CatalogUnavailableError, match="more than 10000000 bytes"),
    ):
        hive(uri, "600s").call("get_all_databases")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (silent, r"after 0\.3 s"),
        (slow_headers, r"after 0\.3 s"),
        (slow_body, r"after 0\.3 s"),
        (endless_body, "more than 1000000 bytes"),
    ],
)
def test_a_glue_that_does_not_end_its_answer(
    answer: Answer, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glue_client, "_REQUEST_S", 0.3)
    monkeypatch.setattr(glue_client, "_LARGEST_ANSWER", 1_000_000)
    with serving(answer) as uri:
        client = GlueClient("c", glue_properties(uri, str(tmp_path)))
        started = time.monotonic()
        with pytest.raises(CatalogUnavailableError, match=rf"127\.0\.0\.1.*get_table.*{message}"):
            client.call("get_table", DatabaseName="d", Name="t")
        with pytest.raises(CommitStateUnknownError, match=message):
            client.change("update_table", DatabaseName="d", TableInput={"Name": "t"})
        assert time.monotonic() - started < 5


def test_reused_connection_to_glue_has_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glue_client, "_REQUEST_S", 0.3)
    with serving(partial(whole_then, slow_body)) as uri:
        client = GlueClient("c", glue_properties(uri, str(tmp_path)))
        assert "ResponseMetadata" in client.call("get_databases")
        with pytest.raises(CatalogUnavailableError, match=r"after 0\.3 s"):
            client.call("get_table", DatabaseName="d", Name="t")


def test_a_list_of_glue_without_end_is_an_error(tmp_path: Path) -> None:
    page = b'{"DatabaseList": [{"Name": "d"}], "NextToken": "again"}'

    def answer(send: Send, _ended: threading.Event) -> None:
        send(OK + f"Connection: close\r\nContent-Length: {len(page)}\r\n\r\n".encode() + page)

    with serving(answer) as uri:
        client = GlueClient("c", glue_properties(uri, str(tmp_path)))
        with pytest.raises(CatalogError, match="same next page"):
            list(client.pages("get_databases", "DatabaseList"))
