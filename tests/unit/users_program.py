"""A program as users write it, for type checkers; nobody runs it.

`make check` checks it with the other files of the tests. tests/unit/test_exports.py checks it as a
file outside the checkout, with the settings of a user.
"""

from pyspark.sql import SparkSession

import iceberg_pyspark as ice


def rows_of(name: str) -> int:
    table: ice.Table = ice.load_table(name, catalog="local")
    snapshot: ice.Snapshot | None = table.current_snapshot
    schema: ice.Schema = table.schema
    names: list[str] = [f.name for f in schema.fields]
    table.update_schema().add_column("c", "int").commit()
    table.manage_snapshots().create_tag("t").commit()
    with table.transaction() as transaction:
        transaction.update_properties().set({"k": "v"}).commit()
    if snapshot is None or not names:
        return 0
    selector = ice.SnapshotSelector(snapshot_id=snapshot.snapshot_id)
    return table.scan(filter="id > 5", columns=["id"], selector=selector).count()


def read(table: ice.Table) -> list[int]:
    scan = table.scan("id > 5", columns=["id"], limit=10, as_of="2026-01-31")
    counts: list[int] = [scan.count(), len(scan.to_pandas()), table.inspect.files().num_rows]
    counts.append(sum(batch.num_rows for batch in scan.to_batches()))
    counts.append(scan.to_polars().height)
    scan.to_duckdb("ours").sql("SELECT 1")
    first: int = table.history()[0].snapshot_id
    counts.append(table.scan(snapshot_id=first).count())
    return counts


def define(catalog: ice.TableCatalog) -> str:
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table("db.t", "id BIGINT", if_not_exists=True)
    snapshot: ice.Snapshot = table.append(table.to_arrow())
    view = catalog.create_view("db.v", "id BIGINT", "SELECT 1", replace=True)
    assert catalog.list_views("db") == [view.name]
    return f"{snapshot.summary['added-records']} {view.sql()}"


def create(catalog: ice.TableCatalog) -> ice.Table:
    catalog.create_namespace("db", if_not_exists=True)
    return catalog.create_table("db.t", schema="id BIGINT", partitioned_by=["bucket(8, id)"])


def change(spark: SparkSession) -> int:
    session: ice.IcebergSession = ice.install(spark)
    spark.dataSource.register(ice.IcebergDataSource)
    table: ice.SparkTable = session.table("lake.db.t")
    try:
        changed = table.delete("id < 10")
        merge = table.merge_into(table.to_df(), "t.id = s.id").whenMatched().updateAll().merge()
    except ice.errors.CommitConflictError as error:
        raise RuntimeError("again") from error
    except ice.IcebergError:
        return 0
    return changed.deleted + merge.updated


def mistakes() -> None:
    """Use the package wrongly: a type checker that finds no error here needs no `ignore`."""
    ice.load_tabel("a")  # type: ignore[attr-defined]
    _ = ice.load_table(1).schema.x  # type: ignore[arg-type, attr-defined]


if __name__ == "__main__":
    create(ice.load_catalog("local", type="sql", uri="sqlite:///catalog.db", warehouse="w"))
