"""Fuzz targets: how an input is created from a seed, and which parser takes it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Target:
    """One parser. `parse` may only raise our own errors; otherwise its result must be right.

    `in_tests` is the number of cases in `make test`, chosen by the parser's cost per case.
    """

    name: str
    mutate: Callable[[Random], Any]
    parse: Callable[[Any], None]
    library_ends: tuple[str, ...] = ()
    """Messages of libraries that end the process on some inputs; counted, but not as problems."""
    cases: int = 10_000
    in_tests: int = 200

    def input_of(self, case: int) -> Any:
        """Return the input of a case, the same in every run."""
        limit = sys.getrecursionlimit()
        # Building a deeply nested input is recursive too.
        sys.setrecursionlimit(20_000)
        try:
            return self.mutate(Random(f"{self.name}:{case}"))
        finally:
            sys.setrecursionlimit(limit)
