"""Existing files are added to a table."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from iceberg_pyspark import Table
from iceberg_pyspark.arrow.write import imported_files
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.manifests import DataFileFormat
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import IdentityTransform
from iceberg_pyspark.spec.types import NestedField, primitive_from_string
from iceberg_pyspark.spec.values import value_from_bytes
from iceberg_pyspark.storage.files.local import local_path
from iceberg_pyspark.table.commits.partition_folders import partition_of_texts
from tests.support.frames import create_path_table, path_table
from tests.support.scan_tasks import READS_ORC_TIMES

COLUMNS = "id BIGINT, name STRING, price DECIMAL(9, 2), ratio DOUBLE"


def rows(*ids: int) -> pa.Table:
    """Return rows with another column order than the table's, and with an additional column."""
    return pa.table(
        {
            "more": [f"m{i}" for i in ids],
            "ratio": [float("nan")] + [0.5] * (len(ids) - 1),
            "price": pa.array([Decimal(i) for i in ids], pa.decimal128(9, 2)),
            "name": [f"n{i}" for i in ids],
            "id": pa.array(ids, pa.int64()),
        }
    )


def ids(table: Table) -> list[int]:
    return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return create_path_table(tmp_path / "t", COLUMNS, [])


def test_parquet_files_of_a_folder(table: Table, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    for name, part in (("a", rows(1, 2)), ("deep/b", rows(3))):
        pq.write_table(part, source / f"{name}.parquet")
    for hidden in ("_SUCCESS", ".part.crc", "_temporary/c.parquet"):
        (source / hidden).parent.mkdir(exist_ok=True)
        (source / hidden).write_bytes(b"no Parquet")
    added = table.add_files(str(source))
    assert (added.added_files_count, added.changed_partition_count) == (2, 1)
    assert ids(table) == [1, 2, 3]
    assert table.scan(columns=["name"]).to_arrow()["name"].to_pylist()[0] == "n1"
    assert "schema.name-mapping.default" in table.properties
    [first, _] = sorted(table.scan().plan_files(), key=lambda t: t.file_path)
    assert first.record_count == 2
    assert first.file_size_in_bytes == (source / "a.parquet").stat().st_size
    # The footer lacks some metrics of floats, and split offsets are taken from the file.
    files = table.metadata_table("files").to_arrow().to_pylist()
    [entry] = [f for f in files if f["file_path"].endswith("a.parquet")]
    bounds = dict(entry["lower_bounds"])
    schema = table.schema
    types = {f.field_id: f for f in schema.fields}
    actual = {types[i].name: value_from_bytes(types[i].type, b) for i, b in bounds.items()}
    assert actual == {"id": 1, "name": "n1", "price": Decimal("1.00")}
    assert dict(entry["null_value_counts"]) == {types[i].field_id: 0 for i in (1, 2, 3, 4)}
    assert dict(entry["nan_value_counts"]) == {}
    assert table.scan(filter="id > 2").to_arrow().num_rows == 1
    assert table.scan(filter="isnan(ratio)").to_arrow().num_rows == 2


def test_files_in_folders_that_name_no_partition_count_or_not(table: Table, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    for name, part in (("a", rows(1, 2)), ("deep/b", rows(3))):
        pq.write_table(part, source / f"{name}.parquet")
    assert table.add_files(str(source), nested_folders=False).added_files_count == 1
    assert ids(table) == [1, 2]
    assert table.add_files(str(source / "deep"), nested_folders=False).added_files_count == 1
    assert ids(table) == [1, 2, 3]


def test_folders_in_small_letters_are_those_of_the_column(tmp_path: Path) -> None:
    """Hive writes folder names in lower case, which is ambiguous for columns `Day` and `DAY`."""
    table = create_path_table(tmp_path / "t", "id BIGINT, Day STRING", partitioned_by=["Day"])
    (tmp_path / "source/day=x").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "source/day=x/f.parquet")
    table.add_files(str(tmp_path / "source"), partitions=[{"Day": "x"}])
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "Day": "x"}]
    other = create_path_table(
        tmp_path / "u", "id BIGINT, Day STRING, DAY STRING", partitioned_by=["Day"]
    )
    with pytest.raises(InvalidRequestError, match="is partitioned by day"):
        other.add_files(str(tmp_path / "source"))


