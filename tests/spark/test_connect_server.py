"""A Connect server whose driver is in Python, started by Spark's script, gives its clients SQL.

The script is the one that `start-connect-server.sh` calls, which has no place for a program.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.spark_sessions import (
    ROOT,
    SPARK_HOME,
    run_process,
    run_python,
    session_conf,
)

pytestmark = pytest.mark.nightly

NAME = "iceberg-connect"
"""The name of the server's log and of its pid."""

CLIENT = """
import json, sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
spark.conf.set("spark.sql.catalog.own", "iceberg_pyspark")
spark.conf.set("spark.sql.catalog.own.warehouse", sys.argv[2])
for statement in (
    "create namespace if not exists {c}.db",
    "create table {c}.db.t (id bigint, v string) partitioned by (bucket(2, id))",
    "insert into {c}.db.t values (1, 'a'), (2, 'b')",
    "merge into {c}.db.t t using (values (2L, 'B'), (3L, 'c') as s(id, v)) s on t.id = s.id "
    "when matched then update set * when not matched then insert *",
    "delete from {c}.db.t where id = 1",
    "alter table {c}.db.t create branch b",
    "call {c}.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))",
):
    for catalog in ("lake", "own"):
        spark.sql(statement.replace("{c}", catalog)).collect()
found = {}
for catalog in ("lake", "own"):
    rows = spark.table(f"{catalog}.db.t").orderBy("id").collect()
    operations = spark.table(f"{catalog}.db.t.snapshots").orderBy("committed_at")
    refs = spark.sql(f"select name from {catalog}.db.t.refs order by name").collect()
    found[catalog] = [
        [list(row) for row in rows],
        [row.operation for row in operations.collect()],
        [row.name for row in refs],
    ]
found["imports"] = any(name.startswith("iceberg_pyspark") for name in sys.modules)
print(json.dumps(found))
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Start and end a server as the guide says."""
    port = free_port()
    settings = {
        **session_conf(tmp_path / "spark"),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.catalog.lake": "iceberg_pyspark",
        "spark.sql.catalog.lake.warehouse": str(tmp_path / "lake"),
    }
    folders = {"SPARK_LOG_DIR": str(tmp_path / "logs"), "SPARK_PID_DIR": str(tmp_path / "pids")}
    command = [
        str(SPARK_HOME / "sbin/spark-daemon.sh"),
        *("submit", NAME, "1"),
        *("--master", "local[2]"),
        *[part for item in settings.items() for part in ("--conf", "=".join(item))],
        str(ROOT / "jobs" / "connect_server.py"),
    ]
    run_process(command, 60, environment=folders)
    try:
        deadline = time.monotonic() + 120
        log = ""
        while "IcebergSession on Spark" not in log:
            assert time.monotonic() < deadline, log
            time.sleep(0.5)
            log = "".join(f.read_text(errors="replace") for f in (tmp_path / "logs").iterdir())
        yield f"sc://127.0.0.1:{port}"
    finally:
        run_process([command[0], "stop", NAME, "1"], 60, environment=folders)
    for _ in range(60):
        if not processes_of(tmp_path / "pids"):
            return
        time.sleep(0.5)
    raise AssertionError("the server's JVM or its driver in Python did not end")


def processes_of(folder: Path) -> list[str]:
    """Return the processes whose environment names a folder."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if str(folder).encode() in environment.read_bytes():
                found.append(environment.parent.name)
    return found


def test_clients_of_the_script_have_sql(server: str, tmp_path: Path) -> None:
    script = tmp_path / "client.py"
    script.write_text(CLIENT, encoding="utf-8")
    printed = run_python(script, server, str(tmp_path / "own"))
    of_each = [
        [[2, "B"], [3, "c"]],
        ["append", "overwrite", "overwrite", "replace"],
        ["b", "main"],
    ]
    expected = {"lake": of_each, "own": of_each, "imports": False}
    assert json.loads(printed.splitlines()[-1]) == expected
