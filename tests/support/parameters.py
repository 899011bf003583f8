"""Parameters of tests that go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

MORE = pytest.mark.more("the tests beside it have each of its values")


def pairs(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """Every value of both, with one of the other; all pairs where tests marked `more` run."""
    fewer = min(len(first), len(second))
    return [
        pytest.param(one, other, marks=() if i % fewer == j % fewer else MORE)
        for i, one in enumerate(first)
        for j, other in enumerate(second)
    ]
