"""Maps a function over items in threads and keeps the order, for reads of files."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from iceberg_pyspark.storage.files.local import is_local

_T = TypeVar("_T")
_R = TypeVar("_R")

_READERS = 8
_PROCESSORS = os.cpu_count() or 1


def threaded_map(
    function: Callable[[_T], _R], items: Sequence[_T], location_of: Callable[[_T], str]
) -> Iterator[_R]:
    """Yield the results of `map`, computed in threads, each of which may be one result ahead.

    `location_of` returns a file that the function reads. Reads of local files hardly wait: more
    threads than processors would only take the interpreter's lock from each other.
    """
    if len(items) < 2:
        yield from map(function, items)
        return
    readers = min(_READERS, _PROCESSORS) if is_local(location_of(items[0])) else _READERS
    with ThreadPoolExecutor(readers, thread_name_prefix="read-in-order") as pool:
        waiting: deque[Future[_R]] = deque()
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > readers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
