"""Maps a function over items in threads and keeps the order, for reads of files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")

READERS = 8


def threaded_map(
    function: Callable[[_T], _R], items: Sequence[_T], readers: int = READERS
) -> Iterator[_R]:
    """Yield the results of `map`, computed in threads; at most `readers` results wait."""
    if len(items) < 2:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(readers, thread_name_prefix="read-in-order") as pool:
        waiting: deque[Future[_R]] = deque()
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > readers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
