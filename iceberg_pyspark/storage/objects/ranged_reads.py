"""Reads of files by HTTP, with the methods of obstore's stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from iceberg_pyspark.storage.objects.signed_requests import StoreAnswer
from iceberg_pyspark.storage.objects.store_errors import RequestError

_AT_ONCE = 4
_GAP_BYTES = 1 << 20


class _Range:
    """The bytes of an object or of a range of it."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data = data
        self.meta = {"size": size}

    def bytes(self) -> bytes:
        """Return the bytes."""
        return self._data


class RangedReads:
    """Reads of files and ranges; a subclass sends the requests."""

    def answer(
        self, method: str, name: str, span: str | None = None, length: int = 0
    ) -> StoreAnswer:
        """Return the answer, with status 200 or 206, to a request with the header `Range`.

        `length` is the number of bytes of the range.

        Raises `FileNotFoundError` if there is no such file, else `RequestError`.
        """
        raise NotImplementedError

    def get(self, name: str, *, options: Mapping[str, Any] | None = None) -> _Range:
        """Return a file, or its end with `{"range": {"suffix": <bytes>}}`."""
        suffix = None if options is None else options["range"]["suffix"]
        answer = self.answer(
            "GET", name, None if suffix is None else f"bytes=-{suffix}", suffix or 0
        )
        if answer.status == 200:
            return _Range(answer.body, len(answer.body))
        size = answer.headers.get("Content-Range", "").rpartition("/")[2]
        if not size.isdigit():
            raise RequestError("the store answered a range without the file's size")
        return _Range(answer.body, int(size))

    def get_range(self, name: str, *, start: int, length: int) -> bytes:
        """Return bytes of a file; fewer than `length` if the file ends earlier."""
        answer = self.answer("GET", name, f"bytes={start}-{start + length - 1}", length)
        return answer.body if answer.status == 206 else answer.body[start : start + length]

    def get_ranges(
        self, name: str, *, starts: Sequence[int], ends: Sequence[int]
    ) -> list[memoryview]:
        """Return several ranges; neighbouring ranges are fetched with one request."""
        spans = _merge_ranges(sorted(zip(starts, ends, strict=True)))
        if len(spans) == 1:
            (first, last), *_ = spans
            data = [self.get_range(name, start=first, length=last - first)]
        else:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                read = pool.map(
                    lambda s: self.get_range(name, start=s[0], length=s[1] - s[0]), spans
                )
                data = list(read)
        ranges = []
        for start, end in zip(starts, ends, strict=True):
            number = next(n for n, s in enumerate(spans) if s[0] <= start and end <= s[1])
            offset = start - spans[number][0]
            ranges.append(memoryview(data[number])[offset : offset + end - start])
        return ranges

    def head(self, name: str) -> dict[str, int]:
        """Return the file's size as `{"size": <bytes>}`."""
        size = self.answer("HEAD", name).headers.get("Content-Length", "")
        if not size.isdigit():
            raise RequestError("the store did not say how large the file is")
        return {"size": int(size)}


def _merge_ranges(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for start, end in ranges:
        if spans and start <= spans[-1][1] + _GAP_BYTES:
            spans[-1] = spans[-1][0], max(spans[-1][1], end)
        else:
            spans.append((start, end))
    return spans
