"""Tables that get root manifests: Java reads them before, and refuses them afterwards."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from iceberg_pyspark.spark.session import install
from tests.support.oracle import Oracle
from tests.support.our_tables import our_catalog

pytestmark = pytest.mark.nightly


def test_java_reads_the_upgraded_table_and_refuses_root_manifests(oracle: Oracle) -> None:
    install(oracle.spark)
    # In a metastore catalog, Java retries for a minute and a half before it reports the error.
    name = "java_hadoop.we_write_roots.t"
    catalog = our_catalog(oracle, "java_hadoop")
    properties = {"format-version": "3", "write.root.file-system-tables.enabled": "true"}
    table = catalog.create_table(name, "id INT, s STRING", properties=properties)
    table.append(pa.table({"id": pa.array([1, 2], pa.int32()), "s": ["a", "b"]}))
    assert oracle.sql(f"SELECT count(*) FROM {name}").collect()[0][0] == 2
    table.update_properties().set({"format-version": "4"}).commit()
    oracle.sql(f"REFRESH TABLE {name}")
    rows = sorted(oracle.sql(f"SELECT id, s, _row_id FROM {name}").collect())
    assert [tuple(r) for r in rows] == [(1, "a", 0), (2, "b", 1)]
    catalog.load_table(name).append(pa.table({"id": pa.array([3], pa.int32()), "s": ["c"]}))
    with pytest.raises(PySparkException, match="missing list: manifests"):
        oracle.sql(f"SELECT * FROM {name}").collect()
    assert sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
