"""The locations of our files: the folders and names that Java would choose (interop 3, 4)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UUIDType,
)
from tests.support.java_tables import JavaTables
from tests.support.oracle import Oracle
from tests.support.our_tables import assert_all_read, new_table

pytestmark = pytest.mark.nightly

DAY = 86_400_000_000
PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))
CLOCKS = [0, 1, 100, 1_000, 120_000, 1_000_000, 1_100_000, 60_000_000, 3_600_000_000, DAY - 1]
FAR_DAYS = [-719_529, -719_528, -719_163, -719_162, 2_932_896, 2_932_897, 40_000_000]
INSTANTS = [*CLOCKS, -1, *(day * DAY + 1 for day in FAR_DAYS)]
FLOATS = [0.0, -0.0, 1.0, -1.5, 0.001, 1e7, 123456.0, 3.5e-5, float("inf"), float("nan")]
VALUES: Mapping[str, tuple[Type, list[Any]]] = {
    "time": (TimeType(), CLOCKS),
    "ts": (TimestampType(), INSTANTS),
    "tz": (TimestamptzType(), INSTANTS),
    "ns": (TimestampNsType(), [*CLOCKS, -1, 2**63 - 1, -(2**63)]),
    "tzns": (TimestamptzNsType(), [*CLOCKS, -1, 2**63 - 1, -(2**63)]),
    "date": (DateType(), [0, -1, *FAR_DAYS]),
    "dec": (DecimalType(9, 7), [Decimal(v).scaleb(-7) for v in (0, 1, -1, 10, 12, 10**7, 10**8)]),
    "dec0": (DecimalType(38, 0), [Decimal(0), Decimal(10**37), Decimal(-7)]),
    "float": (FloatType(), FLOATS),
    "double": (DoubleType(), [*FLOATS, 5e-324, 1e300, 0.1]),
    "str": (
        StringType(),
        ["", PRINTABLE, "null", "é𐍈\u0301\n\t\x7f", ".", "..", "a/../b", "x" * 200],
    ),
    "bin": (BinaryType(), [b"", b"\xfb\xff\xbf", b"\x00", b"ab"]),
    "uuid": (UUIDType(), [bytes(16), b"\xff" * 16]),
    "long": (LongType(), [-(2**63), 0, 2**63 - 1]),
}


@pytest.mark.parametrize("kind", VALUES)
def test_partitions_of_odd_values(oracle: Oracle, java: JavaTables, kind: str) -> None:
    type_, values = VALUES[kind]
    name = f"java_hadoop.we_write_paths.odd_{kind}"
    schema = Schema(
        fields=(
            NestedField(field_id=1, name="v", type=type_),
            NestedField(field_id=2, name="n", type=IntegerType()),
        )
    )
    table = new_table(
        oracle, name, schema, partitioned_by=["v"], properties={"format-version": "3"}
    )
    rows = pa.table({"v": column(kind, values), "n": pa.array(range(len(values)), pa.int32())})
    table.append(rows)
    if "ns" in kind:
        # Java's own reader does not convert these partition constants to timestamps.
        assert java.file_problems(name) == []
    else:
        assert_all_read(java, name, rows, with_pyiceberg=False)


def column(kind: str, values: list[Any]) -> pa.Array:
    match kind:
        case "time":
            return pa.array(values, pa.int64()).cast(pa.time64("us"))
        case "ts" | "tz" | "ns" | "tzns":
            unit, zone = "ns" if "ns" in kind else "us", "UTC" if "tz" in kind else None
            return pa.array(values, pa.int64()).cast(pa.timestamp(unit, tz=zone))
        case "date":
            return pa.array(values, pa.int32()).cast(pa.date32())
        case "dec":
            return pa.array(values, pa.decimal128(9, 7))
        case "dec0":
            return pa.array(values, pa.decimal128(38, 0))
        case "float":
            return pa.array(values, pa.float32())
        case "uuid":
            return pa.array(values, pa.binary(16))
        case _:
            return pa.array(values)


@pytest.mark.parametrize("name", ["a b", "a.b", "é", "a=b/c", "1a", "%", "𐍈", "a+b", "a-b_c*~"])
def test_partition_fields_with_odd_names(oracle: Oracle, java: JavaTables, name: str) -> None:
    table_name = f"java_sql.we_write_paths.named_{abs(hash(name))}"
    schema = Schema(
        fields=(
            NestedField(field_id=1, name=name, type=StringType()),
            NestedField(field_id=2, name="n", type=IntegerType()),
        )
    )
    table = new_table(
        oracle, table_name, schema, partitioned_by=[f"`{name}`", f"truncate(1, `{name}`)"]
    )
    rows = pa.table({name: ["a", None, "b c"], "n": pa.array([1, 2, 3], pa.int32())})
    table.append(rows)
    assert_all_read(java, table_name, rows)


def layouts(folder: Path) -> dict[str, dict[str, str]]:
    """Return table properties for each layout; files outside the table go below `folder`."""
    objects = {"write.object-storage.enabled": "true"}
    elsewhere = {"write.data.path": f"{folder}/data"}
    return {
        "plain": {},
        "objects": objects,
        "objects-flat": {**objects, "write.object-storage.partitioned-paths": "false"},
        "elsewhere": elsewhere,
        "elsewhere-slash": {"write.data.path": f"{folder}/slash/"},
        "objects-elsewhere": {**objects, **elsewhere},
        "objects-flat-elsewhere": {
            **objects,
            **elsewhere,
            "write.object-storage.partitioned-paths": "false",
        },
        "metadata-elsewhere": {"write.metadata.path": f"{folder}/metadata"},
    }


@pytest.mark.parametrize("layout", layouts(Path()))
@pytest.mark.parametrize("partitioned", [True, False])
def test_layouts(
    oracle: Oracle, java: JavaTables, tmp_path: Path, layout: str, partitioned: bool
) -> None:
    name = f"java_sql.we_write_paths.{layout.replace('-', '_')}_{partitioned}"
    properties = layouts(tmp_path)[layout]
    table = new_table(
        oracle,
        name,
        "id BIGINT, p STRING",
        partitioned_by=["p", "bucket(4, id)"] if partitioned else [],
        properties=properties,
    )
    rows = pa.table({"id": pa.array(range(6), pa.int64()), "p": ["a", "b/c", None] * 2})
    table.append(rows)
    # Files are where Java's location provider would put them, and Java can add more.
    assert_all_read(java, name, rows)
    oracle.sql(f"INSERT INTO {name} VALUES (10, 'x')")
    table.append(pa.table({"id": pa.array([11], pa.int64()), "p": ["y"]}))
    javas = pa.table({"id": pa.array([10, 11], pa.int64()), "p": ["x", "y"]})
    assert_all_read(java, name, pa.concat_tables([rows, javas]))
    if "metadata" in layout:
        metadata = {p.name for p in (tmp_path / "metadata").iterdir()}
        # Metadata files, manifests and manifest lists of four commits by both writers.
        assert len([n for n in metadata if n.endswith(".metadata.json")]) == 4
        assert len([n for n in metadata if n.endswith(".avro")]) == 6
        assert not (Path(table.location) / "metadata").exists()


def test_names(oracle: Oracle) -> None:
    table = new_table(oracle, "java_sql.we_write_paths.names", "i INT")
    table.append(pa.table({"i": pa.array([1], pa.int32())}))
    uuid = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    names = sorted(p.name for p in Path(table.location).rglob("*") if p.is_file())
    snapshot_id = table.metadata.current_snapshot_id
    patterns = [
        rf"00000-0-{uuid}-00001\.parquet",
        rf"00000-{uuid}\.metadata\.json",
        rf"00001-{uuid}\.metadata\.json",
        rf"{uuid}-m0\.avro",
        rf"snap-{snapshot_id}-1-{uuid}\.avro",
    ]
    assert len(names) == len(patterns)
    for pattern in patterns:
        assert [n for n in names if re.fullmatch(pattern, n)], pattern
