"""Tables of the kinds that other engines generate, in every snapshot, by every reader.

The seed fixes the filters; ICEBERG_RANDOM_QUERIES=<seed>:<how many> selects others.
"""

from __future__ import annotations

import pytest

from tests.support.generated_tables import assert_generated_alike
from tests.support.java_families import Family, families, make_table
from tests.support.java_tables import JavaTables

CASES = [pytest.param(f, v, id=f"{f.name}-{v}") for f in families() for v in f.versions]

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize(("family", "version"), CASES)
def test_every_reader_sees_the_same(java: JavaTables, family: Family, version: int) -> None:
    name = f"java_hadoop.generated.{family.name}_{version}"
    make_table(java.oracle, name, family, version)
    assert_generated_alike(
        java,
        name,
        by_spark="values" not in family.needs,
        by_pyiceberg="pyiceberg" not in family.needs,
        by_generics="generics" not in family.needs,
        filters="filters" not in family.needs,
    )
