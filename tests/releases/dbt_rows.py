"""Prints the rows that a dbt project has made, as JSON; run with a target of its profile."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import yaml
from pyspark.sql import SparkSession

TABLES = ("orders", "customers", "large_orders", "latest_orders")
QUERIES = {
    **{name: f"SELECT * FROM shop.{name}" for name in TABLES},
    "orders_history": "SELECT id, amount, dbt_valid_from, dbt_valid_to FROM shop.orders_history",
    **{f"commits of {n}": f"SELECT operation FROM shop.{n}.snapshots" for n in TABLES[3:]},
}


def main() -> None:
    """Run the queries in a session with the target's settings, made as dbt-spark makes it."""
    [profile] = yaml.safe_load(Path("profiles.yml").read_text(encoding="utf-8")).values()
    settings = profile["outputs"][sys.argv[1]]["server_side_parameters"]
    spark = SparkSession.builder.enableHiveSupport().config(map=settings).getOrCreate()
    rows = {
        name: sorted([list(map(str, row)) for row in spark.sql(query).collect()])
        for name, query in QUERIES.items()
    }
    sys.stdout.write(json.dumps(rows) + "\n")


if __name__ == "__main__":
    main()
