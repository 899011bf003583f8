"""Java and this package write to one table, in turns and concurrently: no commit is lost or
doubled.

See docs/conformance.md 83-85, 88, 93, 95.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from iceberg_pyspark.errors import InvalidRequestError, TableAlreadyExistsError
from tests.support.java_tables import JavaTables
from tests.support.oracle import Oracle
from tests.support.our_tables import CATALOGS, new_table, our_catalog, pyiceberg_table
from tests.support.parameters import cases
from tests.support.readings import our_table


def ids(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def shown(*values: int) -> list[str]:
    return sorted(f"{{{value}}}" for value in values)


@pytest.mark.parametrize("catalog", CATALOGS)
@cases("version", fast=[3], nightly=[1, 2])
def test_java_and_python_append_in_turns(
    oracle: Oracle, java: JavaTables, catalog: str, version: int
) -> None:
    name = f"{catalog}.we_write_together.turns_{version}"
    table = new_table(oracle, name, "id BIGINT", properties={"format-version": str(version)})
    table.append(ids(0))
    java.create(f"{name}_source", like=name)
    oracle.sql(f"INSERT INTO {name}_source VALUES (100)")
    for turn in range(1, 7):
        # Java loads the table each time; our table object has the metadata of its last commit.
        if turn % 2:
            java.copy(f"{name}_source", name)
        else:
            table.append(ids(turn))
    assert java.rows(name) == shown(0, 2, 4, 6, 100, 100, 100)
    final = our_table(oracle, name).metadata
    assert len(final.snapshots) == len(final.snapshot_log) == 7
    assert [s.sequence_number for s in final.snapshots] == [
        0 if version == 1 else i + 1 for i in range(7)
    ]
    parents = [s.parent_snapshot_id for s in final.snapshots]
    assert parents == [None, *(s.snapshot_id for s in final.snapshots[:-1])]
    assert final.snapshots[-1].summary["total-records"] == "7"
    assert final.last_sequence_number == (0 if version == 1 else 7)
    if version == 3:
        assert final.next_row_id == 7


@pytest.mark.parametrize("catalog", CATALOGS)
def test_at_the_same_time(oracle: Oracle, java: JavaTables, catalog: str) -> None:
    name = f"{catalog}.we_write_together.race"
    retries = {"commit.retry.num-retries": "50", "commit.retry.min-wait-ms": "5"}
    # Conflicts are frequent here, and every commit must be retried until it succeeds.
    ours = new_table(
        oracle, name, "id BIGINT", properties={**retries, "commit.retry.max-wait-ms": "50"}
    )
    ours.append(ids(0))
    java.create(f"{name}_source", like=name)
    oracle.sql(f"INSERT INTO {name}_source VALUES (100)")

    def we(start: int) -> None:
        table = our_catalog(oracle, catalog).load_table(name)
        for number in range(start, start + 5):
            table.append(ids(number))

    def javas() -> None:
        for _ in range(5):
            java.copy(f"{name}_source", name)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(we, 10), pool.submit(we, 20), pool.submit(javas)]:
            done.result()
    assert java.rows(name) == shown(0, *range(10, 15), *range(20, 25), *([100] * 5))
    final = our_table(oracle, name).metadata
    assert len(final.snapshots) == 16
    assert final.last_sequence_number == 16
    assert len({s.sequence_number for s in final.snapshots}) == 16


@pytest.mark.nightly
@pytest.mark.parametrize("catalog", CATALOGS)
def test_one_table_is_created_once(oracle: Oracle, catalog: str) -> None:
    mine = our_catalog(oracle, catalog)
    mine.create_namespace(f"we_write_creates_{catalog}")
    for number in range(4):
        name = f"{catalog}.we_write_creates_{catalog}.t{number}"

        def we(name: str = name) -> str:
            try:
                mine.create_table(name, "ours BIGINT")
            except TableAlreadyExistsError:
                return ""
            return "ours"

        def java(name: str = name) -> str:
            try:
                oracle.sql(f"CREATE TABLE {name} (java BIGINT) USING iceberg")
            except (PySparkException, Py4JError) as error:
                # Report every error except a lost race.
                return "" if "exist" in str(error).lower() else str(error)
            return "java"

        with ThreadPoolExecutor(2) as pool:
            calls = [pool.submit(call) for call in ((we, java) if number % 2 else (java, we))]
            winners = [call.result() for call in calls]
        [winner] = [w for w in winners if w]
        assert oracle.spark.table(name).columns == [winner]
        assert [f.name for f in our_table(oracle, name).schema.fields] == [winner]


@pytest.mark.nightly
def test_three_writers_of_one_database(oracle: Oracle, java: JavaTables) -> None:
    name = "java_sql.we_write_together.three"
    table = new_table(
        oracle,
        name,
        "id BIGINT, p STRING",
        partitioned_by=["p"],
        properties={"format-version": "2"},
    )
    expected = []
    for turn in range(3):
        rows = pa.table({"id": pa.array([turn], pa.int64()), "p": ["a"]})
        table.append(rows)
        with pyiceberg_table(oracle, name) as theirs:
            theirs.append(pa.table({"id": pa.array([turn + 10], pa.int64()), "p": ["b"]}))
        oracle.sql(f"INSERT INTO {name} VALUES ({turn + 20}, 'c')")
        expected += [f"{{{turn}|'a'}}", f"{{{turn + 10}|'b'}}", f"{{{turn + 20}|'c'}}"]
    assert java.rows(name) == sorted(expected)
    table.refresh().overwrite(
        pa.table({"id": pa.array([99], pa.int64()), "p": ["b"]}), dynamic=True
    )
    expected = [text for text in expected if "'b'" not in text] + ["{99|'b'}"]
    assert java.rows(name) == sorted(expected)
    with pyiceberg_table(oracle, name) as theirs:
        assert theirs.scan().to_arrow().num_rows == 7
        theirs.delete("p == 'a'")
    assert len(java.rows(name)) == 4
    assert our_table(oracle, name).scan().to_arrow().num_rows == 4


@pytest.mark.nightly
def test_the_hint_of_a_folder_table_is_never_behind(oracle: Oracle, java: JavaTables) -> None:
    name = "java_hadoop.we_write_together.hint"
    table = new_table(oracle, name, "id BIGINT")
    folder = Path(table.location) / "metadata"
    for number in range(3):
        table.append(ids(number))
        assert (folder / "version-hint.text").read_text(encoding="utf-8") == str(number + 2)
    # Without the hint, and with an old hint, both find the newest version.
    (folder / "version-hint.text").write_text("1", encoding="utf-8")
    assert java.rows(name) == shown(0, 1, 2)
    table.refresh().append(ids(3))
    (folder / "version-hint.text").unlink()
    oracle.sql(f"INSERT INTO {name} VALUES (4)")
    table.append(ids(5))
    assert java.rows(name) == shown(0, 1, 2, 3, 4, 5)
    assert sorted(p.name for p in folder.glob("*.json")) == [
        f"v{number}.metadata.json" for number in range(1, 8)
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("catalog", CATALOGS)
def test_compressed_metadata(oracle: Oracle, java: JavaTables, catalog: str) -> None:
    name = f"{catalog}.we_write_together.gzip"
    table = new_table(
        oracle, name, "id BIGINT", properties={"write.metadata.compression-codec": "gzip"}
    )
    table.append(ids(1))
    assert table.loaded.metadata_location.endswith(".gz.metadata.json")
    assert java.rows(name) == shown(1)
    oracle.sql(f"INSERT INTO {name} VALUES (2)")
    table.append(ids(3))
    assert java.rows(name) == shown(1, 2, 3)
    with pyiceberg_table(oracle, name) as theirs:
        assert theirs.scan().to_arrow().num_rows == 3
    with table.update_properties() as properties:
        properties.set({"write.metadata.compression-codec": "none"})
    table.append(ids(4))
    text = Path(table.loaded.metadata_location).read_text(encoding="utf-8")
    assert json.loads(text)["current-snapshot-id"] == table.metadata.current_snapshot_id
    assert java.rows(name) == shown(1, 2, 3, 4)


@pytest.mark.nightly
def test_old_metadata_files_are_deleted_as_asked(oracle: Oracle, java: JavaTables) -> None:
    name = "java_sql.we_write_together.trimmed"
    table = new_table(
        oracle,
        name,
        "id BIGINT",
        properties={
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "2",
        },
    )
    for number in range(4):
        table.append(ids(number))
    oracle.sql(f"INSERT INTO {name} VALUES (4)")
    table.append(ids(5))
    files = sorted(p.name[:5] for p in (Path(table.location) / "metadata").glob("*.json"))
    assert files == ["00004", "00005", "00006"]
    logged = oracle.sql(f"SELECT file FROM {name}.metadata_log_entries").collect()
    assert len(logged) == 3
    assert java.rows(name) == shown(*range(6))


@pytest.mark.nightly
def test_unknown_metadata_codec_can_be_corrected(oracle: Oracle, java: JavaTables) -> None:
    """Java refuses to set the codec, and refuses every commit that keeps it; so do we."""
    name = "java_hadoop.we_write_together.codec"
    codec = "write.metadata.compression-codec"
    table = new_table(oracle, name, "id BIGINT")
    alter = f"ALTER TABLE {name} SET TBLPROPERTIES ('{codec}' = 'zstd')"
    with pytest.raises(Py4JJavaError, match="Invalid codec name: zstd"):
        oracle.sql(alter)
    with pytest.raises(InvalidRequestError, match=codec):
        table.update_properties().set({codec: "zstd"}).commit()
    metadata = Path(table.loaded.metadata_location)
    text = json.loads(metadata.read_text(encoding="utf-8"))
    text["properties"][codec] = "zstd"
    metadata.write_text(json.dumps(text), encoding="utf-8")
    with pytest.raises(Exception, match="Invalid codec name: zstd"):
        oracle.sql(f"INSERT INTO {name} VALUES (1)")
    with pytest.raises(InvalidRequestError, match=codec):
        table.refresh().append(ids(1))
    table.refresh().update_properties().remove(codec).commit()
    table.append(ids(2))
    oracle.sql(f"INSERT INTO {name} VALUES (3)")
    assert java.rows(name) == shown(2, 3)
