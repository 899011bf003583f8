"""Encrypted tables that Java's Spark runtime writes, and those that it reads."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark import install
from iceberg_pyspark.changes.changes import AddEncryptionKey
from iceberg_pyspark.changes.changes_json import update_to_json
from iceberg_pyspark.spec.encryption import encryption_key
from tests.amounts import WORK
from tests.support.encrypted_tables import files_with, key_properties, open_encrypted_catalog
from tests.support.java_records import append_records, create_java_table, read_records
from tests.support.oracle import Oracle
from tests.support.rows import PlainRow, arrow_rows, sorted_rows

POINT = struct.pack("<BI2d", 1, 1, 30, 10)
ENCRYPTED = {"format-version": "3", "encryption.key-id": "keyA"}


@pytest.fixture(scope="module")
def java_folder(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the warehouse of Java's catalog `java_keys`."""
    folder = tmp_path_factory.mktemp("encrypted")
    open_encrypted_catalog(oracle.spark, "java_keys", folder / "wh", folder)
    return folder


@pytest.fixture(scope="module")
def ours(java_folder: Path) -> ice.TableCatalog:
    """Return our catalog of the same tables and keys."""
    properties = key_properties(java_folder)
    return ice.load_catalog("ours", type="hadoop", warehouse=str(java_folder / "wh"), **properties)


def rows_of(ours: ice.TableCatalog, name: str) -> list[PlainRow]:
    return arrow_rows(ours.load_table(name).scan().to_arrow())


def test_java_tables(oracle: Oracle, ours: ice.TableCatalog) -> None:
    name = "java_keys.d.theirs"
    oracle.sql(
        f"create table {name} (id bigint, v string) tblproperties('format-version'='3', "
        "'encryption.key-id'='keyA', 'write.delete.mode'='merge-on-read', "
        "'write.merge.mode'='merge-on-read')"
    )
    oracle.sql(f"insert into {name} select id, 'secret' || id from range(20)")
    oracle.sql(f"delete from {name} where id in (3, 4)")
    assert rows_of(ours, "d.theirs") == oracle.table_rows(name)
    oracle.sql(
        f"merge into {name} a using (select 5L id, 'new' v) b on a.id = b.id "
        "when matched then update set v = b.v"
    )
    assert rows_of(ours, "d.theirs") == oracle.table_rows(name)
    ours.load_table("d.theirs").append(pa.table({"id": [100], "v": ["ours"]}))
    assert rows_of(ours, "d.theirs") == oracle.table_rows(name)
    oracle.sql(f"insert into {name} values (200, 'theirs again')")
    assert rows_of(ours, "d.theirs") == oracle.table_rows(name)
    assert ours.load_table("d.theirs").verify(check_files=True).findings == ()


@pytest.mark.parametrize("length", ["16", "24", "32"])
@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_our_tables(
    oracle: Oracle, ours: ice.TableCatalog, java_folder: Path, file_format: str, length: str
) -> None:
    name = f"{file_format}_{length}"
    properties = {
        **ENCRYPTED,
        "encryption.key-id": "keyB",
        "encryption.data-key-length": length,
        "write.format.default": file_format,
    }
    table = ours.create_table(f"d.{name}", "id BIGINT, v STRING", properties=properties)
    for start in (0, 10):
        ids = range(start, start + 10)
        table.append(pa.table({"id": list(ids), "v": [f"secret{i}" for i in ids]}))
    theirs = oracle.table_rows(f"java_keys.d.{name}")
    assert len(theirs) == 20
    assert rows_of(ours, f"d.{name}") == theirs
    assert files_with(java_folder / "wh" / "d" / name, ["secret", "PAR1"]) == []


