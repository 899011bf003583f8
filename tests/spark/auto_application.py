"""Sessions that get Iceberg without a call of `install`; prints what they do as one line of JSON.

`early` imports `iceberg_pyspark.auto` first, `late` where a session exists, `never` only the
package. One process has one such order.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any


def catalog(name: str, folder: Path) -> dict[str, str]:
    """Return the settings of a catalog."""
    prefix = f"spark.sql.catalog.{name}"
    return {
        prefix: "iceberg_pyspark",
        f"{prefix}.type": "hadoop",
        f"{prefix}.warehouse": str(folder),
    }


def rows(spark: Any, name: str) -> list[list[Any]]:
    """Write and read a table of a catalog."""
    spark.sql(f"CREATE OR REPLACE TABLE {name}.db.t AS SELECT 1 AS id")
    return [list(row) for row in spark.table(f"{name}.db.t").collect()]


def error(spark: Any, name: str) -> str:
    """Return the class and the text of the error of a query."""
    try:
        spark.sql(f"SELECT * FROM {name}.db.t").collect()
    except Exception as e:  # noqa: BLE001
        return f"{type(e).__name__}: {e}"
    return ""


def configured(spark: Any, settings: Mapping[str, str]) -> Any:
    """Change a session's settings."""
    for key, value in settings.items():
        spark.conf.set(key, value)
    return spark


def early(start: Any, folder: Path) -> dict[str, Any]:
    """A session that first asks for nothing, and those that are made beside it."""
    import_module("iceberg_pyspark.auto")
    results: dict[str, Any] = {"imports pyspark": "pyspark" in sys.modules}
    spark = start({})
    results["installs unasked"] = "iceberg_pyspark.spark.session" in sys.modules
    configured(spark, catalog("set", folder))
    results["conf.set"] = rows(spark, "set")
    results["newSession"] = rows(configured(spark.newSession(), catalog("new", folder)), "new")
    session_class = import_module("pyspark.sql").SparkSession
    copied = session_class(spark.sparkContext, spark._jsparkSession.cloneSession())
    results["cloneSession"] = rows(copied, "set")
    results["getOrCreate"] = rows(start(catalog("more", folder)), "more")
    return results


def late(start: Any, folder: Path) -> dict[str, Any]:
    """A session that exists and asks."""
    spark = start(catalog("lake", folder))
    import_module("iceberg_pyspark.auto")
    import_module("iceberg_pyspark.auto")
    return {"existing": rows(spark, "lake"), "of the context": rows(spark.newSession(), "lake")}


def never(start: Any, folder: Path) -> dict[str, Any]:
    """A session without us."""
    import_module("iceberg_pyspark")
    spark = start({**catalog("lake", folder), "spark.sql.catalog.other": "elsewhere.Catalog"})
    return {"error": error(spark, "lake"), "other": error(spark, "other")}


def main() -> None:
    """Run one order."""
    order, folder = sys.argv[1], Path(sys.argv[2])

    def start(settings: Mapping[str, str]) -> Any:
        session_class = import_module("pyspark.sql").SparkSession
        own = {"spark.ui.enabled": "false", "spark.local.dir": str(folder / "local")}
        builder = session_class.builder.master("local[1]")
        return builder.config(map={**own, **settings}).getOrCreate()

    run = {"early": early, "late": late, "never": never}[order]
    sys.stdout.write(json.dumps(run(start, folder)) + "\n")


if __name__ == "__main__":
    main()
