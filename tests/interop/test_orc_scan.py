"""Spark's own reader reads an ORC file if its rows equal Java's; otherwise Python reads it."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.amounts import FULL_WORK
from tests.support.native_lake import native_lake, plan_of, same_rows
from tests.support.oracle import Oracle
from tests.support.parameters import cases, pairs
from tests.support.rows import spark_rows
from tests.support.spark_settings import configured

EVERY_READ = FULL_WORK
"""Whether tests make every read, or of several similar reads only some, as in `make test`."""

ROWS = "select id, cast(id % 3 as int) g, cast(id as string) s, id * 1.5 d from range(100)"
STRIPED = "select id, uuid() u, repeat('x', 50) s from range(0, 60000, 1, 1)"
NESTED = (
    "select id, named_struct('a', cast(id as int), 'b', cast(id as string)) st, "
    "array(named_struct('x', id), null, named_struct('x', cast(null as bigint))) xs, "
    "map('k', named_struct('q', cast(id as double)), 'none', null) m from range(20)"
)


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as installed:
        yield installed


def orc_table(
    lake: Oracle, name: str, rows: str = ROWS, partitioned: str = "", version: int = 2, **more: str
) -> str:
    """Create a table of ORC files with Java; return its name without the catalog."""
    properties = {"write.format.default": "orc", "format-version": str(version)} | {
        key.replace("__", "-").replace("_", "."): value for key, value in more.items()
    }
    options = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
    lake.sql(
        f"create table java_hadoop.orc.{name} using iceberg {partitioned} "
        f"tblproperties ({options}) as {rows}"
    )
    return f"orc.{name}"


def portable_rows(lake: Oracle, name: str) -> list[object]:
    path = str(lake.warehouse / name.replace(".", "/"))
    read = lake.spark.read.format("iceberg-py").option("native", "false")
    return list(spark_rows(read.load(path).collect()))


WHOLE = "select * from {t}"


def native(lake: Oracle, name: str, query: str = WHOLE, *, portably: bool = EVERY_READ) -> str:
    """Check that Java returns equal rows; return the plan, in which only Spark reads.

    Where the query is the whole table, check `portably` that Python returns the same rows too.
    """
    plan = same_rows(lake, query.replace("{t}", "{t}." + name))
    assert "IcebergPyOrcScan" in plan
    assert "MapInArrow" not in plan
    if query == WHOLE and portably:
        assert portable_rows(lake, name) == list(lake.table_rows(f"java_hadoop.{name}"))
    return plan


def portable(lake: Oracle, name: str, query: str = WHOLE) -> str:
    """Check that Java returns equal rows; return the plan, in which Python reads the ORC files."""
    plan = same_rows(lake, query.replace("{t}", "{t}." + name))
    assert "IcebergPyOrcScan" not in plan
    assert "MapInArrow" in plan
    return plan


@cases(
    ("version", "partitioned"),
    fast=[(3, "partitioned by (g)")],
    nightly=[
        (3, ""),
        (3, "partitioned by (bucket(4, id))"),
        *product([2], ["", "partitioned by (g)", "partitioned by (bucket(4, id))"]),
    ],
)
def test_orc_files_are_read_by_sparks_own_reader(
    lake: Oracle, version: int, partitioned: str
) -> None:
    name = f"plain_{version}_{sum(map(ord, partitioned))}"
    name = orc_table(lake, name, partitioned=partitioned, version=version)
    native(lake, name, portably=True)
    native(lake, name, "select s, d from {t} where id > 10 and g = 1")
    native(lake, name, "select g, sum(d), max(s) from {t} where s > '3' group by g")
    native(lake, name, "select _file, _spec_id, _deleted, id from {t} where id < 5")
    native(lake, name, "select count(s) from {t} where id % 2 = 0")
    native(lake, name, "select g from {t}")
    native(lake, name, "select 1 from {t}")
    limited = lake.sql(f"select * from lake.{name} limit 7")
    assert len(limited.collect()) == 7
    assert "IcebergPyOrcScan" in plan_of(limited)


@pytest.mark.nightly
def test_orc_files_without_ids_are_read_portably(lake: Oracle) -> None:
    name = orc_table(lake, "version1", version=1)
    portable(lake, name)
    lake.sql(f"alter table java_hadoop.{name} set tblproperties ('format-version'='2')")
    portable(lake, name)
    lake.sql(f"insert into java_hadoop.{name} {ROWS}")
    plan = same_rows(lake, f"select * from {{t}}.{name}")
    assert "IcebergPyOrcScan" in plan
    assert "MapInArrow" in plan


@pytest.mark.nightly
def test_files_of_two_formats_are_parts_of_one_plan(lake: Oracle) -> None:
    name = orc_table(lake, "mixed")
    for written in ("parquet", "avro"):
        lake.sql(
            f"alter table java_hadoop.{name} set tblproperties ('write.format.default'='{written}')"
        )
        lake.sql(f"insert into java_hadoop.{name} {ROWS}")
    plan = same_rows(lake, f"select * from {{t}}.{name} where id < 50")
    assert "IcebergPyOrcScan" in plan
    assert "IcebergPyParquetScan" in plan
    assert "MapInArrow" in plan


@pytest.mark.nightly
def test_positions_in_orc_files_are_counted_by_python(lake: Oracle) -> None:
    name = orc_table(lake, "positions", version=3)
    portable(lake, name, "select _pos, id from {t}")
    portable(lake, name, "select _row_id, id from {t}")
    portable(lake, name, "select _last_updated_sequence_number, id from {t}")
    native(lake, name)


@pytest.mark.nightly
@pytest.mark.parametrize("version", [2, 3])
def test_deleted_rows_stay_deleted(lake: Oracle, version: int) -> None:
    name = orc_table(lake, f"deleted_{version}", version=version, write_delete_mode="merge-on-read")
    table = f"java_hadoop.{name}"
    lake.sql(f"insert into {table} select id + 100, g, s, d from ({ROWS})")
    lake.write_equality_deletes(table, ["id"], [(5,), (105,)])
    native(lake, name)
    lake.sql(f"insert into {table} select 5L, 1, 'again', 0.0")
    native(lake, name, portably=True)
    native(lake, name, "select s from {t} where g = 2")
    lake.sql(f"delete from {table} where id = 7")
    plan = same_rows(lake, f"select * from {{t}}.{name}")
    assert "IcebergPyOrcScan" in plan
    assert "MapInArrow" in plan, "the file with a deleted position"


@pytest.mark.nightly
def test_equality_deletes_of_a_dropped_column_are_applied(lake: Oracle) -> None:
    name = orc_table(lake, "dropped_key")
    lake.write_equality_deletes(f"java_hadoop.{name}", ["s"], [("5",), ("6",)])
    lake.sql(f"alter table java_hadoop.{name} drop column s")
    native(lake, name, portably=True)
    lake.sql(f"alter table java_hadoop.{name} add column s string")
    # Java cannot plan this read.
    frame = lake.sql(f"select id from lake.{name} where id < 8")
    assert "IcebergPyOrcScan" not in plan_of(frame)
    assert sorted(row.id for row in frame.collect()) == [0, 1, 2, 3, 4, 7]


@pytest.mark.nightly
@pytest.mark.parametrize("case_sensitive", ["false", "true"])
def test_names_that_meant_one_column_are_read_by_name(lake: Oracle, case_sensitive: str) -> None:
    with configured(lake.spark, {"spark.sql.caseSensitive": case_sensitive}):
        name = orc_table(lake, f"added_{case_sensitive}")
        lake.sql(f"alter table java_hadoop.{name} add column n int first")
        native(lake, name)
        lake.sql(f"insert into java_hadoop.{name} values (1, 200, 1, 'x', 0.5)")
        native(lake, name)
        native(lake, name, "select n from {t}")
        native(lake, name, "select id from {t} where n is null")
        lake.sql(f"alter table java_hadoop.{name} drop column g")
        native(lake, name)
        lake.sql(f"alter table java_hadoop.{name} alter column d after n")
        native(lake, name, portably=True)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("changes", "column"),
    [
        (["rename column s to text"], "text"),
        (["rename column s to text", "rename column text to S"], "S"),
        (["rename column s to text", "rename column g to s"], "s"),
        (["drop column s", "add column s string"], "s"),
        (["drop column s", "add column S string"], "S"),
        (["alter column g type bigint"], "g"),
        (["alter column f type double"], "f"),
        (["alter column c type decimal(12,2)"], "c"),
    ],
)
def test_a_column_with_another_past_is_read_by_field_id(
    lake: Oracle, changes: list[str], column: str
) -> None:
    name = f"past_{sum(map(ord, ''.join(changes)))}"
    rows = f"select *, cast(d as float) f, cast(d as decimal(9,2)) c from ({ROWS})"
    name = orc_table(lake, name, rows)
    for change in changes:
        lake.sql(f"alter table java_hadoop.{name} {change}")
    portable(lake, name, f"select {column} from {{t}}")
    lake.sql(f"insert into java_hadoop.{name} select * from java_hadoop.{name}")
    portable(lake, name, f"select {column}, id from {{t}} where {column} is null or id > 3")
    native(lake, name, "select id, d from {t}")


@pytest.mark.nightly
def test_names_that_differ_by_case_are_two_columns(lake: Oracle) -> None:
    with configured(lake.spark, {"spark.sql.caseSensitive": "true"}):
        name = orc_table(lake, "cases", "select id, id + 1 ID, id + 2 other from range(9)")
        portable(lake, name)
        native(lake, name, "select other from {t}")


@pytest.mark.nightly
def test_nested_columns_are_read_by_name_as_far_as_the_same_holds_inside(lake: Oracle) -> None:
    name = orc_table(lake, "nested", NESTED)
    table = f"java_hadoop.{name}"
    native(lake, name)
    native(lake, name, "select st.b, xs.x, m['k'].q from {t} where st.a > 3")
    for change in (
        "add column st.c int",
        "add column xs.element.y string",
        "add column m.value.r int",
    ):
        lake.sql(f"alter table {table} {change}")
    native(lake, name)
    native(lake, name, "select st.c, xs.y, m['k'].r from {t}")
    lake.sql(
        f"insert into {table} select id, named_struct('a', 1, 'b', 'b', 'c', 2), null, null "
        "from range(3)"
    )
    native(lake, name, portably=True)
    lake.sql(f"alter table {table} rename column st.b to text")
    portable(lake, name)
    native(lake, name, "select id, xs, m from {t}")
    native(lake, name, "select st.a, st.c from {t}")
    lake.sql(f"alter table {table} drop column m.value.r")
    lake.sql(f"alter table {table} add column m.value.r string")
    portable(lake, name, "select m from {t}")


@pytest.mark.nightly
def test_a_struct_of_which_old_files_lack_all_fields_asked_for_is_not_null(lake: Oracle) -> None:
    name = orc_table(
        lake, "lacking", "select id, if(id < 2, null, named_struct('a', id)) st from range(4)"
    )
    lake.sql(f"alter table java_hadoop.{name} add column st.later int")
    native(lake, name, "select id, st is null, st.later from {t}")


@pytest.mark.nightly
def test_older_files_have_the_initial_default_of_a_new_column(lake: Oracle) -> None:
    name = orc_table(lake, "defaults", version=3)
    lake.load_java_table(f"java_hadoop.{name}").updateSchema().addColumn(
        "n",
        lake.jvm.org.apache.iceberg.types.Types.IntegerType.get(),
        lake.jvm.org.apache.iceberg.expressions.Literal.of(7),
    ).commit()
    plan = plan_of(lake.sql(f"select * from lake.{name}"))
    assert "IcebergPyOrcScan" not in plan
    assert {row.n for row in lake.sql(f"select n from lake.{name}").collect()} == {7}
    # Java cannot read this table at all.
    frame = lake.sql(f"select id from lake.{name} where id > 97")
    assert "IcebergPyOrcScan" in plan_of(frame)
    assert sorted(row.id for row in frame.collect()) == [98, 99]


@pytest.mark.nightly
def test_columns_called_by_their_places_are_read_by_python(lake: Oracle) -> None:
    name = orc_table(lake, "places", "select id as _col1, id + 1 as _col0 from range(5)")
    portable(lake, name)
    lake.sql(f"alter table java_hadoop.{name} add column named int")
    portable(lake, name)


@pytest.mark.nightly
def test_odd_names_are_found(lake: Oracle) -> None:
    name = orc_table(
        lake,
        "odd_names",
        "select id as `a.b`, id + 1 as `sp ace`, id + 2 as `x<y>:z,`, id + 3 as `\u00fcml`, "
        "named_struct('b', id + 4, 'o d', id) st, id as `_col1` from range(5)",
    )
    native(lake, name)
    lake.sql(f"alter table java_hadoop.{name} add column `back``tick` int")
    portable(lake, name)
    native(lake, name, "select `a.b`, st.b, st.`o d` from {t}")


VALUES = {
    "boolean": "true, false",
    "int": "-2147483648, 2147483647",
    "bigint": "-9223372036854775808, 9223372036854775807",
    "float": "float('nan'), float('-inf'), float('-0.0'), float('1.1')",
    "double": "double('nan'), double('inf'), double('-0.0'), 4.9e-324d",
    "decimal(9,2)": "-9999999.99, 0.01",
    "decimal(18,18)": "-0.000000000000000001, 0.999999999999999999",
    "decimal(38,10)": "12345678901234567890.0123456789, -0.0000000001",
    "string": "'', '\u00e9\U0001f600', 'null'",
    "binary": "X'', X'00ff'",
    "date": "date'1600-01-01', date'1969-12-31', date'9999-12-31'",
}


@pytest.mark.nightly
@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_values_are_those_of_java(lake: Oracle, vectorized: str) -> None:
    arrays = ", ".join(
        f"array({', '.join(f'cast({v} as {kind})' for v in values.split(', '))}, null)"
        for kind, values in VALUES.items()
    )
    with configured(lake.spark, {"spark.sql.orc.enableVectorizedReader": vectorized}):
        rows = f"select inline(arrays_zip({arrays}))"
        names = ", ".join(f"v{i}" for i in range(len(VALUES)))
        rows = f"select * from ({rows}) t({names})"
        name = orc_table(lake, f"values_{vectorized}", rows)
        native(lake, name, portably=True)
        for i in range(0, len(VALUES), 1 if EVERY_READ else 4):
            native(lake, name, f"select v{i} from {{t}} where v{i} is not null")


KATHMANDU = pytest.param("Asia/Kathmandu", marks=pytest.mark.nightly)


@pytest.mark.nightly
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", KATHMANDU])
def test_times_and_old_dates_are_read_by_python(lake: Oracle, zone: str) -> None:
    with configured(lake.spark, {"spark.sql.session.timeZone": zone}):
        prefix = f"times_{sum(map(ord, zone))}"
        kinds = {
            "zoned": "timestamp'1969-12-31 23:59:59.999999Z', timestamp'2020-03-08 07:30:00'",
            "naive": "timestamp_ntz'1969-12-31 23:59:59.999999', timestamp_ntz'2020-03-08'",
            "days": "date'1599-12-31', date'2020-01-01'",
        }
        for kind, values in kinds.items():
            rows = f"select explode(array({values})) v, 1 as one"
            name = orc_table(lake, f"{prefix}_{kind}", rows)
            portable(lake, name, "select v from {t}")
            query = "select one from {t}"
            # Spark's reader does not open a file that has a timestamp with zone.
            (portable if kind == "zoned" else native)(lake, name, query)
        rows = "select date'2020-01-01' d, array(date'1500-01-01') ds, struct(date'1400-01-01') st"
        name = orc_table(lake, f"{prefix}_nested", rows)
        portable(lake, name, "select ds from {t}")
        portable(lake, name, "select st from {t}")
        native(lake, name, "select d from {t}")
        lake.sql(f"insert into java_hadoop.{name} select date'1500-01-01', null, null")
        plan = same_rows(lake, f"select d from {{t}}.{name}")
        assert "IcebergPyOrcScan" in plan, "the file with new dates"
        assert "MapInArrow" in plan, "the file with old ones"


@pytest.mark.nightly
def test_dates_without_bounds_are_read_by_python(lake: Oracle) -> None:
    name = orc_table(
        lake,
        "no_bounds",
        "select date'1500-01-01' d, 1 as one",
        write_metadata_metrics_default="counts",
    )
    portable(lake, name)
    native(lake, name, "select one from {t}")


SETTINGS = {
    "spark.sql.orc.filterPushdown": "false",
    "spark.sql.orc.mergeSchema": "true",
    "spark.sql.orc.impl": "hive",
    "spark.sql.orc.columnarReaderBatchSize": "3",
    "spark.sql.orc.enableNestedColumnVectorizedReader": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.columnVector.offheap.enabled": "true",
    "orc.force.positional.evolution": "true",
    "orc.skip.corrupt.data": "true",
    "orc.proleptic.gregorian": "true",
}


@pytest.mark.nightly
def test_settings_of_orc_change_no_rows(lake: Oracle) -> None:
    rows = f"select *, date'1969-01-01' day, named_struct('a', d) st from ({ROWS})"
    name = orc_table(lake, "settings", rows)
    lake.sql(f"alter table java_hadoop.{name} add column n int first")
    for key, value in SETTINGS.items():
        with configured(lake.spark, {key: value}):
            native(lake, name, "select s, n, st.a, day from {t} where id > 90 and s <> '95'")


@pytest.mark.nightly
def test_files_that_others_wrote_may_lack_field_ids(lake: Oracle) -> None:
    name = orc_table(lake, "mapped")
    mapping = '[{"field-id": 1, "names": ["id"]}]'
    lake.sql(
        f"alter table java_hadoop.{name} "
        f"set tblproperties ('schema.name-mapping.default'='{mapping}')"
    )
    portable(lake, name)


@pytest.mark.nightly
def test_every_row_is_in_one_split(lake: Oracle) -> None:
    name = orc_table(lake, "splits", STRIPED, write_orc_stripe__size__bytes="65536")
    table = f"lake.{name}"
    for size in ("1", "50000", "500000") if EVERY_READ else ("50000",):
        lake.sql(
            f"alter table java_hadoop.{name} set tblproperties ('read.split.target-size'='{size}')"
        )
        frame = lake.sql(f"select count(u), sum(id), count(distinct id) from {table}")
        assert "IcebergPyOrcScan" in plan_of(frame)
        assert tuple(frame.first() or ()) == (60000, sum(range(60000)), 60000)
    pieces = lake.spark.read.option("split-size", "50000").table(table).rdd.getNumPartitions()
    assert pieces > 5


@pytest.mark.nightly
@pytest.mark.parametrize("size", [13, 100_000, 2**41])
def test_a_wrong_size_in_an_entry_loses_no_row(lake: Oracle, size: int) -> None:
    name = orc_table(lake, f"sizes_{size}", STRIPED, write_orc_stripe__size__bytes="65536")
    table = lake.load_java_table(f"java_hadoop.{name}")
    task = table.newScan().planFiles().iterator().next()
    files = lake.jvm.org.apache.iceberg.DataFiles.builder(table.spec()).copy(task.file())
    text = files.withFileSizeInBytes(size).build()
    table.newOverwrite().deleteFile(task.file()).addFile(text).commit()
    frame = lake.sql(f"select count(u), sum(id), count(distinct id) from lake.{name}")
    assert "IcebergPyOrcScan" in plan_of(frame)
    assert tuple(frame.first() or ()) == (60000, sum(range(60000)), 60000)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["gone", "cut off", "cut short", "overwritten", "another format"])
def test_a_damaged_file_is_an_error_that_names_it(lake: Oracle, kind: str) -> None:
    name = orc_table(
        lake, f"damaged_{kind.replace(' ', '_')}", ROWS.replace("100", "0, 20000, 1, 1")
    )
    (location,) = lake.data_files(f"java_hadoop.{name}")
    path = Path(location.removeprefix("file:"))
    content = path.read_bytes()
    match kind:
        case "gone":
            path.unlink()
        case "cut off":
            path.write_bytes(b"")
        case "cut short":
            path.write_bytes(content[: len(content) // 2])
        case "overwritten":
            path.write_bytes(content[:-300] + bytes(300))
        case _:
            path.write_bytes(b"PAR1" + content[4:-4] + b"PAR1")
    (path.parent / f".{path.name}.crc").unlink()
    frame = lake.sql(f"select * from lake.{name}")
    assert "IcebergPyOrcScan" in plan_of(frame)
    with pytest.raises(Exception, match=path.name):
        frame.collect()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("version", "partitioned"),
    pairs([2, 3], ["", "partitioned by (g)", "partitioned by (days(day))"]),
)
def test_files_that_we_wrote_are_read_by_sparks_reader(
    lake: Oracle, version: int, partitioned: str
) -> None:
    name = f"orc.ours_{version}_{sum(map(ord, partitioned))}"
    lake.sql(
        f"create table lake.{name} (id bigint, g int, s string, d double, day date, "
        f"st struct<a: int, xs: array<string>>, m map<string, decimal(9, 2)>) {partitioned} "
        f"tblproperties ('write.format.default'='orc', 'format-version'='{version}')"
    )
    rows = (
        "select id, cast(id % 3 as int), cast(id as string), if(id = 7, double('nan'), id * 1.5), "
        "date_add(date'1969-12-28', cast(id % 7 as int)), "
        "if(id % 4 = 0, null, named_struct('a', cast(id as int), 'xs', array('x', null))), "
        "map('k', cast(id as decimal(9, 2)), 'none', null) from range(100)"
    )
    lake.sql(f"insert into lake.{name} {rows}")
    native(lake, name)
    native(lake, name, "select g, day, sum(d), max(s) from {t} where id > 10 group by g, day")
    native(lake, name, "select st.xs, m['k'] from {t} where st.a > 3 and day < '1970-01-02'")
    lake.sql(f"alter table lake.{name} add column later int")
    lake.sql(f"delete from lake.{name} where id < 5")
    native(lake, name, portably=True)


@pytest.mark.nightly
def test_a_join_leaves_out_orc_files_that_it_needs_not(lake: Oracle) -> None:
    name = orc_table(lake, "joined", partitioned="partitioned by (g)")
    filter_table = orc_table(lake, "wanted", "select g, 'no' || g as said from range(3) t(g)")
    query = (
        f"select t.id from {{t}} t join {{t}}.{filter_table} w on t.g = w.g where w.said = 'no1'"
    )
    ours = lake.sql(query.replace("{t} t", f"lake.{name} t").replace("{t}", "lake"))
    assert sorted(row.id for row in ours.collect()) == list(range(1, 100, 3))
    plan = plan_of(ours)
    assert "dynamicpruning" in plan
    assert "MapInArrow" not in plan


@pytest.mark.nightly
def test_orc_tables_that_are_partitioned_alike_are_joined_without_a_shuffle(lake: Oracle) -> None:
    bucketed = "partitioned by (bucket(4, id))"
    one, other = (orc_table(lake, f"alike_{i}", partitioned=bucketed) for i in range(2))
    settings = {
        "spark.sql.iceberg.planning.preserve-data-grouping": "true",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.enabled": "false",
    }
    with configured(lake.spark, settings):
        query = f"select a.id, b.s from {{t}} a join lake.{other} b on a.id = b.id"
        assert "Exchange" not in native(lake, one, query)
