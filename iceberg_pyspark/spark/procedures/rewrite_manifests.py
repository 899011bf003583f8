"""The procedure that rewrites manifests."""

from __future__ import annotations

from iceberg_pyspark.spark.procedures.definition import (
    DRY_RUN,
    Column,
    Procedure,
    ProcedureRun,
    Row,
)

_COUNTS = ("rewritten_manifests_count", "added_manifests_count")


def _rewrite_manifests(run: ProcedureRun) -> tuple[Row, ...]:
    result = run.maintenance.rewrite_manifests(**run.given_arguments)
    return (tuple(getattr(result, name) for name in _COUNTS),)


REWRITE_MANIFESTS = Procedure(
    name="rewrite_manifests",
    description="Writes manifests anew, each with the files of few partitions",
    required={"table": "string"},
    optional={
        "use_caching": "boolean",
        "spec_id": "int",
        "sort_by": "array<string>",
        DRY_RUN: "boolean",
    },
    columns=dict.fromkeys(_COUNTS, Column(type="integer")),
    run=_rewrite_manifests,
)
