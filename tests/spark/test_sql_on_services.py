"""SQL on tables of Glue, the Hive metastore, PostgreSQL and HDFS, read again without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import TableCatalog, install, load_catalog
from iceberg_pyspark.storage.open_storage import open_storage
from tests.services.databases import new_database
from tests.services.glue import glue_server
from tests.services.hdfs import hdfs_server
from tests.services.hive import hive_metastore, thrift_uri
from tests.services.postgres import postgres

pytestmark = pytest.mark.nightly

Start = Callable[[ExitStack, Path], dict[str, str]]


def glue(services: ExitStack, folder: Path) -> dict[str, str]:
    server = services.enter_context(glue_server())
    return {"type": "glue", **server.properties(folder / "lake")}


def hive(services: ExitStack, folder: Path) -> dict[str, str]:
    server = services.enter_context(hive_metastore(folder))
    return {"type": "hive", "uri": thrift_uri(server), "warehouse": str(folder / "lake")}


def sql(services: ExitStack, folder: Path) -> dict[str, str]:
    uri = new_database(services.enter_context(postgres()))
    views = {"jdbc.schema-version": "V1"}
    return {"type": "sql", "uri": uri, "warehouse": str(folder / "lake"), **views}


def hadoop(services: ExitStack, folder: Path) -> dict[str, str]:
    server = services.enter_context(hdfs_server(folder))
    return {"type": "hadoop", "warehouse": f"{server.root}/lake"}


HADOOP = pytest.param(hadoop)
HIVE = pytest.param(hive)
SQL = pytest.param(sql)


@dataclass(frozen=True)
class Service:
    """A catalog of the session, `name`, and what catalogs of its type can do."""

    name: str
    properties: dict[str, str]

    @property
    def renames(self) -> bool:
        return self.name != "hadoop"

    @property
    def has_views(self) -> bool:
        return self.name in ("hive", "sql")

    def open_anew(self) -> TableCatalog:
        """Return a catalog of Python that has loaded nothing yet."""
        return load_catalog(self.name, **self.properties)


@pytest.fixture(scope="module", params=[glue, HIVE, SQL, HADOOP], ids=lambda start: start.__name__)
def service(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    start: Start = request.param
    name = start.__name__
    with ExitStack() as services:
        properties = start(services, tmp_path_factory.mktemp(name))
        conf = {f"spark.sql.catalog.{name}.{key}": value for key, value in properties.items()}
        conf[f"spark.sql.catalog.{name}"] = "iceberg_pyspark"
        for key, value in conf.items():
            spark.conf.set(key, value)
        session = install(spark)
        assert session.is_native
        yield Service(name, properties)
        session.uninstall()
        for key in conf:
            spark.conf.unset(key)


@pytest.mark.parametrize("version", [3, 2])
def test_a_table_from_create_to_purge(spark: SparkSession, service: Service, version: int) -> None:
    db, table = f"{service.name}.v{version}", f"{service.name}.v{version}.t"

    def rows() -> list[tuple[object, ...]]:
        """Return the rows as Spark reads them; a new catalog of Python must read the same."""
        actual = sorted(tuple(r) for r in spark.table(table).collect())
        again = service.open_anew().load_table(f"v{version}.t").scan().to_arrow()
        assert sorted(tuple(r.values()) for r in again.to_pylist()) == actual
        return actual

    spark.sql(f"CREATE NAMESPACE {db}")
    assert (f"v{version}",) in spark.sql(f"SHOW NAMESPACES IN {service.name}").collect()
    spark.sql(
        f"CREATE TABLE {table} (id INT, day STRING) USING iceberg "
        "PARTITIONED BY (day, bucket(2, id)) TBLPROPERTIES ("
        f"'format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
    )
    spark.sql(f"INSERT INTO {table} VALUES (1, 'mon'), (2, 'mon'), (3, 'tue'), (4, 'tue')")
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT * FROM VALUES (2, 'wed'), (5, 'wed') AS v(id, day)) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET day = s.day WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql(f"DELETE FROM {table} WHERE id > 2 AND id < 4")
    assert rows() == [(1, "mon"), (2, "wed"), (4, "tue"), (5, "wed")]
    spark.sql(f"ALTER TABLE {table} ADD COLUMN note STRING")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN day TO weekday")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('team' = 'blue')")
    spark.sql(f"DELETE FROM {table} WHERE weekday = 'wed'")
    spark.sql(f"INSERT INTO {table} VALUES (6, 'sun', 'new')")
    assert rows() == [(1, "mon", None), (4, "tue", None), (6, "sun", "new")]
    described = {r[0]: r[1] for r in spark.sql(f"DESCRIBE EXTENDED {table}").collect()}
    assert (described["id"], described["weekday"], described["note"]) == ("int", "string", "string")
    assert described["Provider"] == "iceberg"
    metadata = service.open_anew().load_table(f"v{version}.t").metadata
    assert (metadata.format_version, metadata.properties["team"]) == (version, "blue")
    if service.renames:
        spark.sql(f"ALTER TABLE {table} RENAME TO {db}.renamed")
        assert not spark.catalog.tableExists(table)
    else:
        with pytest.raises(PySparkException, match="rename"):
            spark.sql(f"ALTER TABLE {table} RENAME TO {db}.renamed")
    name = "renamed" if service.renames else "t"
    table = f"{db}.{name}"
    assert [r.tableName for r in spark.sql(f"SHOW TABLES IN {db}").collect()] == [name]
    if service.has_views:
        spark.sql(f"CREATE VIEW {db}.late AS SELECT id FROM {table} WHERE id > 1")
        assert sorted(spark.table(f"{db}.late").collect()) == [(4,), (6,)]
        spark.sql(f"DROP VIEW {db}.late")
    else:
        with pytest.raises(PySparkException, match=r"(?i)views?"):
            spark.sql(f"CREATE VIEW {db}.late AS SELECT id FROM {table}")
    store = open_storage(metadata.location, service.properties)
    assert any(f.location.endswith(".parquet") for f in store.list_files(metadata.location))
    spark.sql(f"DROP TABLE {table} PURGE")
    assert list(store.list_files(metadata.location)) == []
    assert service.open_anew().list_tables(f"v{version}") == []
    spark.sql(f"DROP NAMESPACE {db}")
    assert not service.open_anew().namespace_exists(f"v{version}")
