"""Planned files become tasks without garbage collection, which would examine each task in vain."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from iceberg_pyspark.planning.scan_plan import without_collection


@without_collection
def is_enabled() -> bool:
    return gc.isenabled()


@without_collection
def fails() -> None:
    raise KeyError


def test_garbage_is_not_collected_while_the_function_runs() -> None:
    assert not is_enabled()
    assert gc.isenabled()
    with pytest.raises(KeyError):
        fails()
    assert gc.isenabled()


def test_a_caller_that_has_switched_collection_off_finds_it_off() -> None:
    gc.disable()
    try:
        is_enabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_generator_function_is_refused() -> None:
    def numbers() -> Iterator[int]:
        yield 1

    with pytest.raises(TypeError, match="generator function"):
        without_collection(numbers)
