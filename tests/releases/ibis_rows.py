"""Prints what ibis does with tables of a catalog, as JSON; run with the catalog and a folder.

Nothing here installs Iceberg: the environment variable of `iceberg_pyspark.auto` is set.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
from typing import Any

import ibis
import pandas as pd
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

SCHEMA = {"id": "int64", "v": "string", "day": "date"}


def session(catalog: str, folder: str) -> SparkSession:
    """Return a session with a catalog of this package."""
    prefix = f"spark.sql.catalog.{catalog}"
    settings: dict[str, Any] = {
        prefix: "iceberg_pyspark",
        f"{prefix}.type": "sql",
        f"{prefix}.uri": f"sqlite:///{folder}/catalog.db",
        f"{prefix}.warehouse": f"{folder}/lake",
        "spark.sql.warehouse.dir": f"{folder}/spark",
        "spark.ui.enabled": "false",
    }
    if catalog != "spark_catalog":
        settings[f"{prefix}.default-namespace"] = "shop"
    return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


def frame(*rows: tuple[int, str]) -> pd.DataFrame:
    """Return rows with a number, a text, and the day of January of that number."""
    return pd.DataFrame([(*row, dt.date(2026, 1, row[0])) for row in rows], columns=list(SCHEMA))


def tables(con: Any) -> list[str]:
    """Return the tables that ibis lists, without the views that it makes of data frames."""
    return sorted(name for name in con.list_tables() if not name.startswith("ibis_"))


def main() -> None:
    """Make, change, read and drop tables, as one who knows only ibis does."""
    catalog, folder = sys.argv[1:]
    spark = session(catalog, folder)
    con = ibis.pyspark.connect(spark)
    con.create_database("shop", catalog=catalog, force=True)
    spark.catalog.setCurrentCatalog(catalog)
    spark.catalog.setCurrentDatabase("shop")

    def rows(table: Any) -> list[list[Any]]:
        values = table.order_by("id").select("id", "v").execute().values.tolist()
        return [[int(number), text] for number, text in values]

    found: dict[str, Any] = {"current": [con.current_catalog, con.current_database]}
    orders = con.create_table("orders", frame((1, "a"), (2, "b")), format="iceberg")
    con.insert("orders", ibis.memtable(frame((3, "c")), schema=SCHEMA))
    con.insert("orders", frame((4, "d")))
    found["inserted"] = rows(orders)
    con.upsert("orders", ibis.memtable(frame((4, "D"), (5, "e")), schema=SCHEMA), on="id")
    found["upserted"] = rows(orders)
    history = f"SELECT snapshot_id, operation FROM {catalog}.shop.orders.snapshots"
    snapshots = con.sql(f"{history} ORDER BY committed_at").execute()
    found["operations"] = snapshots.operation.tolist()
    first = snapshots.snapshot_id[0]
    found["first"] = rows(con.sql(f"SELECT * FROM orders VERSION AS OF {first}"))
    con.create_view("late", orders.filter(orders.day > dt.date(2026, 1, 3)))
    found["view"] = rows(con.table("late"))
    con.raw_sql("CREATE VIEW stored AS SELECT * FROM orders WHERE id > 4")
    found["stored view"] = rows(con.table("stored"))
    con.create_table("empty", schema=SCHEMA, format="iceberg", database=f"{catalog}.shop")
    con.rename_table("empty", "other")
    con.insert("other", orders, overwrite=True, database=f"{catalog}.shop")
    con.create_table("orders", frame((6, "f")), format="iceberg", overwrite=True)
    found["replaced"] = rows(con.table("orders", database=f"{catalog}.shop"))
    found["of another table"] = rows(con.table("other"))
    con.truncate_table("other")
    found["truncated"] = rows(con.table("other"))
    found["databases"] = "shop" in con.list_databases(catalog=catalog)
    found["tables"] = tables(con)
    try:
        con.drop_table("other")
        con.drop_table("orders", database=f"{catalog}.shop")
        con.drop_view("late")
        con.drop_view("stored")
        found["dropped"] = tables(con)
        con.drop_database("shop", force=True)
        found["databases left"] = "shop" in con.list_databases()
    except ParseException as e:
        found["dropped"] = type(e).__name__
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