def test_columns_of_another_spelling_are_refused(tmp_path: Path) -> None:
    """Such columns are not the table's, but Spark's own readers would take them for those."""
    table = create_path_table(tmp_path / "t", "id BIGINT, s STRUCT<x: BIGINT, y: BIGINT>", [])
    struct = pa.array([{"X": 1, "y": 2}])
    for column, file in (
        ("ID", pa.table({"ID": [1], "s": pa.array([{"x": 1, "y": 2}])})),
        ("X", pa.table({"id": [1], "s": struct})),
    ):
        pq.write_table(file, tmp_path / "f.parquet")
        with pytest.raises(InvalidRequestError, match=rf"f\.parquet: its column '{column}' is"):
            table.add_files(str(tmp_path / "f.parquet"))
    assert ids(table) == []
    # A column with the table's exact name is used, even beside one that differs only in case.
    pq.write_table(pa.table({"ID": [1], "id": [2]}), tmp_path / "f.parquet")
    table.add_files(str(tmp_path / "f.parquet"))
    assert ids(table) == [2]


def test_two_do_not_add_one_file_by_two_names(table: Table, tmp_path: Path) -> None:
    file = tmp_path / "one.parquet"
    pq.write_table(rows(1), file)
    other = path_table(tmp_path / "t")
    table.add_files(str(file))
    with pytest.raises(InvalidRequestError, match="duplicate their rows"):
        other.add_files(f"file:{file}")
    assert ids(other.refresh()) == [1]


def test_a_file_is_not_added_again_by_another_spelling(table: Table, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "p").mkdir(parents=True)
    pq.write_table(rows(1), source / "p/a.parquet")
    (tmp_path / "link").symlink_to(source)
    spellings = [
        f"{tmp_path}//source/p/",
        f"{source}/./p",
        f"{source}/p/../p/a.parquet",
        f"{tmp_path}/link/p",
        f"file:{source}/p//a.parquet",
        f"file://{source}/p",
        f"file:///{tmp_path}/link",
    ]
    for first in spellings:
        table.add_files(first)
        [file] = {task.file_path for task in table.scan().plan_files()}
        assert not {"", ".", ".."} & set(local_path(file)[1:].split("/"))
        for second in [*spellings, str(source)]:
            with pytest.raises(InvalidRequestError, match="already"):
                table.add_files(second)
        assert ids(table) == [1]
        table.delete("id = 1")


def test_one_file_and_not_twice(table: Table, tmp_path: Path) -> None:
    file = tmp_path / "one.parquet"
    pq.write_table(rows(1), file)
    table.add_files(str(file))
    assert ids(table) == [1]
    for again in (str(file), f"file:{file}", f"file://{file}"):
        with pytest.raises(InvalidRequestError, match="already"):
            table.add_files(again)
    assert ids(table) == [1]
    # A rename keeps the rows, because the name mapping has the name in the file.
    table.update_schema().rename_column("id", "key").commit()
    assert table.scan(columns=["key"]).to_arrow()["key"].to_pylist() == [1]


@pytest.mark.parametrize("columns", [COLUMNS, "id BIGINT NOT NULL, name STRING"])
@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_files_of_other_formats(tmp_path: Path, file_format: str, columns: str) -> None:
    table = create_path_table(tmp_path / "t", columns, [])
    file = tmp_path / f"one.{file_format}"
    part = rows(1, 2).select(["name", "id"])
    if file_format == "orc":
        orc.write_table(part, file)
    else:
        fields = [{"name": "name", "type": "string"}, {"name": "id", "type": "long"}]
        with file.open("wb") as stream:
            fastavro.writer(
                stream, {"type": "record", "name": "r", "fields": fields}, part.to_pylist()
            )
    table.add_files(str(file), file_format=file_format)  # type: ignore[arg-type]
    [task] = table.scan().plan_files()
    assert (task.record_count, task.file_format) == (2, file_format)
    assert ids(table) == [1, 2]


