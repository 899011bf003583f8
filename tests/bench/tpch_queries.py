"""The queries of the benches on TPC-H tables: the 22 as SQL, and some on DataFrames."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame

SETTINGS = {
    # the settings with which users of the connector get joins without a shuffle
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
}
_QUERIES = Path(__file__).with_name("tpch")

Q1_COLUMNS = "l_returnflag,l_linestatus,l_quantity,l_extendedprice,l_discount,l_tax,l_shipdate"
Q6_COLUMNS = "l_extendedprice,l_discount,l_quantity,l_shipdate"
Q6_FILTER = (
    "l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' "
    "AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24"
)


def tpch_queries() -> Mapping[str, str]:
    """Return the 22 TPC-H queries by name, with the parameters of TPC-H's validation run."""
    return {
        f"Q{int(path.stem[1:])}": path.read_text(encoding="utf-8")
        for path in sorted(_QUERIES.glob("q*.sql"))
    }


def q1(lineitem: DataFrame) -> object:
    """Run TPC-H query 1."""
    return lineitem.sparkSession.sql(
        """
        SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
               sum(l_extendedprice * (1 - l_discount)),
               sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
               avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
        FROM {lineitem} WHERE l_shipdate <= DATE '1998-09-02'
        GROUP BY l_returnflag, l_linestatus
        """,
        lineitem=lineitem,
    ).collect()


def q3(lineitem: DataFrame, orders: DataFrame, customer: DataFrame) -> object:
    """Run TPC-H query 3, a join of three tables."""
    return lineitem.sparkSession.sql(
        """
        SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate,
               o_shippriority
        FROM {customer}, {orders}, {lineitem}
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
          AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority
        ORDER BY revenue DESC, o_orderdate LIMIT 10
        """,
        lineitem=lineitem,
        orders=orders,
        customer=customer,
    ).collect()


def q6(lineitem: DataFrame) -> object:
    """Run TPC-H query 6."""
    return lineitem.where(Q6_FILTER).selectExpr("sum(l_extendedprice * l_discount)").collect()


def full_scan(frame: DataFrame) -> None:
    """Read every column of every row and discard the rows."""
    frame.write.format("noop").mode("overwrite").save()


def row_count(frame: DataFrame) -> object:
    return frame.selectExpr("count(*)").collect()


def point_lookup(lineitem: DataFrame) -> object:
    """Read the rows of one order."""
    return lineitem.where("l_orderkey = 3000001").collect()
