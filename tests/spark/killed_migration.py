"""Runs `migrate` or `snapshot` in a process that is killed at a step, on its starter's JVM.

The process has its own Python but uses the starter's JVM, so the tables of Spark's own in-memory
catalog outlive it, as those of a Hive metastore do.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from iceberg_pyspark.catalogs.sql.database import Database
from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
from iceberg_pyspark.spark.procedures import adoption, migrate
from iceberg_pyspark.spark.procedures.call_statement import RUNS
from iceberg_pyspark.spark.procedures.procedure_run import ProcedureRun
from iceberg_pyspark.storage.files.local import LocalFileIO
from iceberg_pyspark.table.maintenance.procedures import MIGRATE, SNAPSHOT
from tests.support.hooked_storage import HookedFileIO, around_writes, killed_at

_STEPS = ("set_table_type", "rename_table", "table_source", "check_folders", "drop_table")


def die_at(
    spark: SparkSession, folder: str, table: str, step: int, new_table: str | None = None
) -> int:
    """Migrate a table in a process that is killed at a step; return its exit code.

    With `new_table`, the procedure `snapshot` makes that table of the files of `table` instead.

    `folder` has the database `catalog.db` of the Iceberg tables. A process that makes fewer steps
    finishes, with the exit code 0.
    """
    parameters = spark.sparkContext._gateway.gateway_parameters  # type: ignore[union-attr]
    environment = {
        **os.environ,
        "PYSPARK_GATEWAY_PORT": str(parameters.port),
        "PYSPARK_GATEWAY_SECRET": parameters.auth_token,
    }
    command = [sys.executable, "-m", __name__, folder, table, str(step)]
    if new_table is not None:
        command.append(new_table)
    return subprocess.run(command, env=environment, check=False).returncode


def _session() -> SparkSession:
    gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)
    jvm: Any = gateway.jvm
    java_context = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
        jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    conf = SparkConf(_jconf=java_context.getConf())
    context = SparkContext(gateway=gateway, jsc=java_context, conf=conf)
    return SparkSession(context)


def _run(folder: str, table: str, last_step: int, new_table: str | None = None) -> None:
    pass_step = killed_at(last_step)

    def stepping(call: Callable[..., Any]) -> Callable[..., Any]:
        def with_steps(*arguments: Any, **keywords: Any) -> Any:
            pass_step()
            result = call(*arguments, **keywords)
            pass_step()
            return result

        return with_steps

    spark = _session()
    module = migrate if new_table is None else adoption
    for name in filter(module.__dict__.__contains__, _STEPS):
        setattr(module, name, stepping(getattr(module, name)))
    Database._write_once = stepping(Database._write_once)  # type: ignore[method-assign]
    properties = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"{folder}/ours"}
    io = HookedFileIO(LocalFileIO(), around_writes(pass_step))
    catalog = SqlCatalog("spark_catalog", properties, io=io)
    arguments: dict[str, object] = {"table": table, "drop_backup": True}
    procedure = MIGRATE
    if new_table is not None:
        arguments = {"source_table": f"spark_catalog.{table}", "table": new_table}
        procedure = SNAPSHOT
    run = ProcedureRun(procedure.name, spark, catalog, arguments, ("default",))
    RUNS[procedure.name](run)


if __name__ == "__main__":
    _run(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
    # The JVM belongs to the process that started this one.
    os._exit(0)