@pytest.mark.skipif(not READS_ORC_TIMES, reason="this pyarrow reads no ORC timestamps")
def test_local_timestamps_in_orc_are_not_added_as_timestamptz(tmp_path: Path) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=timezone.utc).replace(tzinfo=None)
    file = tmp_path / "clock.orc"
    orc.write_table(pa.table({"s": [{"ts": noon}], "n": [1]}), file)
    table = create_path_table(tmp_path / "m", "s STRUCT<ts: TIMESTAMP>, n BIGINT", [])
    with pytest.raises(InvalidRequestError, match="column 'ts' has times without a zone"):
        table.add_files(str(file), file_format="orc")
    assert table.refresh().current_snapshot is None
    clocks = create_path_table(tmp_path / "c", "s STRUCT<ts: TIMESTAMP_NTZ>, n BIGINT", [])
    clocks.add_files(str(file), file_format="orc")
    assert clocks.scan().to_arrow()["s"].to_pylist() == [{"ts": noon}]


def test_folders_name_partitions(tmp_path: Path) -> None:
    table = create_path_table(
        tmp_path / "t", "id BIGINT, day DATE, country STRING", [], partitioned_by=["day", "country"]
    )
    source = tmp_path / "source"
    for day, country, number in (
        ("2026-01-01", "de", 1),
        ("2026-01-01", "a%2Fb%20c", 2),
        ("2026-01-02", "__HIVE_DEFAULT_PARTITION__", 3),
    ):
        folder = source / f"country={country}" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [number]}), folder / "x.parquet")
    added = table.add_files(str(source), partition_filter={"country": "de"})
    assert (added.added_files_count, added.changed_partition_count) == (1, 1)
    assert table.add_files(str(source), partition_filter={"day": "2026-01-02"}).added_files_count
    table.add_files(str(source), partition_filter={"country": "a/b c"})
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda r: int(r["id"])) == [
        {"id": 1, "day": date(2026, 1, 1), "country": "de"},
        {"id": 2, "day": date(2026, 1, 1), "country": "a/b c"},
        {"id": 3, "day": date(2026, 1, 2), "country": None},
    ]
    assert table.scan(filter="day = '2026-01-02'").to_arrow()["id"].to_pylist() == [3]
    assert table.add_files(str(source), partition_filter={"country": "fr"}).added_files_count == 0
    with pytest.raises(InvalidRequestError, match="no folders of partition column year"):
        table.add_files(str(source), partition_filter={"year": "2026"})


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("", "partitioned by nothing"),
        ("id=1", "partitioned by id"),
        ("day=2026-13-01", "day=2026-13-01, which is not of type date"),
        ("day=2026-01-01/n=x", "n=x, which is not of type int"),
        ("day=2026-01-01/n=2147483648", "n=2147483648, which is not of type int"),
        # what Python's own conversions accept
        ("day=2026-01-01/n=1_000", "n=1_000, which is not of type int"),
        ("day=2026-01-01/n=%201", "n= 1, which is not of type int"),
        ("day=2026-1-1", "day=2026-1-1, which is not of type date"),
    ],
)
def test_folders_that_do_not_fit(tmp_path: Path, folder: str, message: str) -> None:
    spec = ["day", "n"] if "n=" in folder else ["day"]
    table = create_path_table(tmp_path / "t", "id BIGINT, day DATE, n INT", [], partitioned_by=spec)
    (tmp_path / "source" / folder).mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "source" / folder / "x.parquet")
    with pytest.raises(InvalidRequestError, match=message):
        table.add_files(str(tmp_path / "source"))
    assert table.current_snapshot is None


