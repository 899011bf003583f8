"""A file in each kind of object store at one address, for servers that a test answers for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

SECRET = "c2VjcmV0"
"""The value of every key and token."""

StoreAt: TypeAlias = Callable[[str], tuple[str, dict[str, str]]]
"""Returns a file's location and the properties of its store, for a server's address."""


def s3_store(uri: str) -> tuple[str, dict[str, str]]:
    properties = {
        "s3.endpoint": uri,
        "s3.region": "eu-1",
        "s3.access-key-id": "key",
        "s3.secret-access-key": SECRET,
        "s3.session-token": SECRET,
    }
    return "s3://bucket/file", properties


def google_store(uri: str) -> tuple[str, dict[str, str]]:
    return "gs://bucket/file", {"gcs.service.host": uri, "gcs.oauth2.token": SECRET}


def azure_store(uri: str) -> tuple[str, dict[str, str]]:
    properties = {
        "adls.blob-storage-authority": uri.removeprefix("http://"),
        "adls.blob-storage-scheme": "http",
        "adls.sas-token": f"sv=2026&sig={SECRET}",
    }
    return "abfss://container@account.dfs.core.windows.net/file", properties


STORES: tuple[StoreAt, ...] = (s3_store, google_store, azure_store)
