"""Combinations of test parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

MORE = pytest.mark.more("the tests beside it have each of its values")


def pairs(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """Return pairs that cover every value of both lists; the other pairs are marked `more`."""
    fewer = min(len(first), len(second))
    return [
        pytest.param(one, other, marks=() if i % fewer == j % fewer else MORE)
        for i, one in enumerate(first)
        for j, other in enumerate(second)
    ]