def test_file_that_does_not_fit_the_table_is_not_added(table: Table, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    good = source / "good.parquet"
    pq.write_table(rows(1), good)
    for columns, message in (
        ({"id": ["text"]}, "column 'id' is stored as string"),
        ({"nothing": [1]}, "none of its columns"),
    ):
        pq.write_table(pa.table(columns), source / "x.parquet")
        with pytest.raises(InvalidRequestError, match=message):
            table.add_files(str(source))
    (source / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(Exception, match=r"x\.parquet"):
        table.add_files(str(source))
    with pytest.raises(InvalidRequestError, match="there is no such folder or file"):
        table.add_files(str(tmp_path / "missing"))
    assert table.refresh().current_snapshot is None
    assert good.exists()
    assert "schema.name-mapping.default" not in table.properties


@pytest.mark.parametrize(
    ("type_", "column", "message"),
    [
        ("INT NOT NULL", pa.array([1, None], pa.int32()), "nulls in the required column 'x'"),
        ("STRING NOT NULL", pa.array([None], pa.string()), "nulls in the required column 'x'"),
        ("INT", pa.array([2**31], pa.uint32()), "2147483648 not in range"),
        ("BIGINT", pa.array([2**63], pa.uint64()), "9223372036854775808 not in range"),
        ("ARRAY<INT>", pa.array([[2**31]], pa.list_(pa.uint32())), "2147483648 not in range"),
        ("STRING", pa.array([b"\xff"]), "Invalid UTF8"),
        ("TIMESTAMP_NTZ", pa.array([1], pa.timestamp("ns")), "would lose data"),
    ],
)
def test_values_that_no_scan_could_read_are_refused(
    tmp_path: Path, type_: str, column: pa.Array, message: str
) -> None:
    table = create_path_table(tmp_path / "t", f"x {type_}", [])
    pq.write_table(pa.table({"x": column}), tmp_path / "x.parquet")
    with pytest.raises(InvalidRequestError, match=rf"x\.parquet: .*{message}.*; it was not added"):
        table.add_files(str(tmp_path / "x.parquet"))
    if (pa.types.is_timestamp(column.type) and READS_ORC_TIMES) or column.null_count:
        orc.write_table(pa.table({"x": column}), str(tmp_path / "x.orc"))
        with pytest.raises(InvalidRequestError, match=rf"x\.orc: .*{message}.*; it was not added"):
            table.add_files(str(tmp_path / "x.orc"), file_format="orc")
    assert table.refresh().current_snapshot is None


_X = pa.struct([("x", pa.int32())])
_FIRST = "STRUCT<x: INT NOT NULL>"
NESTED_NULLS: dict[str, tuple[str, pa.DataType, list[Any], Any]] = {
    "c.x": (_FIRST, _X, [{"x": 1}, None], {"x": None}),
    "c.s": (f"STRUCT<s: {_FIRST} NOT NULL>", pa.struct([("s", _X)]), [None], {"s": None}),
    "c.s.x": (
        *(f"STRUCT<s: {_FIRST}>", pa.struct([("s", _X)])),
        *([{"s": {"x": 1}}, {"s": None}, None], {"s": {"x": None}}),
    ),
    "c.element.x": (
        *(f"ARRAY<{_FIRST}>", pa.list_(_X)),
        *([[{"x": 1}, None], [], None], [{"x": 1}, {"x": None}]),
    ),
    "c.value.x": (
        *(f"MAP<STRING, {_FIRST}>", pa.map_(pa.string(), _X)),
        *([[("k", {"x": 1})], [("n", None)], None], [("k", {"x": None})]),
    ),
}


@pytest.mark.parametrize("path", NESTED_NULLS)
@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_nulls_in_required_fields_below_a_column_are_refused(
    tmp_path: Path, path: str, file_format: DataFileFormat
) -> None:
    """Nulls of structs, lists and maps around the fields are none of theirs."""
    type_, arrow_type, fit, unfit = NESTED_NULLS[path]
    table = create_path_table(tmp_path / "t", f"c {type_}", [])
    write = pq.write_table if file_format == "parquet" else orc.write_table
    for name, values in (("fit", fit), ("unfit", [*fit, unfit])):
        rows = pa.table({"c": pa.array(values, arrow_type)})
        write(rows, str(tmp_path / f"{name}.{file_format}"))
    table.add_files(str(tmp_path / f"fit.{file_format}"), file_format=file_format)
    assert table.refresh().scan().to_arrow()["c"].to_pylist() == fit
    message = rf"unfit\.{file_format}: .*nulls in the required column '{path}'.*was not added"
    with pytest.raises(InvalidRequestError, match=message):
        table.add_files(str(tmp_path / f"unfit.{file_format}"), file_format=file_format)
    assert table.refresh().scan().count() == len(fit)


def test_nested_columns_are_read_only_where_the_file_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    check = imported_files._check_values

    def counting(*arguments: Any) -> int:
        read.extend(field.name for field in arguments[0])
        return check(*arguments)

    monkeypatch.setattr(imported_files, "_check_values", counting)
    columns = "full {0}, never {0}, few {0}, free STRUCT<x: INT>, text STRING"
    table = create_path_table(tmp_path / "t", columns.format(_FIRST), [])
    never = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    rows = {
        "full": pa.array([{"x": 1}, {"x": 2}], _X),  # its statistics count no null
        "never": pa.array([{"x": 1}, None], never),  # its type has no null below the struct
        "few": pa.array([{"x": 1}, None], _X),
        "free": pa.array([{"x": None}, None], _X),
        "text": ["declared", None],  # as text, so that its bytes are the writer's promise
    }
    pq.write_table(pa.table(rows), tmp_path / "x.parquet")
    table.add_files(str(tmp_path / "x.parquet"))
    assert read == ["few"]


def test_values_that_fit_are_added_whatever_type_they_have(tmp_path: Path) -> None:
    table = create_path_table(tmp_path / "t", "a INT NOT NULL, b BIGINT, c STRING, d TIMESTAMP_NTZ")
    columns = {
        "a": pa.array([2**31 - 1], pa.uint32()),
        "b": pa.array([2**32 - 1], pa.uint32()),
        "c": pa.array([b"text"]),
        "d": pa.array([1000], pa.timestamp("ns")),
    }
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    table.add_files(str(tmp_path / "x.parquet"))
    [row] = table.scan().to_arrow().to_pylist()
    assert (row["a"], row["b"], row["c"]) == (2**31 - 1, 2**32 - 1, "text")


def test_a_folder_without_files_adds_none(table: Table, tmp_path: Path) -> None:
    (tmp_path / "source" / "deep").mkdir(parents=True)
    assert table.add_files(str(tmp_path / "source")).added_files_count == 0
    (tmp_path / "source" / "_SUCCESS").touch()
    added = table.add_files(str(tmp_path / "source"))
    assert (added.added_files_count, added.changed_partition_count) == (0, 0)
    assert table.refresh().current_snapshot is None


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [
        ("boolean", ["true", "FALSE"], ["yes", "1", "t"]),
        ("int", ["-7", "007", "+1"], ["1_0", " 1", "\u0661", "0x1", ""]),
        ("decimal(9, 2)", ["1.50", "-3"], ["1_0.5", "NaN", "1.505", "sNaN"]),
        ("double", ["1.5", "1E3", "NaN", "-Infinity"], ["nan(1)", "inf", "1_0.5", " 1"]),
        ("date", ["2024-01-31"], ["2024-1-1", "20240131", "2024-01-31 00:00:00"]),
        ("timestamp", ["2024-01-31 10:00:00.5", "2024-01-31"], ["2024-01-31 1:00:00", "now"]),
        ("uuid", ["f79c3e09-677c-4bbd-a479-3f349cb785e7"], ["f79c3e09677c4bbda4793f349cb785e7"]),
    ],
)
def test_folder_names_hold_values_in_the_forms_of_the_specification(
    type_: str, good: list[str], bad: list[str]
) -> None:
    schema = Schema(fields=(NestedField(field_id=1, name="p", type=primitive_from_string(type_)),))
    spec = PartitionSpec(
        spec_id=0,
        fields=(
            PartitionField(source_ids=(1,), field_id=1000, name="p", transform=IdentityTransform()),
        ),
    )
    for text in good:
        assert partition_of_texts({"p": text}, spec, schema, "f") != (None,)
    for text in bad:
        with pytest.raises(InvalidRequestError, match=r"f: its folder says p="):
            partition_of_texts({"p": text}, spec, schema, "f")


def test_only_partitions_that_a_catalog_knows(tmp_path: Path) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT, day DATE", partitioned_by=["day"])
    source = tmp_path / "source"
    for number, folder in enumerate(("2026-01-01", "2026-01-02", "__HIVE_DEFAULT_PARTITION__")):
        (source / f"day={folder}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [number]}), source / f"day={folder}" / "a.parquet")
    added = table.add_files(str(source), partitions=[{"day": "2026-01-02"}, {"day": None}])
    assert (added.added_files_count, added.changed_partition_count) == (2, 2)
    assert ids(table) == [1, 2]
    assert table.add_files(str(source), partitions=[]).added_files_count == 0
    assert table.add_files(str(tmp_path / "nothing"), partitions=[]).added_files_count == 0
