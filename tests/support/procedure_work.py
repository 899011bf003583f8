"""For each procedure with a dry run, a table in which it has something to do, and its arguments."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from iceberg_pyspark import Table, TableCatalog, load_catalog
from iceberg_pyspark.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POS
from iceberg_pyspark.table.maintenance.procedures import PROCEDURES
from tests.support.deleted_rows import delete_keys, list_positions
from tests.support.native_lake import session_catalog

WITH_DRY_RUN = tuple(name for name, p in PROCEDURES.items() if p.has_dry_run)
LATER = "2099-01-01 00:00:00"
UNKNOWN_BEFORE = {
    "compute_partition_stats": {"partition_statistics_file"},
    "compute_table_stats": {"statistics_file"},
    "rewrite_data_files": {"added_data_files_count"},
    "rewrite_table_path": {"file_list_location"},
}
"""The result columns of which a dry run has no value: names of files, and numbers of new files."""

_PARTITION = ("a",)
_DAYS_4 = 4 * 86_400


@dataclass(frozen=True)
class Lake:
    """A session whose `spark_catalog` has Spark's own tables and ours, and a catalog of ours."""

    session: SparkSession
    catalog: TableCatalog
    folder: Path

    def state(self) -> tuple[dict[str, bytes], list[str], dict[str, str]]:
        """Return all files with their content, the names of all tables, and where ours are."""
        files = {
            str(path): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and not path.name.startswith("catalog.db")
        }
        rows = self.session.sql("SHOW TABLES IN spark_catalog.db").collect()
        names = sorted(row.tableName for row in rows)
        ours = {
            name: self.catalog.load_table(name).loaded.metadata_location
            for name in self.catalog.list_tables("db")
        }
        return files, names, ours


@contextmanager
def lake_of_both(spark: SparkSession, folder: Path) -> Iterator[Lake]:
    """Yield a lake with the namespace `db`."""
    with session_catalog(spark, folder) as session:
        session.sql(f"CREATE NAMESPACE IF NOT EXISTS db LOCATION '{folder}/plain'")
        uri = f"sqlite:///{folder / 'catalog.db'}"
        catalog = load_catalog("spark_catalog", type="sql", uri=uri, warehouse=f"{folder}/ours")
        if not catalog.namespace_exists("db"):
            catalog.create_namespace("db")
        try:
            yield Lake(session, catalog, folder)
        finally:
            session.sql("DROP NAMESPACE db CASCADE")


def make_work(lake: Lake, name: str, table: str) -> dict[str, Any]:
    """Make work for a procedure in `table`, and return the arguments besides `table`."""
    source = lake.folder / f"source_of_{table}"
    match name:
        case "migrate":
            _make_spark_table(lake, table)
            return {}
        case "snapshot":
            _make_spark_table(lake, f"{table}_source")
            return {"source_table": f"spark_catalog.db.{table}_source"}
        case "register_table":
            original = table_with_work(lake.catalog, f"db.{table}_original")
            return {"metadata_file": original.loaded.metadata_location}
    made = table_with_work(lake.catalog, f"db.{table}")
    match name:
        case "add_files":
            (source / "p=a").mkdir(parents=True)
            for number in range(2):
                pq.write_table(pa.table({"id": [number]}), source / "p=a" / f"{number}.parquet")
            return {"source_table": f"`parquet`.`{source}`"}
        case "expire_snapshots":
            return {"older_than": LATER, "retain_last": 1}
        case "rewrite_data_files" | "rewrite_position_delete_files":
            return {"options": {"min-input-files": "2"}}
        case "rewrite_table_path":
            return {"source_prefix": made.location, "target_prefix": "/copy"}
    return {}


def table_with_work(catalog: TableCatalog, name: str) -> Table:
    """Create a table with small and old files, deletes of both kinds and an orphan file."""
    # two delete files of one partition become one file only with this granularity
    properties = {"format-version": "2", "write.delete.granularity": "partition"}
    catalog.create_namespace(name.rpartition(".")[0], if_not_exists=True)
    table = catalog.create_table(
        name, "id BIGINT, p STRING", partitioned_by=["p"], properties=properties
    )
    table.overwrite(pa.table({"id": [0], "p": ["a"]}))
    for number in range(3):
        rows = pa.table({"id": [number * 10 + n for n in range(4)], "p": ["a"] * 4})
        table.append(rows) if number else table.overwrite(rows)
    for task in list(table.scan().plan_files())[:2]:
        columns = {
            DELETE_FILE_PATH.name: [task.file_path],
            DELETE_FILE_POS.name: pa.array([0], pa.int64()),
        }
        list_positions(table, pa.table(columns), {}, partition=_PARTITION)
    delete_keys(table, "id", [1], partition=_PARTITION)
    orphan = Path(table.location.removeprefix("file:")) / "data" / "orphan.parquet"
    orphan.touch()
    os.utime(orphan, (time.time() - _DAYS_4,) * 2)
    return table


def call_text(name: str, table: str, arguments: Mapping[str, Any]) -> str:
    """Return the CALL of a procedure in SQL."""
    types = {p.name: p.type for p in PROCEDURES[name].parameters}
    given = {"table": f"db.{table}", **arguments}
    texts = ", ".join(f"{k} => {_literal(types[k], v)}" for k, v in given.items())
    return f"CALL spark_catalog.system.{name}({texts})"


def job_arguments(name: str, table: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the arguments of `jobs/maintain.py` for a procedure."""
    values = {**arguments, "table": f"spark_catalog.db.{table}"}
    if name == "add_files":
        values["source"] = values.pop("source_table").split("`")[-2]
    words = [name.replace("_", "-")]
    for p in PROCEDURES[name].parameters:
        if p.name not in values:
            continue
        value = values[p.name]
        given = [f"{k}={v}" for k, v in value.items()] if isinstance(value, Mapping) else [value]
        words += [w for one in given for w in [*([] if p.is_required else [p.flag]), str(one)]]
    return words


def _make_spark_table(lake: Lake, table: str) -> None:
    lake.session.sql(f"CREATE TABLE db.{table} (id BIGINT) USING parquet")
    lake.session.sql(f"INSERT INTO db.{table} VALUES (1)")


def _literal(type_: str, value: Any) -> str:
    match value:
        case bool() | int():
            return str(value).lower()
        case Mapping():
            return f"map({', '.join(repr(text) for pair in value.items() for text in pair)})"
        case _:
            return f"TIMESTAMP'{value}'" if type_ == "timestamp" else f"'{value}'"
