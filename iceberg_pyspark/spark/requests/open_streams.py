"""The streams of running queries, by their handles."""

from __future__ import annotations

import threading
import uuid

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.data_source.open_stream import OpenStream


class OpenStreams:
    """The open streams by their handles; safe to use from several threads."""

    def __init__(self) -> None:
        self._streams: dict[str, OpenStream] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._streams)

    def add(self, stream: OpenStream) -> str:
        """Keep a stream until `close`, and return its handle."""
        handle = str(uuid.uuid4())
        with self._lock:
            self._streams[handle] = stream
        return handle

    def of(self, handle: str) -> OpenStream:
        """Return the stream of a handle."""
        with self._lock:
            stream = self._streams.get(handle)
        if stream is None:
            raise InvalidRequestError(
                "the stream was opened by another Python process, which has ended: restart the "
                "query, which goes on from its checkpoint"
            )
        return stream

    def close(self, handle: str) -> None:
        """Forget a stream, if it is known."""
        with self._lock:
            self._streams.pop(handle, None)
