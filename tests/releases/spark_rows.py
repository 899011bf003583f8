"""Makes a session with settings, runs statements in it, and prints the rows of queries as JSON.

The standard input is an object with `settings`, `statements` and, by their names, `queries`.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession


def main() -> None:
    """Run the statements and the queries in a session made as tools make it: without install()."""
    work = json.load(sys.stdin)
    spark = SparkSession.builder.enableHiveSupport().config(map=work["settings"]).getOrCreate()
    for statement in work["statements"]:
        spark.sql(statement)
    rows = {
        name: sorted([list(map(str, row)) for row in spark.sql(query).collect()])
        for name, query in work["queries"].items()
    }
    sys.stdout.write(f"\n{json.dumps(rows)}\n")


if __name__ == "__main__":
    main()
