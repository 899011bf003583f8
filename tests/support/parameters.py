"""Parameters of tests, some of which run nightly only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


def cases(
    names: str | Sequence[str],
    *,
    fast: Iterable[Any],
    nightly: Iterable[Any],
    ids: Callable[[Any], str | None] | None = None,
    indirect: bool = False,
) -> pytest.MarkDecorator:
    """Parametrize a test, as `pytest.mark.parametrize` does; the values `nightly` are so marked."""
    is_one = isinstance(names, str) and "," not in names
    late = [
        value._replace(marks=(*value.marks, pytest.mark.nightly))
        if isinstance(value, type(pytest.param()))
        else pytest.param(*([value] if is_one else value), marks=pytest.mark.nightly)
        for value in nightly
    ]
    return pytest.mark.parametrize(names, [*fast, *late], ids=ids, indirect=indirect)


def pairs(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """Return pairs; those that cover every value of both lists are not nightly."""
    fewer = min(len(first), len(second))
    return [
        pytest.param(one, other, marks=() if i % fewer == j % fewer else pytest.mark.nightly)
        for i, one in enumerate(first)
        for j, other in enumerate(second)
    ]
