"""Variants that we write: Java reads the same rows, and has the same bounds."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark import load_table, variants_from_objects, variants_to_objects
from iceberg_pyspark.arrow.column_metrics import MetricsCollector, metric_leaves
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle

pytestmark = pytest.mark.nightly

VALUES = """
    SELECT id, CASE WHEN id = 3 THEN NULL WHEN id = 4 THEN parse_json('null') ELSE
        parse_json(concat('{"a":', id, ',"s":"', repeat('x', id), '","d":', id, '.25,"t":true,',
        '"n":{"it''s":', id / 4, ',"mix":', if(id = 2, '"q"', '1'), '},"l":[', id, ',"e"],',
        '"long text":"', repeat('é', 20), id, '"}')) END v, concat('z', id) z FROM range(12)"""
ROWS = "SELECT id, to_json(v), z FROM {table} ORDER BY id"
# No number is 0.0: the statistics of pyarrow begin at -0.0 then, as the Parquet format asks.
TYPED = """
    SELECT id, to_variant_object(named_struct('b', id > 1,
        'i', CAST(id AS INT), 'd', DATE '1960-02-03', 't', TIMESTAMP '2001-02-03 04:05:06.7',
        'n', TIMESTAMP_NTZ '2001-02-03 04:05:06.7', 'f', CAST(-1.5 AS FLOAT), 'g',
        CAST(id + 1 AS DOUBLE), 'c', CAST(-1.25 AS DECIMAL(5, 2)), 'e',
        CAST(12345678901.5 AS DECIMAL(18, 1)),
        'h', CAST(-1 AS DECIMAL(38, 3)), 'x', X'00ff')) v, 'z' z FROM range(4)"""
SHREDDED = {
    "mixed": VALUES,
    "typed": TYPED,
    "alone": "SELECT id, parse_json(concat('\"t', id, '\"')) v, 'z' z FROM range(3)",
    "lists": "SELECT id, parse_json(concat('[[', id, '], []]')) v, 'z' z FROM range(3)",
    "objects": "SELECT id, parse_json(if(id = 2, '{}', "
    """'{"a": {"b": [{"c": 7}]}, "n": null}')) v, 'z' z FROM range(4)""",
    "nulls": "SELECT id, CAST(NULL AS VARIANT) v, 'z' z FROM range(3)",
}
STATEMENTS = (
    "INSERT INTO {table} " + VALUES,
    "INSERT INTO {table} VALUES (100, NULL, NULL), (101, parse_json('[]'), 'q')",
    "UPDATE {table} SET z = 'u' WHERE id = 2",
    "UPDATE {table} SET v = parse_json('[1, {}]') WHERE variant_get(v, '$.a', 'int') = 5",
    "DELETE FROM {table} WHERE variant_get(v, '$.s', 'string') = 'xxxxxx'",
    "MERGE INTO {table} t USING (SELECT 7L id, parse_json('true') v, 'm' z UNION ALL "
    "SELECT 200L, parse_json('1.5'), 'n') s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
    "WHEN NOT MATCHED THEN INSERT *",
)


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as installed:
        yield installed


def create(lake: Oracle, name: str, columns: str, **properties: str) -> None:
    options = {"format-version": "3"} | {k.replace("__", "."): v for k, v in properties.items()}
    text = ", ".join(f"'{k.replace('_', '-')}' = '{v}'" for k, v in options.items())
    lake.sql(f"CREATE TABLE java_hadoop.{name} ({columns}) USING iceberg TBLPROPERTIES ({text})")


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
@pytest.mark.parametrize("shred", ["false", "true"])
def test_changed_tables_have_the_rows_that_java_gives_them(
    lake: Oracle, mode: str, shred: str
) -> None:
    name = f"variants.{mode[:1]}_{shred}"
    modes = {f"write__{o}__mode": mode for o in ("delete", "update", "merge")}
    # Java's vectorized reader refuses its own files in which a whole variant is one typed column.
    modes["read__parquet__vectorization__enabled"] = "false"
    for side in ("ours", "javas"):
        columns = "id BIGINT, v VARIANT, z STRING"
        create(lake, f"{name}_{side}", columns, **modes, write__parquet__shred_variants=shred)
    for statement in STATEMENTS:
        lake.sql(statement.replace("{table}", f"lake.{name}_ours"))
        lake.sql(statement.replace("{table}", f"java_hadoop.{name}_javas"))
    java = lake.sql(ROWS.format(table=f"java_hadoop.{name}_javas")).collect()
    for _ in range(2):
        for catalog in ("lake", "java_hadoop"):
            assert lake.sql(ROWS.format(table=f"{catalog}.{name}_ours")).collect() == java
        lake.sql(
            f"CALL lake.system.rewrite_data_files(table => '{name}_ours', "
            "options => map('rewrite-all', 'true'))"
        )


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_java_reads_what_is_written_without_spark(lake: Oracle, file_format: str) -> None:
    name = f"variants.python_{file_format}"
    create(lake, name, "id BIGINT, v VARIANT", write__format__default=file_format)
    objects = [{"a": [1, None, {"b": "x" * 70}]}, None, -300, "text", 2.5, {}, {"é": True}]
    rows = {"id": list(range(len(objects))), "v": variants_from_objects(objects)}
    table = load_table(str(lake.warehouse.joinpath(*name.split("."))))
    table.append(pa.table(rows))
    shown = lake.sql(f"SELECT to_json(v) FROM java_hadoop.{name} ORDER BY id").collect()
    assert [r[0] for r in shown] == [
        '{"a":[1,null,{"b":"' + "x" * 70 + '"}]}', None, "-300", '"text"', "2.5", "{}", '{"é":true}'
    ]  # fmt: skip
    lake.sql(f"INSERT INTO java_hadoop.{name} VALUES (50, parse_json('[1]'))")
    column = table.refresh().scan("id = 50").to_arrow()["v"]
    assert variants_to_objects(column) == [[1]]


def test_what_python_shreds_is_what_java_shreds(lake: Oracle) -> None:
    """The same rows get the same typed columns and bounds, and all readers read both files."""
    columns, shred = "id BIGINT, v VARIANT, z STRING", {"write__parquet__shred_variants": "true"}
    shred["read__parquet__vectorization__enabled"] = "false"
    for name, values in SHREDDED.items():
        java, ours = f"variants.{name}_javas", f"variants.{name}_ours"
        for side in (java, ours):
            create(lake, side, columns, **shred)
        one_file = f"SELECT /*+ COALESCE(1) */ * FROM ({values})"
        lake.sql(f"INSERT INTO java_hadoop.{java} {one_file}")
        theirs, table = (
            load_table(str(lake.warehouse.joinpath(*n.split(".")))) for n in (java, ours)
        )
        table.append(theirs.scan().to_arrow())
        [one], [other] = (t.refresh().inspect.files().to_pylist() for t in (theirs, table))
        schemas = [pq.read_schema(f["file_path"].removeprefix("file:")) for f in (one, other)]
        assert schemas[0].field("v").type == schemas[1].field("v").type, name
        for kind in ("lower_bounds", "upper_bounds", "value_counts", "null_value_counts"):
            assert dict(other[kind]) == dict(one[kind]), (name, kind)
        rows = lake.sql(ROWS.format(table=f"java_hadoop.{java}")).collect()
        for reader in (f"java_hadoop.{ours}", f"lake.{ours}", f"lake.{java}"):
            assert lake.sql(ROWS.format(table=reader)).collect() == rows, (name, reader)


def test_bounds_of_shredded_fields_are_javas(lake: Oracle) -> None:
    """Java's files and its own bounds of them are the witness of ours."""
    name = "variants.bounds"
    columns = "id BIGINT, v VARIANT, z STRING"
    create(lake, name, columns, write__parquet__shred_variants="true")
    lake.sql(f"INSERT INTO java_hadoop.{name} {VALUES}")
    lake.sql(f"INSERT INTO java_hadoop.{name} {TYPED}")
    table = load_table(str(lake.warehouse.joinpath(*name.split("."))))
    files = table.inspect.files().to_pylist()
    keys = set()
    for file in files:
        footer = pq.read_metadata(file["file_path"].removeprefix("file:"))
        leaves = metric_leaves(table.schema, {})
        ours = MetricsCollector(leaves, sees_rows=False).finish(footer)
        for kind in ("lower_bounds", "upper_bounds", "value_counts", "null_value_counts"):
            assert ours[kind] == dict(file[kind]), kind
        assert ours["column_sizes"].keys() == dict(file["column_sizes"]).keys()
        keys.add(ours["lower_bounds"].get(2, b"").count(b"$["))
    assert max(keys) > 5
