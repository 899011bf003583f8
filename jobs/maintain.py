"""Maintain an Iceberg table: run one procedure of `CALL` from the shell or a scheduler.

    spark-submit --conf spark.sql.catalog.lake=iceberg_pyspark \\
        --conf spark.sql.catalog.lake.warehouse=/data/warehouse \\
        jobs/maintain.py rewrite-data-files lake.db.events --option min-input-files=10

The commands, their options and the exit codes are those of `iceberg-py maintain`, with the catalogs
of Spark's configuration, Spark's executors, and further procedures. `--plan` prints what would be
done, and changes nothing.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Annotated, Any

import typer
from pyspark.sql import SparkSession

from iceberg_pyspark import install
from iceberg_pyspark.command_line.group import CommandLine
from iceberg_pyspark.command_line.invocation import Invocation
from iceberg_pyspark.command_line.maintain import add_procedures
from iceberg_pyspark.command_line.output import Output
from iceberg_pyspark.command_line.terminal_session import spark_errors
from iceberg_pyspark.spark.procedures.call_statement import RUNS
from iceberg_pyspark.table.maintenance.procedure_parts import Interface, Procedure
from iceberg_pyspark.table.maintenance.procedures import CREATE_CHANGELOG_VIEW, PROCEDURES
from iceberg_pyspark.table.progress import Progress

app = typer.Typer(
    cls=CommandLine, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


@app.callback()
def options(
    context: typer.Context,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON document.")] = False,
) -> None:
    """Maintain an Iceberg table on Spark."""
    context.obj = Invocation(catalog=None, properties={}, output=Output(as_json=json))


def run(
    context: typer.Context, procedure: Procedure, arguments: dict[str, Any], progress: Progress
) -> Any:
    name = f"{procedure.name} {arguments['table']}"
    with spark_errors():
        spark = SparkSession.builder.appName(name).getOrCreate()
        prepared = install(spark).procedure_run(procedure.name, arguments)
        return RUNS[procedure.name](replace(prepared, progress=progress))


add_procedures(
    app,
    # the view would end with the session of the job
    (p for p in PROCEDURES.values() if p is not CREATE_CHANGELOG_VIEW),
    (Interface.ALL, Interface.SPARK, Interface.NO_CALL),
    run,
)

if __name__ == "__main__":
    # without a terminal, the log shows the progress of a procedure
    logging.basicConfig(level="WARNING", format="%(message)s")
    logging.getLogger("iceberg_pyspark").setLevel("INFO")
    app(prog_name="maintain.py")
