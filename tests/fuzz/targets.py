"""What a fuzz target is: how an input is made from a seed, and the parser it is given to."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Target:
    """One parser. `parse` may raise errors of our own and nothing else; what it returns is right.

    `in_tests` is how many of the cases a test run tries: the parser's cost per case bounds it.
    """

    name: str
    mutate: Callable[[Random], Any]
    parse: Callable[[Any], None]
    library_ends: tuple[str, ...] = ()
    """Last words of libraries that end the process on some inputs: counted, and no problem."""
    cases: int = 10_000
    in_tests: int = 1_000

    def input_of(self, case: int) -> Any:
        """The input of a case, the same in every run."""
        limit = sys.getrecursionlimit()
        # what is nested deeply is made by recursion too
        sys.setrecursionlimit(20_000)
        try:
            return self.mutate(Random(f"{self.name}:{case}"))
        finally:
            sys.setrecursionlimit(limit)
