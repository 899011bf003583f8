"""Prints what the pandas API on Spark and pandera do with tables, as JSON; run with a folder."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import pandera.pyspark as pa
import pyspark.pandas as ps
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types


def main() -> None:
    """Read, write, change and check tables."""
    folder = sys.argv[1]
    warnings.simplefilter("ignore")
    prefix = "spark.sql.catalog.lake"
    settings: dict[str, Any] = {
        prefix: "iceberg_pyspark",
        f"{prefix}.warehouse": f"{folder}/lake",
        "spark.ui.enabled": "false",
    }
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.sql("CREATE NAMESPACE lake.db")
    spark.sql("CREATE TABLE lake.db.t AS VALUES (1, 'a'), (2, 'b'), (3, NULL) AS t(id, v)")
    frame: Any = ps.read_table("lake.db.t", index_col="id")

    def rows(of: Any) -> list[list[Any]]:
        values: list[list[Any]] = of.sort_values("id").to_pandas().values.tolist()
        return values

    found: dict[str, Any] = {"read_table": rows(ps.read_table("lake.db.t"))}
    frame.to_table("lake.db.copy", index_col="id")
    frame.to_table("lake.db.copy", mode="append", index_col="id")
    found["appended"] = rows(ps.read_table("lake.db.copy"))
    distinct: Any = ps.read_table("lake.db.copy").drop_duplicates()
    distinct.to_table("lake.db.copy", mode="overwrite")
    found["of itself"] = rows(ps.read_table("lake.db.copy"))
    query = "SELECT t.id, f.v FROM lake.db.t t JOIN {f} f ON t.v = f.v"
    found["sql"] = rows(ps.sql(query, f=frame))
    path, by_python = f"{folder}/files", {"format": "iceberg-py"}
    for _ in range(2):
        frame.spark.to_spark_io(path, mode="overwrite", index_col="id", **by_python)
    found["read_spark_io"] = rows(ps.read_spark_io(path, **by_python))
    found["filter"] = rows(ps.read_spark_io(path, filter="id > 1", columns="id,v", **by_python))

    schema = pa.DataFrameSchema(
        {
            "id": pa.Column(spark_types.IntegerType(), pa.Check.gt(1)),
            "v": pa.Column(spark_types.StringType(), nullable=False),
        }
    )
    for name, checked in (
        ("pandera", spark.table("lake.db.t")),
        ("pandera of files", spark.read.format("iceberg-py").load(path)),
        ("pandera of right rows", spark.table("lake.db.t").where("id = 2")),
    ):
        errors = schema.validate(checked).pandera.errors
        kinds = [kind for group in errors.values() for kind in group.values()]
        found[name] = sorted(error["check"] for kind in kinds for error in kind)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
