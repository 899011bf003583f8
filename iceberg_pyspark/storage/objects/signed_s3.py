"""A bucket of S3 whose requests a catalog's server signs, with the methods of obstore's stores.

obstore signs with keys and accepts no signing function; botocore accepts one, through an event of
its own client. Files need only a few calls, so this module implements them with the HTTP library of
the catalog. Every answer is examined once, and no retry of a library hides the outcome of a put
(done, refused, or unknown).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import quote, unquote_plus
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from iceberg_pyspark.storage.credentials.table_services import signing_of
from iceberg_pyspark.storage.objects.ranged_reads import RangedReads
from iceberg_pyspark.storage.objects.signed_requests import (
    RequestSettings,
    SignedRequests,
    StoreAnswer,
    error_code,
)
from iceberg_pyspark.storage.objects.store_errors import RequestError
from iceberg_pyspark.storage.store_properties import StoreSettings

_PART_BYTES = 8 << 20
_AT_ONCE = 4
_READ_TIMEOUT = timedelta(minutes=1)
_DEFAULT_REGION = "us-east-1"

# `SignedS3Store.list` hides the built-in `list` in annotations
_Objects = list[dict[str, Any]]
_Names = list[str]


class SignedS3Store(RangedReads):
    """One bucket; a missing object raises `FileNotFoundError`, a taken name `FileExistsError`."""

    def __init__(self, bucket: str, settings: StoreSettings, properties: Mapping[str, str]) -> None:
        config, client, retry = settings.config, settings.client_options, settings.retry_config
        region = config.get("region") or os.environ.get("AWS_REGION")
        region = region or os.environ.get("AWS_DEFAULT_REGION") or _DEFAULT_REGION
        self._requests = SignedRequests(
            signing_of(properties),
            RequestSettings(
                region=region,
                connect_timeout_s=client["connect_timeout"].total_seconds(),
                read_timeout_s=client.get("read_timeout", _READ_TIMEOUT).total_seconds(),
                request_s=client["timeout"].total_seconds(),
                retry_s=retry["retry_timeout"].total_seconds(),
                retries=retry["max_retries"],
                first_wait_s=retry["backoff"]["init_backoff"].total_seconds(),
                longest_wait_s=retry["backoff"]["max_backoff"].total_seconds(),
                proxy=client.get("proxy_url"),
            ),
        )
        self._root = _root(bucket, region, config)
        encryption = config.get("server_side_encryption"), config.get("sse_kms_key_id")
        names = ("x-amz-server-side-encryption", "x-amz-server-side-encryption-aws-kms-key-id")
        self._encryption = {n: v for n, v in zip(names, encryption, strict=True) if v}

    def __repr__(self) -> str:
        return f"SignedS3Store({self._root})"

    def put(
        self, name: str, data: bytes, *, mode: str = "overwrite", use_multipart: bool = False
    ) -> None:
        """Write an object with one request; with mode "create" an existing object is not replaced.

        A put with mode "create" is sent only once, because its outcome is unknown without an
        answer.
        """
        creates = mode == "create"
        headers = {**self._encryption, **({"if-none-match": "*"} if creates else {})}
        answer = self._requests.send(
            "PUT",
            self._uri(name),
            headers=headers,
            body=data,
            is_repeatable=not creates,
            creates=creates,
        )
        if creates and answer.status in (409, 412):
            raise FileExistsError(name)
        _check(answer)

    def delete(self, name: str) -> None:
        """Delete an object."""
        answer = self._requests.send("DELETE", self._uri(name))
        if answer.status != 404:
            _check(answer)

    def list(self, prefix: str | None, *, chunk_size: int = 1000) -> Iterator[_Objects]:
        """Yield pages of the objects below a folder."""
        for objects, _ in self._pages(prefix, {"max-keys": str(chunk_size)}):
            yield objects

    def list_with_delimiter(self, prefix: str | None) -> dict[str, Any]:
        """Return the subfolders and objects of one folder."""
        pages = list(self._pages(prefix, {"delimiter": "/"}))
        return {
            "common_prefixes": [folder for _, folders in pages for folder in folders],
            "objects": [o for objects, _ in pages for o in objects],
        }

    def open_writer(self, name: str) -> SignedUpload:
        """Return an upload, which sends a large object in parts."""
        return SignedUpload(self, name)

    def start_upload(self, name: str) -> str:
        """Start a multipart upload and return its id."""
        answer = self._requests.send(
            "POST", f"{self._uri(name)}?uploads=", headers=self._encryption, is_repeatable=False
        )
        _check(answer)
        upload = _xml(answer).findtext("{*}UploadId")
        if not upload:
            raise RequestError("the store started an upload without an id")
        return upload

    def put_part(self, name: str, upload: str, number: int, data: bytes) -> str:
        """Send a part and return its tag."""
        query = f"partNumber={number}&uploadId={_encode(upload)}"
        answer = self._requests.send("PUT", f"{self._uri(name)}?{query}", body=data)
        _check(answer)
        tag = answer.headers.get("ETag")
        if not tag:
            raise RequestError("the store accepted a part without returning its tag")
        return str(tag)

    def complete_upload(self, name: str, upload: str, tags: Sequence[str]) -> None:
        """Combine the parts into one object."""
        parts = "".join(
            f"<Part><PartNumber>{n}</PartNumber><ETag>{escape(tag)}</ETag></Part>"
            for n, tag in enumerate(tags, 1)
        )
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        uri = f"{self._uri(name)}?uploadId={_encode(upload)}"
        answer = self._requests.send("POST", uri, body=body, is_repeatable=False)
        _check(answer)
        # the store may report an error in the body of an answer with status 200
        if not _xml(answer).tag.endswith("CompleteMultipartUploadResult"):
            raise RequestError(f"the upload was not completed{error_code(answer.body)}")

    def abort_upload(self, name: str, upload: str) -> None:
        """Abort a multipart upload and remove its parts."""
        answer = self._requests.send("DELETE", f"{self._uri(name)}?uploadId={_encode(upload)}")
        if answer.status != 404:
            _check(answer)

    def answer(
        self, method: str, name: str, span: str | None = None, length: int = 0
    ) -> StoreAnswer:
        """Return the store's answer to a read; `span` is the header `Range` of `length` bytes."""
        unsigned_headers = {} if span is None else {"range": span}
        answer = self._requests.send(
            method, self._uri(name), unsigned_headers=unsigned_headers, length=length
        )
        if answer.status not in (200, 206):
            raise _error(answer)
        return answer

    def _pages(
        self, prefix: str | None, query: Mapping[str, str]
    ) -> Iterator[tuple[_Objects, _Names]]:
        parameters = {"list-type": "2", "encoding-type": "url", **query}
        parameters["prefix"] = f"{prefix}/" if prefix else ""
        used_tokens: set[str] = set()
        while True:
            text = "&".join(f"{k}={_encode(v)}" for k, v in sorted(parameters.items()))
            answer = self._requests.send("GET", f"{self._root}/?{text}")
            _check(answer)
            page = _xml(answer)
            yield _listing(page)
            token = page.findtext("{*}NextContinuationToken")
            if page.findtext("{*}IsTruncated") != "true":
                return
            if not token or token in used_tokens:
                raise RequestError("the store's listing would never end")
            used_tokens.add(token)
            parameters["continuation-token"] = token

    def _uri(self, name: str) -> str:
        return f"{self._root}/{quote(name, safe='/-_.~')}"


