"""The procedure that rewrites data files."""

from __future__ import annotations

from pyspark import SparkContext

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.procedures.definition import (
    DRY_RUN,
    Column,
    Procedure,
    ProcedureRun,
    Row,
)
from iceberg_pyspark.spark.write.executors import Executors, has_executors
from iceberg_pyspark.spec.property_types import BoolProperty

USE_EXECUTORS = BoolProperty("use-executors", False)
"""Whether executors write the files; by default, unless the master is `local` or `local[...]`."""

_COUNTS = {
    "rewritten_data_files_count": Column(type="integer"),
    "added_data_files_count": Column(type="integer"),
    "rewritten_bytes_count": Column(type="long"),
    "failed_data_files_count": Column(type="integer"),
    "removed_delete_files_count": Column(type="integer"),
}


def _rewrite_data_files(run: ProcedureRun) -> tuple[Row, ...]:
    arguments = dict(run.given_arguments)
    options = dict(arguments.pop("options", {}))
    context = SparkContext.getOrCreate()
    on_executors = options.pop(USE_EXECUTORS.name, None)
    if on_executors is None:
        on_executors = "true" if has_executors(context) else "false"
    if (problem := USE_EXECUTORS.problem(on_executors)) is not None:
        raise InvalidRequestError(
            f"rewrite_data_files: {USE_EXECUTORS.name}={on_executors} {problem}"
        )
    runner = Executors(context) if USE_EXECUTORS.of({USE_EXECUTORS.name: on_executors}) else None
    result = run.maintenance.rewrite_data_files(**arguments, options=options, runner=runner)
    run.show_groups(result.groups)
    return (tuple(getattr(result, name) for name in _COUNTS),)


REWRITE_DATA_FILES = Procedure(
    name="rewrite_data_files",
    description="Writes small files, and files with many deleted rows, anew",
    required={"table": "string"},
    optional={
        "strategy": "string",
        "sort_order": "string",
        "options": "map<string,string>",
        "where": "string",
        "branch": "string",
        DRY_RUN: "boolean",
    },
    columns=_COUNTS,
    run=_rewrite_data_files,
)
