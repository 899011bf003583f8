"""Lists of the JVM's as lists of Python's."""

from __future__ import annotations

from typing import Any


def items(java_list: Any) -> list[Any]:
    """The items of a list, each got by its place.

    Iterating ends with an exception of the JVM's, which pyspark looks into for 20 ms.
    """
    return [java_list.get(i) for i in range(java_list.size())]