class SignedUpload:
    """A new object; a small object is one request, which is sent at the end."""

    def __init__(self, store: SignedS3Store, name: str) -> None:
        self._store = store
        self._name = name
        self._buffer = bytearray()
        self._upload: str | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._parts: list[Future[str]] = []

    def write(self, data: bytes) -> None:
        """Add bytes; complete parts are sent in background threads."""
        self._buffer += data
        while len(self._buffer) >= _PART_BYTES:
            self._send(bytes(self._buffer[:_PART_BYTES]))
            del self._buffer[:_PART_BYTES]

    def close(self) -> None:
        """Publish the object, or leave nothing if the upload fails."""
        if self._upload is None:
            self._store.put(self._name, bytes(self._buffer))
            return
        try:
            if self._buffer:
                self._send(bytes(self._buffer))
            tags = [part.result() for part in self._parts]
            self._store.complete_upload(self._name, self._upload, tags)
        except BaseException:
            self._abort()
            raise
        self._shut()

    def __exit__(self, *error: object) -> None:
        """Abort the upload."""
        self._buffer.clear()
        if self._upload is not None:
            self._abort()

    def _send(self, data: bytes) -> None:
        if self._upload is None or self._pool is None:
            self._upload = self._store.start_upload(self._name)
            self._pool = ThreadPoolExecutor(_AT_ONCE)
        waiting = len(self._parts) - _AT_ONCE
        if waiting >= 0:
            # wait, so that memory holds no more parts than are sent in parallel
            self._parts[waiting].result()
        number = len(self._parts) + 1
        self._parts.append(
            self._pool.submit(self._store.put_part, self._name, self._upload, number, data)
        )

    def _abort(self) -> None:
        self._shut()
        if self._upload is not None:
            self._store.abort_upload(self._name, self._upload)

    def _shut(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def _root(bucket: str, region: str, config: Mapping[str, Any]) -> str:
    """Return the address of a bucket; a custom endpoint has the bucket in the path by default."""
    endpoint = config.get("endpoint")
    if endpoint is None:
        suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
        if "." in bucket or not config.get("virtual_hosted_style_request"):
            return f"https://s3.{region}.{suffix}/{bucket}"
        return f"https://{bucket}.s3.{region}.{suffix}"
    root = str(endpoint).rstrip("/")
    return root if config.get("virtual_hosted_style_request") else f"{root}/{bucket}"


def _encode(text: str) -> str:
    return quote(text, safe="-_.~")


def _check(answer: StoreAnswer) -> None:
    if not 200 <= answer.status < 300:
        raise _error(answer)


def _error(answer: StoreAnswer) -> Exception:
    if answer.status == 404:
        return FileNotFoundError()
    if 300 <= answer.status < 400:
        return RequestError(
            f"the store answered with {answer.status}: the bucket is in another region; configure "
            "the right s3.region and s3.endpoint on the catalog's server"
        )
    return RequestError(f"the store answered with {answer.status}{error_code(answer.body)}")


def _xml(answer: StoreAnswer) -> ElementTree.Element:
    # S3 never sends entity definitions, which could expand to huge texts
    if b"<!DOCTYPE" in answer.body or b"<!ENTITY" in answer.body:
        raise RequestError("the store's answer is not XML of S3")
    try:
        return ElementTree.fromstring(answer.body)
    except ElementTree.ParseError:
        raise RequestError("the store's answer is not XML of S3") from None


def _listing(page: ElementTree.Element) -> tuple[_Objects, _Names]:
    encoded = page.findtext("{*}EncodingType") == "url"

    def plain(text: str | None) -> str:
        return unquote_plus(text or "") if encoded else text or ""

    try:
        objects = [
            {
                "path": plain(o.findtext("{*}Key")),
                "size": int(o.findtext("{*}Size") or ""),
                "last_modified": _time(o.findtext("{*}LastModified") or ""),
            }
            for o in page.findall("{*}Contents")
        ]
    except (ValueError, TypeError):
        raise RequestError("the store's listing has an object without size or time") from None
    folders = [
        plain(f.findtext("{*}Prefix")).rstrip("/") for f in page.findall("{*}CommonPrefixes")
    ]
    return objects, folders


def _time(text: str) -> datetime:
    # stores differ in the number of digits of the fraction
    second, _, fraction = text.rstrip("Z").partition(".")
    at = datetime.fromisoformat(second).replace(tzinfo=timezone.utc)
    return at + timedelta(milliseconds=int(fraction[:3].ljust(3, "0")) if fraction else 0)
