"""The functions of a catalog's namespace `system`: the same values and types as Java's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle

pytestmark = pytest.mark.nightly

VALUES = {
    "tinyint": "cast('-128' as tinyint), cast(-7 as tinyint), cast(7 as tinyint), null",
    "smallint": "cast('-32768' as smallint), cast(-7 as smallint), cast(32767 as smallint), null",
    "int": "cast('-2147483648' as int), -7, 0, 2147483647, null",
    "bigint": "cast('-9223372036854775808' as bigint), -7L, 9223372036854775807L, null",
    "decimal(3,2)": "-9.99, 9.99, 0.00, null",
    "decimal(9,2)": "cast(-12.34 as decimal(9,2)), cast(12.34 as decimal(9,2)), null",
    "decimal(18,4)": "cast(-12345678912345.6789 as decimal(18,4)), cast(0 as decimal(18,4)), null",
    "decimal(38,0)": "-99999999999999999999999999999999999999, cast(7 as decimal(38,0)), null",
    "decimal(38,10)": "cast('-12345678901234567890.1234567891' as decimal(38,10)), "
    "cast('9999999999999999999999999999.9999999999' as decimal(38,10)), null",
    "decimal(38,38)": "cast('-0.99999999999999999999999999999999999999' as decimal(38,38)), null",
    "string": "'', 'iceberg', 'ä😀öx', '\u0001', null",
    "binary": "X'', X'0102030405', null",
    "date": "date'1969-12-31', date'1970-01-01', date'0001-01-01', date'9999-12-31', null",
    "timestamp": "timestamp'1969-12-31 23:59:59.999999', timestamp'2026-03-29 02:30:00', null",
    "timestamp_ntz": "timestamp_ntz'1969-12-31 23:59:59.999999', timestamp_ntz'2026-03-29', null",
}
OTHERS = ("true", "1.5f", "1.5d", "array(1)", "map(1, 2)", "named_struct('a', 1)", "null",
          "interval 1 month", "interval 1 day", "parse_json('1')")  # fmt: skip
TWO = ("bucket(16, v)", "bucket(cast(7 as smallint), v)", "truncate(1, v)", "truncate(10, v)",
       "truncate(200, v)", "truncate(70000, v)", "truncate(w, v)")  # fmt: skip
ONE = ("years(v)", "months(v)", "days(v)", "hours(v)")


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as installed:
        yield installed


def _answer(lake: Oracle, catalog: str, function: str, rows: str) -> object:
    """Return the type and the values of a function, or None if it refuses the type."""
    try:
        frame = lake.sql(f"select v, {catalog}.system.{function} as f from {rows}")
        return frame.dtypes[1][1], frame.collect()
    except (PySparkException, Py4JJavaError):
        return None


@pytest.mark.parametrize("type_", VALUES)
def test_values_and_types_are_those_of_java(lake: Oracle, type_: str) -> None:
    values = ", ".join(f"({v}, 3)" for v in VALUES[type_].split(", "))
    rows = f"(select cast(v as {type_}) v, w from values {values} t(v, w))"
    answers = {
        f: [_answer(lake, c, f, rows) for c in ("lake", "java_hadoop")] for f in (*TWO, *ONE)
    }
    assert answers["bucket(16, v)"][1] is not None
    for function, (ours, javas) in answers.items():
        assert ours == javas, function
    # constants are folded by Spark's interpreter, the rows above by compiled code
    for value in VALUES[type_].split(", "):
        row = f"(select cast({value} as {type_}) v, 3 w)"
        function = "truncate(10, v)" if answers["truncate(10, v)"][1] is not None else "days(v)"
        ours, javas = (_answer(lake, c, function, row) for c in ("lake", "java_hadoop"))
        assert ours == javas, value


def test_other_types_are_refused_as_by_java(lake: Oracle) -> None:
    for value in OTHERS:
        for function in ("bucket(4, v)", "truncate(4, v)", *ONE):
            row = f"(select {value} v)"
            assert _answer(lake, "java_hadoop", function, row) is None, (function, value)
            assert _answer(lake, "lake", function, row) is None, (function, value)
