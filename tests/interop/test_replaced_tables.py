"""Tables that were replaced with other columns, beside Java."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark.spec.table_properties import NAME_MAPPING
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.readings import our_table
from tests.support.rows import plain_value

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as installed:
        yield installed


def both(lake: Oracle, query: str) -> tuple[list[Any], list[Any]]:
    """Return the rows of a query of our catalog and of Java's."""
    ours, java = (
        sorted((plain_value(row) for row in lake.sql(query.format(c=c)).collect()), key=repr)
        for c in ("lake", "java_hadoop")
    )
    return ours, java


@pytest.mark.parametrize("by", ["lake", "java_hadoop"])
def test_a_column_of_numbers_becomes_one_of_texts(lake: Oracle, by: str) -> None:
    """Where Java can read, the rows are the same; also Java shows the numbers as texts."""
    t = f"db.texts_of_{by}"
    lake.sql(f"CREATE TABLE java_hadoop.{t} (id BIGINT, p INT) USING iceberg PARTITIONED BY (p)")
    lake.sql(f"INSERT INTO java_hadoop.{t} VALUES (1, 1), (2, 256), (3, NULL)")
    lake.sql(f"ALTER TABLE java_hadoop.{t} CREATE BRANCH old")
    lake.sql(
        f"CREATE OR REPLACE TABLE {by}.{t} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p)"
    )
    lake.sql(f"INSERT INTO {by}.{t} VALUES (4, 'x')")
    columns = "file_path, partition, spec_id, record_count, lower_bounds"
    for query in (
        f"SELECT {columns} FROM {{c}}.{t}.all_files",
        f"SELECT {columns} FROM {{c}}.{t}.all_data_files",
        f"SELECT * FROM {{c}}.{t}.all_delete_files",
        f"SELECT status, data_file.file_path FROM {{c}}.{t}.all_entries",
        f"SELECT {columns} FROM {{c}}.{t}.files VERSION AS OF 'old'",
        f"SELECT partition, record_count FROM {{c}}.{t}.partitions VERSION AS OF 'old'",
        f"SELECT id FROM {{c}}.{t} VERSION AS OF 'old'",
        f"SELECT id FROM {{c}}.{t} VERSION AS OF 'old' WHERE id > 1",
        f"SELECT * FROM {{c}}.{t}",
    ):
        ours, java = both(lake, query)
        assert ours == java, query
        assert ours or "delete" in query
    # Java takes the bytes of numbers for texts
    manifests = f"{t}.manifests VERSION AS OF 'old'"
    [row] = lake.sql(f"SELECT partition_summaries FROM lake.{manifests}").collect()
    assert row.partition_summaries[0].lower_bound == "1"
    with pytest.raises(Exception, match="before the table was replaced: column 'p' was int then"):
        lake.sql(f"SELECT p FROM lake.{t} VERSION AS OF 'old'").collect()


def test_a_name_mapping_has_the_new_columns_unlike_in_java(lake: Oracle, tmp_path: Path) -> None:
    """Without them, Java reads the new columns of files without field ids as null."""
    read = {}
    for by in ("lake", "java_hadoop"):
        t = f"db.mapped_by_{by}"
        lake.sql(f"CREATE TABLE java_hadoop.{t} (id BIGINT, s STRING) USING iceberg")
        for name in ("first", "second"):
            file = tmp_path / by / name / "a.parquet"
            file.parent.mkdir(parents=True)
            rows = {"id": [1], "s": ["old"]} if name == "first" else {"id": [2], "n": [7]}
            pq.write_table(pa.table(rows), file)
            lake.sql(
                f"CALL {by}.system.add_files(table => '{t}', "
                f"source_table => 'parquet.`{file.parent}`')"
            )
            if name == "first":
                lake.sql(f"CREATE OR REPLACE TABLE {by}.{t} (id BIGINT, n BIGINT) USING iceberg")
        mapping = json.loads(our_table(lake, f"java_hadoop.{t}").properties[NAME_MAPPING])
        ours, java = both(lake, f"SELECT * FROM {{c}}.{t}")
        assert ours == java
        read[by] = (ours, [f["names"] for f in mapping])
    assert read["lake"][1] == [["id"], ["s"], ["n"]]
    assert read["java_hadoop"][1] == [["id"], ["s"]]
    assert read["lake"][0] == [plain_value((2, 7))]
    assert read["java_hadoop"][0] == [plain_value((2, None))]
