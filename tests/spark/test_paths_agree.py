"""Random tables and conditions: native rows, portable rows and a naive model's rows are equal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from iceberg_pyspark import Table, TableCatalog, install, load_catalog
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from tests.support.encrypted_tables import key_properties
from tests.support.frames import append_rows
from tests.support.history_model import Moment
from tests.support.naive_rows import read, shown
from tests.support.parameters import cases
from tests.support.plain_values import few_values
from tests.support.rows import plain_value
from tests.support.sql_conditions import (
    Column,
    Condition,
    both,
    columns_of,
    conditions,
    literal_text,
    order_of,
)
from tests.support.table_histories import a_history

OTHER_TYPES = (
    BooleanType(),
    IntegerType(),
    LongType(),
    DoubleType(),
    DecimalType(precision=9, scale=2),
    DecimalType(precision=38, scale=10),
    DateType(),
    TimestampType(),
    TimestamptzType(),
    UUIDType(),
    BinaryType(),
)


@pytest.fixture(scope="module")
def catalog(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TableCatalog]:
    """Yield the catalog `agree`, which Spark has too, with native scans."""
    folder = tmp_path_factory.mktemp("agree")
    warehouse, keys = str(folder), key_properties(folder)
    conf = {
        **{f"spark.sql.catalog.agree.{name}": value for name, value in keys.items()},
        "spark.sql.catalog.agree": "iceberg_pyspark",
        "spark.sql.catalog.agree.type": "hadoop",
        "spark.sql.catalog.agree.warehouse": warehouse,
        # Spark SQL refuses columns of type TIME without this setting.
        "spark.sql.timeType.enabled": "true",
    }
    for key, value in conf.items():
        spark.conf.set(key, value)
    session = install(spark)
    assert session.is_native
    yield load_catalog("agree", type="hadoop", warehouse=warehouse, **keys)
    session.uninstall()
    for key in conf:
        spark.conf.unset(key)


@dataclass(frozen=True)
class Query:
    """A projection of the rows that satisfy a condition, in one snapshot."""

    table: Table
    moment: Moment
    columns: Sequence[Column]

    def expected(self, condition: Condition) -> Counter[str]:
        """Return the rows that the naive model selects."""
        struct = self.moment.schema.as_struct
        return self._counted((read(struct, stored) for stored in self.moment.live), condition)

    def without_spark(self, condition: Condition) -> Counter[str]:
        """Return the rows of our own reader, which applies the condition itself."""
        selector = SnapshotSelector(snapshot_id=self.moment.snapshot_id)
        result = self.table.scan(filter=condition.text, selector=selector).to_arrow()
        return self._counted(result.to_pylist(), None)

    def _counted(
        self, rows: Iterable[Mapping[str, Any]], condition: Condition | None
    ) -> Counter[str]:
        return Counter(
            repr(tuple(shown(c.type, c.of(row)) for c in self.columns))
            for row in rows
            if condition is None or condition.decide(row) is True
        )

    def in_catalog(self, spark: SparkSession) -> DataFrame:
        """Return the rows through Spark SQL, without a condition."""
        reader = spark.read
        if self.moment.snapshot_id is not None:
            reader = reader.option("versionAsOf", self.moment.snapshot_id)
        return reader.table(f"agree.{self.table.identifier}")

    def as_source(
        self, spark: SparkSession, condition: Condition | None, *, native: bool
    ) -> DataFrame:
        """Return the rows through `format("iceberg-py")`, which applies the condition itself."""
        reader = spark.read.format("iceberg-py").option("native", native)
        if condition is not None:
            reader = reader.option("filter", condition.text)
        if self.moment.snapshot_id is not None:
            reader = reader.option("snapshot-id", self.moment.snapshot_id)
        return reader.load(self.table.location)

    def select_columns(self, frame: DataFrame) -> DataFrame:
        """Select the columns under generated names, since two columns may have the same name."""
        return frame.select(*[sql.expr(c.text).alias(f"c{i}") for i, c in enumerate(self.columns)])


def collected(frames: Sequence[DataFrame]) -> list[Counter[str]]:
    """Return the rows of each frame; a single job computes all frames."""
    marked = [frame.select(sql.lit(i).alias("case"), "*") for i, frame in enumerate(frames)]
    result = [Counter[str]() for _ in frames]
    for row in reduce(DataFrame.union, marked).collect():
        case, *values = plain_value(row)
        result[case][repr(tuple(values))] += 1
    return result


@settings(max_examples=settings().max_examples // 6, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_native_rows_are_portable_rows_are_the_naive_ones(
    spark: SparkSession, catalog: TableCatalog, data: st.DataObject
) -> None:
    history = a_history(data.draw, catalog, key_id="keyA")
    moments = st.sampled_from(history.moments) if history.moments else st.nothing()
    moment = data.draw(st.just(history.now()) | moments, label="moment")
    struct = moment.schema.as_struct
    every_column = st.sampled_from(list(columns_of(struct)))
    columns = data.draw(st.lists(every_column, min_size=1, max_size=4, unique=True))
    predicates = data.draw(st.lists(conditions(struct), min_size=2, max_size=3))
    query = Query(history.table, moment, columns)
    note(f"{moment.snapshot_id}: {[c.text for c in columns]}, {predicates}")
    frames = [query.in_catalog(spark).where(c.text) for c in predicates]
    cases = list(predicates)
    first = predicates[0] if predicates[0].is_filter else None
    for native in (True, False):
        frames.append(query.as_source(spark, first, native=native).where(predicates[1].text))
        cases.append(predicates[1] if first is None else both(first, predicates[1]))
    actual = collected([query.select_columns(frame) for frame in frames])
    for rows, condition in zip(actual, cases, strict=True):
        assert rows == query.expected(condition), condition
    for condition in predicates:
        if condition.is_filter:
            assert query.without_spark(condition) == query.expected(condition), condition


@cases("type_", fast=[FloatType(), StringType()], nightly=OTHER_TYPES, ids=str)
def test_each_value_is_found_by_its_literal(
    spark: SparkSession, catalog: TableCatalog, type_: PrimitiveType
) -> None:
    """Each file has one value: its bounds tell whether a condition may keep it."""
    values = few_values(type_)
    fields = (
        NestedField(field_id=1, name="number", type=IntegerType()),
        NestedField(field_id=2, name="c", type=type_),
    )
    name = re.sub(r"\W", "_", str(type_))
    table = catalog.create_table(f"literals.{name}", Schema(fields=fields))
    for i, value in enumerate(values):
        append_rows(table, [{"number": i, "c": value}])
    frame = spark.table(f"agree.{table.identifier}")
    conditions = [f"c = {literal_text(type_, v)}" for v in values]
    rows = collected([frame.where(c).select("number") for c in conditions])
    for condition, value, actual in zip(conditions, values, rows, strict=True):
        expected = [i for i, v in enumerate(values) if order_of(v, value) == 0]
        assert actual == Counter(repr((i,)) for i in expected), condition
        found = table.scan(filter=condition).to_arrow()["number"].to_pylist()
        assert sorted(found) == expected, condition
