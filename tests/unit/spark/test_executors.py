"""Which masters of Spark have executors apart from the driver."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from iceberg_pyspark.spark.write.executors import has_executors


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", False),
        ("local[2]", False),
        ("local[*]", False),
        ("local-cluster[2,1,768]", True),
        ("spark://host:7077", True),
        ("yarn", True),
    ],
)
def test_masters_with_executors(master: str, expected: bool) -> None:
    context: Any = SimpleNamespace(master=master)
    assert has_executors(context) is expected
