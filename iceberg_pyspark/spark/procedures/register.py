"""What adopts a table that is there already."""

from __future__ import annotations

from iceberg_pyspark.spark.procedures.definition import Column, Procedure, ProcedureRun, Row

_COUNT = Column(type="long", is_nullable=True)
_TOTALS = {"total_records_count": "total-records", "total_data_files_count": "total-data-files"}


def _register_table(run: ProcedureRun) -> tuple[Row, ...]:
    table = run.catalog.register_table(run.identifier, run.required("metadata_file"))
    snapshot = table.metadata.current_snapshot
    if snapshot is None:
        return ((None, None, None),)
    totals = (snapshot.summary.get(name) for name in _TOTALS.values())
    return ((snapshot.snapshot_id, *(None if t is None else int(t) for t in totals)),)


REGISTER_TABLE = Procedure(
    name="register_table",
    description="Adopts the table of a metadata file",
    required={"table": "string", "metadata_file": "string"},
    optional={},
    columns={"current_snapshot_id": _COUNT, **dict.fromkeys(_TOTALS, _COUNT)},
    run=_register_table,
)
