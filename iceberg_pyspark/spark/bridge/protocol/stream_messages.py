"""Requests about streams: their offsets, which are texts of Python's, and what is left to read."""

from __future__ import annotations

from collections.abc import Mapping

from iceberg_pyspark.spark.bridge.protocol.messages import Request, Response


class StreamOpen(Request, frozen=True, kw_only=True):
    """The request to begin or to continue a stream."""

    session: str
    handle: str | None
    """The handle of a catalog's table; None if the options name the table."""

    options: Mapping[str, str]
    locations: Mapping[str, str]
    """The session's settings of the locations that tables may read."""


class StreamHandle(Response, frozen=True, kw_only=True):
    """The name of an open stream in further requests."""

    stream: str


class StreamRequest(Request, frozen=True, kw_only=True):
    """A request about an open stream."""

    stream: str


class StreamBegin(StreamRequest, frozen=True, kw_only=True):
    """The request for the first offset of a new stream."""


class StreamNext(StreamRequest, frozen=True, kw_only=True):
    """The request for the end of the batch that begins at an offset."""

    start: str
    until: str | None
    """The offset up to which the stream reads; None: as far as the table goes."""

    limited: bool
    """Whether the options limit the batch."""


class StreamEnd(StreamRequest, frozen=True, kw_only=True):
    """The request for the end of all that the table has now."""


class StreamPlace(Response, frozen=True, kw_only=True):
    """An offset, or None if there is nothing to read."""

    offset: str | None


class StreamPending(StreamRequest, frozen=True, kw_only=True):
    """The request for what the stream has not read after an offset."""

    offset: str


class StreamBacklog(Response, frozen=True, kw_only=True):
    """What a stream has not read, or None if that is not known."""

    files: int | None
    rows: int | None
    size: int | None


class StreamClose(StreamRequest, frozen=True, kw_only=True):
    """The request to forget a stream."""
