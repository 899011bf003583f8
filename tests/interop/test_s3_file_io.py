"""Java's S3FileIO and ours on one S3 table of one REST catalog: each reads what both wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark import TableCatalog, install, load_catalog
from tests.amounts import FULL_WORK
from tests.interop.conftest import s3_jars
from tests.services.iceberg_aws import s3_file_io_jars
from tests.services.rest_fixture import VERSION, rest_server
from tests.services.s3 import s3_server
from tests.support.oracle import Oracle
from tests.support.rows import PlainRow, spark_rows
from tests.support.spark_settings import configured

pytestmark = pytest.mark.nightly

CATALOG = "spark.sql.catalog"
NATIVE = "spark.sql.iceberg.native-writer-enabled"
COLUMNS = "(id BIGINT, v STRING, p STRING) USING iceberg PARTITIONED BY (p)"


@dataclass(frozen=True)
class SharedCatalog:
    """One REST catalog, open as `java_s3`, as `ours_s3` and in Python."""

    oracle: Oracle
    python: TableCatalog
    options: dict[str, str]

    def readings(self, name: str) -> dict[str, list[PlainRow]]:
        """Return the rows that Java and both of our readers see."""
        portable = self.oracle.spark.read.format("iceberg-py").options(**self.options)
        return {
            "java": self.oracle.table_rows(f"java_s3.{name}"),
            "native": self.oracle.table_rows(f"ours_s3.{name}"),
            "portable": spark_rows(portable.load(name).collect()),
        }

    def writers(self, name: str) -> set[str]:
        """Return which writers wrote the data files."""
        result = set()
        table = self.python.load_table(name)
        for file in self.oracle.sql(f"SELECT file_path FROM ours_s3.{name}.data_files").collect():
            with table.io.open_input(file.file_path) as stream:
                footer = pq.read_metadata(stream)
            is_spark = b"org.apache.spark.version" in footer.metadata
            result.add("Spark" if is_spark else footer.created_by.split()[0])
        return result


@pytest.fixture(scope="module")
def catalog(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedCatalog]:
    jars = s3_file_io_jars(VERSION)
    if not s3_jars():
        pytest.skip("the session has no jars of S3")
    with s3_server(tmp_path_factory.mktemp("s3")) as s3:
        file_io = {
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "client.region": s3.properties()["s3.region"],
        }
        warehouse = f"s3://{s3.new_bucket()}/warehouse"
        server = {**s3.properties(), "warehouse": warehouse, **file_io}
        with rest_server(tmp_path_factory.mktemp("rest"), server, jars) as rest:
            ours = {"type": "rest", "uri": rest.endpoint, **s3.properties()}
            # Each side must see the other side's changes at once.
            in_spark = {**ours, "cache-enabled": "false"}
            conf = {
                f"{CATALOG}.java_s3": "org.apache.iceberg.spark.SparkCatalog",
                f"{CATALOG}.ours_s3": "iceberg_pyspark",
                **{f"{CATALOG}.java_s3.{k}": v for k, v in {**in_spark, **file_io}.items()},
                **{f"{CATALOG}.ours_s3.{k}": v for k, v in in_spark.items()},
            }
            of_catalog = {f"catalog.{k}" if k in ("type", "uri") else k: v for k, v in ours.items()}
            options = {"catalog": "python", "native": "false", **of_catalog}
            with configured(oracle.spark, conf):
                installed = install(oracle.spark)
                assert installed.is_native
                oracle.sql("CREATE NAMESPACE java_s3.db")
                yield SharedCatalog(oracle, load_catalog("python", **ours), options)
                installed.uninstall()


@pytest.mark.parametrize("version", [3, 2])
def test_a_table_in_s3_changed_in_turns(catalog: SharedCatalog, version: int) -> None:
    """Both sides change it by each writer of data files and of delete files."""
    oracle, name = catalog.oracle, f"db.v{version}"
    java, ours = f"java_s3.{name}", f"ours_s3.{name}"
    mode = (
        f"TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='merge-on-read', "
        "'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read')"
    )
    insert = "SELECT id, 'o' v, concat('p', id % 3) p FROM range(20, 29)"
    deletes = [f"DELETE FROM {java} WHERE id % 4 = 1", f"DELETE FROM {ours} WHERE id % 4 = 2"]
    source = "(SELECT 0L id, 'm' v, 'p0' p UNION ALL SELECT 90L, 'm', 'p4') s"
    merge = "ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"

    def change(statement: str, *, is_read: bool = FULL_WORK) -> None:
        oracle.sql(statement)
        if is_read:
            check(statement)

    def check(statement: str) -> list[PlainRow]:
        rows = catalog.readings(name)
        assert rows["java"] == rows["native"] == rows["portable"], statement
        return rows["java"]

    change(f"CREATE TABLE {java if version == 2 else ours} {COLUMNS} {mode}")
    change(f"INSERT INTO {java} SELECT id, 'j', concat('p', id % 3) FROM range(9)")
    change(f"INSERT INTO {ours} {insert}")
    with configured(oracle.spark, {NATIVE: "false"}):
        change(f"INSERT INTO {ours} SELECT id + 20, v, p FROM ({insert})")
    for delete in deletes if FULL_WORK else ():
        change(delete)
    change(f"MERGE INTO {ours} t USING {source} {merge}", is_read=True)
    change(f"UPDATE {java} SET v = 'x' WHERE id IN (3, 90)")
    catalog.python.load_table(name).append(pa.table({"id": [60], "v": ["py"], "p": ["p1"]}))
    assert check("Python's append")[-1] == (90, "x", "p4")
    assert catalog.writers(name) == {"Spark", "parquet-cpp-arrow", "parquet-mr"}
    assert oracle.load_java_table(java).io().getClass().getSimpleName() == "S3FileIO"
