"""Every transform on every type that Spark can partition by: pruned files never have matching rows.

One table has a column and a partition field for each pair, and no metrics, so only partition values
prune files. The rows that a filter selects are compared with Spark's own evaluation, and the number
of remaining files with Java's plan (docs/conformance.md 52-58, 62).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from iceberg_pyspark import Table
from tests.support.oracle import Oracle
from tests.support.readings import (
    EVERY_READ,
    assert_read_alike,
    java_planned_files,
    our_table,
    rows_selected,
)
from tests.support.rows import PlainRow, arrow_rows

pytestmark = pytest.mark.nightly

BOOLEANS = ["true", "false"]
INTS = ["-2147483648", "-11", "-1", "0", "7", "34", "2147483647"]
LONGS = ["-9223372036854775808", "-11", "-1", "0", "7", "34", "9223372036854775807"]
FLOATS = [f"float('{v}')" for v in ("NaN", "-0.0", "2.5", "-1.5", "0.0", "Infinity")]
DOUBLES = [text.replace("float", "double") for text in FLOATS]
DECIMALS = [f"{v}BD" for v in ("-10.65", "-0.01", "0.00", "10.65", "9999999.99")]
STRINGS = ["''", "'a/b c%=é'", "'null'", "'iceberg'", "'𐍈𐍈𐍈x'", "'ice+berg&?#'"]
BINARIES = ["X''", "X'00FF'", "X'00FF00'", "X'FFFFFF'", "X'6162'"]
DATES = [
    f"DATE '{d}'" for d in ("0001-01-01", "1969-12-31", "1970-01-01", "2017-11-16", "2020-02-29")
]
INSTANTS = [
    "0001-01-02 00:00:00",
    "1969-12-31 23:59:59.999999",
    "1970-01-01 00:00:00",
    "2017-11-16 22:31:08.000001",
    "2020-02-29 23:00:00",
]
TIMESTAMPS = [f"TIMESTAMP '{t}'" for t in INSTANTS]
LOCAL_TIMES = [f"TIMESTAMP_NTZ '{t}'" for t in INSTANTS]

TYPES: Mapping[str, tuple[str, list[str]]] = {
    "bool": ("BOOLEAN", BOOLEANS),
    "int": ("INT", INTS),
    "long": ("BIGINT", LONGS),
    "float": ("FLOAT", FLOATS),
    "double": ("DOUBLE", DOUBLES),
    "dec": ("DECIMAL(9, 2)", DECIMALS),
    "str": ("STRING", STRINGS),
    "bin": ("BINARY", BINARIES),
    "date": ("DATE", DATES),
    "ts": ("TIMESTAMP", TIMESTAMPS),
    "ntz": ("TIMESTAMP_NTZ", LOCAL_TIMES),
}
TRANSFORMS = {
    "i": ("{}", list(TYPES)),
    "b": ("bucket(5, {})", ["int", "long", "dec", "str", "bin", "date", "ts", "ntz"]),
    "t": ("truncate(2, {})", ["int", "long", "dec", "str", "bin"]),
    "y": ("years({})", ["date", "ts", "ntz"]),
    "m": ("months({})", ["date", "ts", "ntz"]),
    "d": ("days({})", ["date", "ts", "ntz"]),
    "h": ("hours({})", ["ts", "ntz"]),
}
COLUMNS = {
    f"{kind}_{type_}": (transform, *TYPES[type_])
    for kind, (transform, types) in TRANSFORMS.items()
    for type_ in types
}
ALWAYS = (
    *("i_float", "i_str", "i_date", "b_long", "b_str", "b_ts", "t_int", "t_dec", "t_str"),
    *("y_date", "m_ts", "d_date", "d_ntz", "h_ts"),
)
"""At least one column of each transform: the columns whose filters `make test` has."""

ROWS = 8


def value(literals: list[str], row: int) -> str:
    return literals[row] if row < len(literals) else "null"


def filters_on(column: str) -> list[str]:
    _, _, literals = COLUMNS[column]
    # Java has no literal for NaN.
    usable = [text for text in literals if "NaN" not in text]
    some = usable[len(usable) // 2]
    result = [
        f"{column} IS NULL",
        f"{column} IS NOT NULL",
        f"{column} IN ({usable[1]}, {usable[-1]})",
        f"{column} = {usable[0]}",
        f"{column} = {some}",
        f"{column} != {some}",
        f"{column} < {some}",
        f"{column} >= {some}",
        f"NOT ({column} > {some})",
    ]
    if len(usable) < len(literals):
        result += [f"isnan({column})", f"NOT isnan({column})"]
    if column.endswith("_str"):
        result += [f"startswith({column}, '{p}')" for p in ("i", "ice", "𐍈", "𐍈𐍈𐍈")]
        result += [f"{column} NOT LIKE 'ice%'"]
    return result


MORE_THAN_JAVA = {
    # Java distinguishes the partition values 0.0 and -0.0; Spark and this package do not.
    "i_float = float('-0.0')": 1,
    "i_double = double('-0.0')": 1,
    # Java counts UTF-16 units where the specification counts characters, and loses the row.
    "startswith(t_str, '𐍈')": 1,
    # The day transform of a date is the identity, so `!=` can prune.
    "d_date != DATE '1970-01-01'": -1,
}
"""By filter, how many more files we keep than Java (negative: fewer); other plans are equal."""


def create_table(oracle: Oracle, version: int) -> str:
    """Create a table in which every row has its own data file."""
    name = f"java_sql.transforms.wide_{version}"
    columns = ", ".join(f"{column} {type_}" for column, (_, type_, _) in COLUMNS.items())
    fields = ", ".join(transform.format(column) for column, (transform, _, _) in COLUMNS.items())
    oracle.sql(
        f"CREATE TABLE {name} (id INT, {columns}) USING iceberg PARTITIONED BY ({fields}) "
        f"TBLPROPERTIES ('format-version' = '{version}', "
        "'write.metadata.metrics.default' = 'none', 'write.distribution-mode' = 'none', "
        "'write.spark.fanout.enabled' = 'true')"
    )
    rows = ", ".join(
        f"({row}, {', '.join(value(literals, row) for _, _, literals in COLUMNS.values())})"
        for row in range(ROWS)
    )
    oracle.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
    return name


@dataclass(frozen=True)
class WideTable:
    name: str
    ours: Table
    selected: dict[str, list[PlainRow]]
    """The rows that Spark selects for each filter, computed in a single job."""


@pytest.fixture(scope="module")
def wide(oracle: Oracle, request: pytest.FixtureRequest) -> WideTable:
    name = create_table(oracle, 2)
    tests = (item for item in request.session.items if item.parent is request.node)
    selected = {test.callspec.params.get("column") for test in tests if hasattr(test, "callspec")}
    filters = [text for column in COLUMNS if column in selected for text in filters_on(column)]
    return WideTable(name, our_table(oracle, name), rows_selected(oracle, name, filters))


@pytest.mark.parametrize(
    "column", [pytest.param(c, marks=[] if c in ALWAYS else [pytest.mark.nightly]) for c in COLUMNS]
)
def test_a_filter_reads_its_rows_and_the_files_that_java_reads(
    oracle: Oracle, wide: WideTable, column: str
) -> None:
    skipped = 0
    for text in filters_on(column):
        scan = wide.ours.scan(filter=text, columns=["id"])
        assert arrow_rows(scan.to_arrow()) == wide.selected[text], text
        kept_files = scan.describe().statistics.data_files_kept
        if "isnan" not in text:  # Java's scans ignore isnan filters.
            javas = java_planned_files(oracle, wide.name, text)
            assert kept_files == javas + MORE_THAN_JAVA.get(text, 0), text
        skipped += ROWS - kept_files
    assert skipped > ROWS


def test_full_scan_returns_all_rows_of_java(oracle: Oracle, wide: WideTable) -> None:
    rows = assert_read_alike(oracle, wide.name, through_spark=True)
    assert len(rows) == ROWS
    text = "i_str = 'iceberg' AND d_ts >= TIMESTAMP '2017-11-16 00:00:00'"
    where = oracle.sql(f"SELECT * FROM {wide.name} WHERE {text}")
    rows = assert_read_alike(oracle, wide.name, where, through_spark=EVERY_READ, filter=text)
    assert len(rows) == 1


@pytest.mark.parametrize("version", [1, 3])
def test_the_other_versions_are_pruned_alike(oracle: Oracle, version: int) -> None:
    name = create_table(oracle, version)
    assert_read_alike(oracle, name)
    filters = [
        f"{column} = {next(v for v in literals if 'NaN' not in v)}"
        for column, (_, _, literals) in COLUMNS.items()
    ]
    table = our_table(oracle, name)
    for text, expected in rows_selected(oracle, name, filters).items():
        scan = table.scan(filter=text, columns=["id"])
        assert arrow_rows(scan.to_arrow()) == expected, text
        assert 0 < scan.describe().statistics.data_files_kept < ROWS, text
