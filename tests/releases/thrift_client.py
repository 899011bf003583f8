"""A client of a Thrift server, by PyHive: prints what each part of it saw, as JSON.

`python -m tests.releases.thrift_client` needs PyHive and no package of ours; its argument is the
port. The namespace `shop` of the default catalog exists.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyhive import exc, hive

CLIENTS = 4
SESSIONS = 40
RUNNING, CANCELED = 1, 3  # as TCLIService names them
CREATE = "CREATE TABLE t (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ('format-version' = '3')"
MERGE = """
MERGE INTO t USING (SELECT * FROM VALUES (2, 'two'), (4, 'four') AS v (id, s)) AS new
ON t.id = new.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
"""
LONG_INSERT = (
    "INSERT INTO t SELECT a.id * b.id, 'x' FROM range(50000000) a CROSS JOIN range(1000) b"
)


def connect(port: int) -> hive.Cursor:
    return hive.connect("127.0.0.1", port=port, database="shop").cursor()


def rows(cursor: hive.Cursor, statement: str) -> list[list[Any]]:
    cursor.execute(statement)
    return [list(row) for row in cursor.fetchall()] if cursor.description else []


def statements(port: int) -> dict[str, Any]:
    """Return the rows of one client's statements."""
    cursor = connect(port)
    for statement in (
        CREATE,
        "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "UPDATE t SET s = upper(s) WHERE id = 1",
        "DELETE FROM t WHERE id = 3",
        MERGE,
        "CREATE VIEW v AS SELECT id FROM t WHERE id > 1",
        "ALTER TABLE t ADD PARTITION FIELD bucket(4, id)",
        "CALL lake.system.rewrite_data_files('shop.t')",
    ):
        cursor.execute(statement)
    return {
        "rows": rows(cursor, "SELECT * FROM t ORDER BY id"),
        "view": rows(cursor, "SELECT * FROM v ORDER BY id"),
        "tables": rows(cursor, "SHOW TABLES"),
        "views": rows(cursor, "SHOW VIEWS"),
        "columns": rows(cursor, "DESCRIBE t")[:2],
        "commits": rows(cursor, "SELECT count(*) >= 4 FROM shop.t.snapshots"),
    }


def failures(port: int) -> dict[str, str]:
    """Return the messages of statements that fail."""
    cursor = connect(port)
    found = {}
    for statement in (
        "SELECT nothing FROM t",
        "SELECT * FROM missing",
        "CALL lake.system.rollback_to_snapshot('shop.t', 1)",
    ):
        try:
            cursor.execute(statement)
        except exc.OperationalError as e:
            found[statement] = e.args[0].status.errorMessage
    return found


def two_sessions(port: int) -> list[Any]:
    """Return what two clients see of each other's settings, views and rows."""
    one, other = connect(port), connect(port)
    one.execute("CREATE TEMPORARY VIEW mine AS SELECT 1")
    one.execute("SET spark.sql.shuffle.partitions = 3")
    one.execute("INSERT INTO t VALUES (5, 'five')")
    one.execute("USE lake.default")
    return [
        rows(other, "SHOW TABLES LIKE 'mine'"),
        rows(other, "SET spark.sql.shuffle.partitions") == [["spark.sql.shuffle.partitions", "3"]],
        rows(other, "SELECT id FROM t WHERE s = 'five'"),
        rows(other, "SELECT current_schema()"),
        rows(one, "SELECT current_schema()"),
    ]


def at_the_same_time(port: int) -> list[list[Any]]:
    """Return the rows that several clients leave which change one table at the same time."""

    def change(client: int) -> None:
        cursor = connect(port)
        for id_ in (100 * client, 100 * client + 1):
            cursor.execute(f"INSERT INTO t VALUES ({id_}, 'client')")
        cursor.execute(f"DELETE FROM t WHERE id = {100 * client}")

    with ThreadPoolExecutor() as pool:
        list(pool.map(change, range(1, CLIENTS + 1)))
    return rows(connect(port), "SELECT id FROM t WHERE s = 'client' ORDER BY id")


def cancelled(port: int) -> list[Any]:
    """Return whether a statement ran, was cancelled, and left all rows as they were."""
    cursor = connect(port)
    before = rows(cursor, "SELECT count(*) FROM t")
    running = connect(port)
    running.execute(LONG_INSERT, async_=True)
    time.sleep(3)
    was_running = running.poll().operationState == RUNNING
    running.cancel()
    is_canceled = running.poll().operationState == CANCELED
    return [was_running, is_canceled, rows(running, "SELECT count(*) FROM t") == before]


def main() -> None:
    """Run all parts."""
    port = int(sys.argv[1])
    results: dict[str, Any] = {
        "statements": statements(port),
        "failures": failures(port),
        "two sessions": two_sessions(port),
        "at the same time": at_the_same_time(port),
        "cancelled": cancelled(port),
        "later sessions": [rows(connect(port), "SELECT 1") for _ in range(SESSIONS)][-1],
    }
    cursor = connect(port)
    cursor.execute("TRUNCATE TABLE t")
    cursor.execute(MERGE)
    results["merge of the last session"] = rows(cursor, "SELECT * FROM t ORDER BY id")
    sys.stdout.write(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