@pytest.mark.nightly
@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_geometries_and_variants(
    oracle: Oracle, ours: ice.TableCatalog, java_folder: Path, file_format: str
) -> None:
    """Java's generic reader and writer, since its Spark runtime knows no geometries."""
    name = f"places_{file_format}"
    columns = {"id": "int", "g": "geometry", "gg": "geography", "v": "variant", "z": "string"}
    create_java_table(
        oracle,
        f"java_keys.d.{name}",
        [{"name": n, "type": t} for n, t in columns.items()],
        properties={
            **ENCRYPTED,
            "write.format.default": file_format,
            "write.parquet.shred-variants": "true",
        },
    )
    variants = ice.variants_from_objects([{"secret": "a", "b": [1]}, None, {"secret": 2.5}])
    rows = [
        {"id": i, "g": g, "gg": g, "v": v, "z": f"secret{i}"}
        for i, (g, v) in enumerate(zip((POINT, None, POINT), variants.to_pylist(), strict=True))
    ]
    append_records(oracle, f"java_keys.d.{name}", rows)
    table = ours.load_table(f"d.{name}")
    java = table.scan().to_arrow()
    assert [r["g"] for r in java.to_pylist()] == [r["g"] for r in rows]
    expected = arrow_rows(java)
    assert expected == arrow_rows(
        pa.table(
            {
                **{c: [r[c] for r in rows] for c in ["id", "g", "gg"]},
                "v": variants,
                "z": [r["z"] for r in rows],
            }
        )
    )
    table.append(java)
    found = read_records(oracle, f"java_keys.d.{name}")
    assert sorted_rows(map(tuple, found)) == sorted_rows(expected * 2)
    assert ours.load_table(f"d.{name}").verify(check_files=True).findings == ()
    assert files_with(java_folder / "wh" / "d" / name, ["secret", "PAR1"]) == []


def test_java_understands_the_update_of_a_key(oracle: Oracle) -> None:
    key = encryption_key("id", b"wrapped", "keyA", created_ms=7)
    text = json.dumps(update_to_json(AddEncryptionKey(key)))
    parser = oracle.jvm.org.apache.iceberg.MetadataUpdateParser
    assert json.loads(parser.toJson(parser.fromJson(text))) == json.loads(text)


@pytest.fixture
def lake(oracle: Oracle, java_folder: Path) -> Iterator[None]:
    """Install our catalog `lake` on the tables of `java_keys`."""
    conf = {
        "spark.sql.catalog.lake": "iceberg_pyspark",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(java_folder / "wh"),
        **{f"spark.sql.catalog.lake.{k}": v for k, v in key_properties(java_folder).items()},
    }
    for key, value in conf.items():
        oracle.spark.conf.set(key, value)
    session = install(oracle.spark)
    assert session.is_native
    yield
    session.uninstall()


@pytest.mark.nightly
@pytest.mark.parametrize("shred", ["false", "true"])
def test_both_change_one_table_in_spark(
    oracle: Oracle, java_folder: Path, lake: None, shred: str
) -> None:
    name = f"both_{shred}"
    theirs, ours = f"java_keys.d.{name}", f"lake.d.{name}"
    oracle.sql(
        f"create table {theirs} (id bigint, v string, w variant) tblproperties("
        f"'format-version'='3', 'write.parquet.shred-variants'='{shred}', "
        "'read.parquet.vectorization.enabled'='false', "
        "'encryption.key-id'='keyB', 'write.delete.mode'='merge-on-read', "
        "'write.merge.mode'='merge-on-read', 'write.update.mode'='merge-on-read')"
    )
    for number, (one, other) in enumerate([(theirs, ours), (ours, theirs)]):
        first = number * 1000
        oracle.sql(
            f"insert into {one} select id, 'secret' || id, parse_json(if(id % 5 = 1, null, "
            """concat('{"secret": ', id, ', "n": {"x": "secret"}}'))) """
            f"from range({first}, {first + 99})"
        )
        oracle.sql(
            f"""update {other} set w = parse_json('{{"secret": [{number}]}}') """
            "where try_variant_get(w, '$.secret', 'int') % 10 = 7"
        )
        oracle.sql(f"delete from {other} where id % 10 = 3")
        oracle.sql(f"update {one} set v = 'secret again' where id % 10 = 4")
        oracle.sql(
            f"merge into {other} a using (select explode(array(5L, {5000 + number}L)) id) b "
            "on a.id = b.id when matched then update set v = 'secret merged' "
            "when not matched then insert (id, v, w) values "
            "(b.id, 'secret new', parse_json('\"secret\"'))"
        )
        assert oracle.table_rows(ours) == oracle.table_rows(theirs)
    oracle.sql(
        f"call lake.system.rewrite_data_files('d.{name}', options => map('rewrite-all', 'true'))"
    )
    oracle.sql(f"call lake.system.rewrite_manifests('d.{name}')")
    assert oracle.table_rows(ours) == oracle.table_rows(theirs)
    oracle.sql(f"call java_keys.system.rewrite_data_files('d.{name}')")
    assert oracle.table_rows(ours) == oracle.table_rows(theirs)
    assert files_with(java_folder / "wh" / "d" / name, ["secret", "PAR1"]) == []


