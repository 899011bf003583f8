"""Prints what a client of Spark Connect does with tables that only the server has, as JSON.

Run with a folder, this starts a server of this release, and a client in another process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

OF_THE_CLIENT_ALONE = "CLIENT_ALONE"
"""The environment variable that leaves a client only what the package `pyspark-client` has."""


def main() -> None:
    """Be the server, and start the client; with two arguments, be the client."""
    if len(sys.argv) == 3:
        client(*sys.argv[1:])
        return
    from tests.support.spark_sessions import connect_server, spark_environment  # noqa: PLC0415

    folder = Path(sys.argv[1])
    with connect_server(folder / "server") as url:
        command = [sys.executable, "-m", "tests.releases.connect_changes", url, str(folder)]
        subprocess.run(command, check=True, timeout=500, env=spark_environment())


def client(url: str, folder: str) -> None:
    """Change rows and the definition of a table, maintain it, and print the results."""
    if OF_THE_CLIENT_ALONE in os.environ:
        sys.modules["py4j"] = None  # type: ignore[assignment]
        os.environ["SPARK_SKIP_CONNECT_COMPAT_TESTS"] = "1"
    from pyspark.sql import SparkSession  # noqa: PLC0415
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    import iceberg_pyspark as ice  # noqa: PLC0415

    spark = SparkSession.builder.remote(url).getOrCreate()
    lake = {
        "catalog.type": "sql",
        "catalog.uri": f"sqlite:///{folder}/catalog.db",
        "catalog.warehouse": folder,
    }
    rows = spark.range(100).select("id", (F.col("id") % 4).cast("int").alias("p"))
    writer = rows.withColumn("v", F.concat(F.lit("v"), F.col("id"))).write.format("iceberg-py")
    modes = {f"table-property.write.{op}.mode": "merge-on-read" for op in ("delete", "merge")}
    layout = {"partitioned-by": "p", "format-version": "3", **modes}
    writer.options(catalog="lake", **lake, **layout).mode("append").save("db.t")
    table = ice.install(spark).table("db.t", catalog="lake", **lake)
    found: dict[str, Any] = {"release": spark.version, "session": type(spark).__module__}

    def counts(changes: Any) -> list[int]:
        return [changes.inserted, changes.updated, changes.deleted]

    source = spark.range(95, 105).select("id", (F.col("id") % 4).alias("p"), F.lit("n").alias("v"))
    found["deleted"] = counts(table.delete("id < 10"))
    found["updated"] = counts(table.update({"v": "concat('u', id)"}, F.col("id").between(10, 19)))
    found["upserted"] = counts(table.upsert(source, ["id"], transaction=("app", 1)))
    found["again"] = counts(table.upsert(source, ["id"], transaction=("app", 1)))
    merge = table.merge_into(source, "t.id = s.id AND t.p < 3").whenMatched("s.id % 2 = 0").delete()
    merge = merge.whenNotMatched("id > 102").insertAll()
    merge = merge.whenNotMatchedBySource("id < 20 AND v LIKE 'u%'").update({"v": "'alone'"})
    found["merged"] = counts(merge.merge())
    try:
        table.upsert(source.union(source), ["id"])
    except ice.errors.InvalidRequestError as e:
        found["ambiguous"] = str(e)
    table.update_schema().add_column("extra", "int").commit()
    evolving = table.merge_into(source.withColumn("more", F.lit(1)), "t.id = s.id")
    evolving.whenMatched().updateAll().withSchemaEvolution().merge()
    table.manage_snapshots().create_branch("b").create_tag("x").commit()
    table.update_properties().set({"comment": "told"}).commit()
    found["of branch"] = counts(table.delete("id < 50", branch="b"))
    found["columns"] = [f.name for f in table.schema.fields]
    found["refs"] = sorted(table.refs)
    found["property"] = table.properties["comment"]
    rewritten = table.maintenance().rewrite_data_files(options={"rewrite-all": "true"})
    found["rewritten"] = rewritten.rewritten_data_files_count > 0
    expired = table.maintenance().expire_snapshots(
        older_than=datetime.now(timezone.utc), retain_last=1
    )
    found["expired"] = expired.deleted_manifest_lists_count > 0
    orphans = table.maintenance().remove_orphan_files(dry_run=True)
    found["orphans"] = len(orphans.orphan_file_locations)
    found["rows"] = sorted([r.id, r.v] for r in table.to_df(columns=["id", "v"]).collect())
    filtered = table.to_df(columns=["id"], filter="v = 'n'").collect()
    found["filtered"] = sorted(r.id for r in filtered)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
