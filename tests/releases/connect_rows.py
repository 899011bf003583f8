"""Prints what a client of a Connect server does with tables, as JSON; run with a folder and a port.

The server is in the classic session of this process; its client is another process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from pyspark.sql import SparkSession

STATEMENTS = (
    "CREATE NAMESPACE lake.db",
    "CREATE TABLE lake.db.t AS VALUES (1, 'a'), (2, 'b') AS t(id, v)",
    "MERGE INTO lake.db.t t USING (VALUES (2, 'B'), (3, 'c') AS s(id, v)) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "DELETE FROM lake.db.t WHERE id = 1",
    "SELECT * FROM lake.db.t ORDER BY id",
)


def main() -> None:
    """Be the server, and start the client; with one argument, an address, be the client."""
    if len(sys.argv) == 2:
        client(sys.argv[1])
        return
    folder, port = sys.argv[1:]
    prefix = "spark.sql.catalog.lake"
    settings: dict[str, Any] = {
        prefix: "iceberg_pyspark",
        f"{prefix}.warehouse": folder,
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": port,
        "spark.ui.enabled": "false",
    }
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    subprocess.run([sys.executable, __file__, f"sc://127.0.0.1:{port}"], check=True, timeout=600)
    spark.stop()


def client(address: str) -> None:
    """Run the statements, and print the rows of the last one."""
    spark = SparkSession.builder.remote(address).getOrCreate()
    for statement in STATEMENTS:
        rows = spark.sql(statement).collect()
    result = {
        "rows": [list(row) for row in rows],
        "listens": "iceberg_pyspark.auto" in sys.modules,
        "installs": "iceberg_pyspark.spark.session" in sys.modules,
    }
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