@pytest.mark.nightly
def test_java_applies_our_equality_deletes(oracle: Oracle, java_folder: Path, lake: None) -> None:
    name = "d.keyed"
    oracle.sql(
        f"create table java_keys.{name} (id bigint, v string) tblproperties("
        "'format-version'='3', 'encryption.key-id'='keyA')"
    )
    oracle.sql(f"insert into java_keys.{name} select id, 'secret' || id from range(10)")
    table = install(oracle.spark).table(f"lake.{name}")
    table.write_equality_deletes(oracle.spark.range(3, 6), ["id"])
    oracle.sql(f"insert into lake.{name} values (4, 'secret again')")
    java = oracle.table_rows(f"java_keys.{name}")
    assert len(java) == 8
    assert oracle.table_rows(f"lake.{name}") == java
    oracle.sql(f"call lake.system.rewrite_equality_deletes('{name}')")
    assert oracle.table_rows(f"java_keys.{name}") == java
    assert files_with(java_folder / "wh" / "d" / "keyed", ["secret", "PAR1", "PFA1"]) == []


def random_statement(random: Random, number: int) -> str:
    """Return a change of `{t}` that has the word of secrets in all that it writes."""
    low = random.randrange(60)
    some = f"id % {random.choice((2, 3, 7))} = 1 and id between {low} and {low + 30}"
    text = f"'secret {number}'"
    return random.choice(
        (
            f"insert into {{t}} select id, 'secret' || id, {number} from range({low}, {low + 20})",
            f"insert into {{t}} values ({low}, null, null), (null, {text}, {number})",
            f"update {{t}} set v = {text} where {some}",
            f"update {{t}} set p = p + 1, v = {text} where p = {number // 2}",
            f"delete from {{t}} where {some}",
            f"delete from {{t}} where v = 'secret{low}' or p = {number - 2}",
            f"merge into {{t}} a using (select id, {text} v from range({low}, {low + 9}) union all "
            f"select {1000 + number}, {text}) b on a.id = b.id when matched and a.p < {number} "
            "then delete when matched then update set v = b.v "
            f"when not matched then insert (id, v, p) values (b.id, b.v, {number})",
        )
    )


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3 * WORK))
def test_random_changes_by_both_and_by_python(
    oracle: Oracle, ours: ice.TableCatalog, java_folder: Path, lake: None, seed: int
) -> None:
    """Each change is made by Java, by our SQL or by plain Python; all read the same rows then."""
    random = Random(seed)
    name = f"random_{seed}"
    modes = {
        f"write.{op}.mode": random.choice(("merge-on-read", "copy-on-write"))
        for op in ("delete", "update", "merge")
    }
    properties = {
        **ENCRYPTED,
        **modes,
        "encryption.data-key-length": random.choice(("16", "24", "32")),
        "write.format.default": random.choice(("parquet", "parquet", "avro")),
    }
    texts = ", ".join(f"'{k}' = '{v}'" for k, v in properties.items())
    by = random.choice(("", "partitioned by (p)", "partitioned by (bucket(3, id))"))
    create = f"(id bigint, v string, p int) {by} tblproperties ({texts})"
    oracle.sql(f"create table {random.choice(('java_keys', 'lake'))}.d.{name} {create}")
    for number in range(12):
        maker = random.choice(("java_keys", "lake", "python"))
        if maker == "python":
            table = ours.load_table(f"d.{name}")
            if random.random() < 0.5:
                table.delete(f"id > {random.randrange(90)} and p < {number}")
            else:
                new = {"id": [number], "v": ["secret p"], "p": pa.array([number], pa.int32())}
                table.append(pa.table(new))
        else:
            oracle.sql(random_statement(random, number).format(t=f"{maker}.d.{name}"))
        java = oracle.table_rows(f"java_keys.d.{name}")
        assert oracle.table_rows(f"lake.d.{name}") == java, number
        assert rows_of(ours, f"d.{name}") == java, number
    assert ours.load_table(f"d.{name}").verify(check_files=True).findings == ()
    assert files_with(java_folder / "wh" / "d" / name, ["secret", "PAR1"]) == []
