"""Variant columns that are written: what users give, what files hold, and their metrics."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import VariantVal

from iceberg_pyspark import variants_from_json, variants_from_objects, variants_to_objects
from iceberg_pyspark.arrow.arrow_schemas import VARIANT, file_schema
from iceberg_pyspark.arrow.column_metrics import FileMetrics, MetricsCollector, metric_leaves
from iceberg_pyspark.arrow.formats.file_writers import file_writers
from iceberg_pyspark.arrow.write.cast_to_table_schema import compile_cast_to_table_schema
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.spec.manifests import FileFormat
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import LongType, NestedField, StringType, StructType, VariantType
from iceberg_pyspark.spec.variant_encoding import variant_of
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO

OBJECTS: list[Any] = [{"a": 1, "b": [True, None]}, None, "text", {"a": 2.5}]
SCHEMA = Schema(
    fields=(
        NestedField(field_id=1, name="id", type=LongType()),
        NestedField(field_id=2, name="v", type=VariantType()),
        NestedField(
            field_id=3,
            name="s",
            type=StructType(
                (
                    NestedField(field_id=4, name="w", type=VariantType()),
                    NestedField(field_id=5, name="x", type=LongType()),
                )
            ),
        ),
        NestedField(field_id=6, name="z", type=StringType()),
    )
)


def cast(**columns: pa.Array) -> pa.RecordBatch:
    batch = pa.RecordBatch.from_pydict(columns)
    return compile_cast_to_table_schema(batch.schema, SCHEMA, table="t")(batch)


def written(rows: pa.RecordBatch, file_format: FileFormat = "parquet") -> tuple[bytes, FileMetrics]:
    store = MemoryFileIO()
    writers = file_writers(file_format, SCHEMA, {}, target_file_size_in_bytes=1 << 20)
    file = writers.create(store, "f")
    file.write(pa.Table.from_batches([rows]))
    closed = file.close()
    return store.read_bytes("f"), closed.metrics


def test_every_form_of_variants_is_taken() -> None:
    column = variants_from_objects(OBJECTS)
    texts = [None if o is None else json.dumps(o) for o in OBJECTS]
    for given in (
        column,
        pa.StructArray.from_arrays(
            [column.field("value").cast(pa.large_binary()), column.field("metadata")],
            names=["value", "metadata"],
            mask=column.is_null(),
        ),
        variants_from_json(texts),
        pa.array(texts, pa.json_()),
    ):
        batch = cast(v=given)
        assert batch.column("v").type == VARIANT
        assert list(map(plain, variants_to_objects(batch.column("v")))) == OBJECTS


def plain(value: Any) -> Any:
    """Return a value without decimals, which only texts have."""
    return json.loads(json.dumps(value, default=float))


def test_sliced_columns_of_json_are_taken_as_they_are() -> None:
    column = pa.array(['{"a":1}', "[2]", "3"], pa.json_())
    assert variants_to_objects(cast(v=column.slice(1)).column("v")) == [[2], 3]


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pa.array(['{"a": 1}']), "column 'v' is string .*variants_from_json"),
        (pa.array(["{"], pa.json_()), "column 'v', value 0: not a JSON text"),
        (pa.array([b"\x00"]), "column 'v' is binary"),
        (
            pa.array(
                [{"metadata": b"\x01\x00\x00", "value": None}],
                pa.struct([VARIANT.field(0), ("value", pa.binary())]),
            ),
            "column 'v' holds a variant without metadata or value",
        ),
    ],
    ids=["text", "broken", "binary", "half"],
)
def test_what_may_not_be_a_variant_is_refused(column: pa.Array, why: str) -> None:
    with pytest.raises(InvalidRequestError, match=why):
        cast(v=column)


def test_only_columns_of_variants_become_objects() -> None:
    with pytest.raises(InvalidRequestError, match="a column of string holds no variants"):
        variants_to_objects(pa.array(["x"]))


def test_other_engines_see_the_annotation_and_the_values() -> None:
    nested = pa.array([{"w": None, "x": 7}, None], pa.struct([("w", VARIANT), ("x", pa.int64())]))
    data, _ = written(cast(v=variants_from_objects([{"a": 1}, None]), s=nested))
    file = pq.ParquetFile(io.BytesIO(data))
    assert str(file.schema).count("(Variant(") == 2
    [row, none] = file.read(columns=["v"]).column("v").to_pylist()
    assert none is None
    assert VariantVal(row["value"], row["metadata"]).toPython() == {"a": 1}


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_columns_behind_a_variant_have_their_own_metrics(file_format: FileFormat) -> None:
    """The metadata of the first variant is less than any text of the last column."""
    rows = cast(
        id=pa.array([1, 2, 3]),
        v=variants_from_objects([{"a": 1}, None, 3]),
        s=pa.array(
            [
                {"w": None, "x": 7},
                None,
                {"w": dict(zip(("metadata", "value"), variant_of(1), strict=True)), "x": 9},
            ],
            pa.struct([("w", VARIANT), ("x", pa.int64())]),
        ),
        z=pa.array(["p", "q", None]),
    )
    _, metrics = written(rows, file_format)
    assert metrics["value_counts"] == dict.fromkeys((1, 2, 4, 5, 6), 3)
    assert metrics["null_value_counts"] == {1: 0, 2: 1, 4: 2, 5: 1, 6: 1}
    assert metrics["lower_bounds"] == {1: long(1), 5: long(7), 6: b"p"}
    assert metrics["upper_bounds"] == {1: long(3), 5: long(9), 6: b"q"}
    assert metrics["column_sizes"].keys() == ({1, 5, 6} if file_format == "parquet" else set())


def long(value: int) -> bytes:
    return value.to_bytes(8, "little")


def test_metrics_come_from_a_shredded_file_too() -> None:
    """Another writer has stored the fields of the first variant in columns of their own.

    docs/conformance.md 50: keys are paths, and a field of mixed types has no bounds.
    """
    field = pa.struct([("value", pa.binary()), ("typed_value", pa.int64())])
    texts = pa.struct([("value", pa.binary()), ("typed_value", pa.string())])
    typed = pa.struct([pa.field("a", field, False), pa.field("b", texts, False)])
    shredded = pa.struct(
        [pa.field("metadata", pa.binary(), False), ("value", pa.binary()), ("typed_value", typed)]
    )
    metadata = variant_of({"a": 1, "b": 1})[0]
    parts = [(5, "x"), (-7, None)]
    column = pa.array(
        [
            {
                "metadata": metadata,
                "typed_value": {
                    "a": {"typed_value": a},
                    "b": {"typed_value": b, "value": b"\x0c\x01" if b is None else None},
                },
            }
            for a, b in parts
        ],
        shredded,
    )
    like = file_schema(SCHEMA)
    schema = pa.schema(
        [like.field("id"), like.field("v").with_type(shredded), like.field("s"), like.field("z")]
    )
    one = dict(zip(("metadata", "value"), variant_of(1), strict=True))
    inner = pa.array([{"w": one, "x": 1}] * 2, like.field("s").type)
    rows = {"id": [1, 2], "v": column, "s": inner, "z": ["p", "q"]}
    out = io.BytesIO()
    pq.write_table(pa.table(rows, schema=schema), out)
    leaves = metric_leaves(SCHEMA, {})
    metrics = MetricsCollector(leaves, sees_rows=False).finish(pq.read_metadata(out))
    assert metrics["lower_bounds"][6] == b"p"
    bounds = [
        VariantVal(b[i:], b[:i]).toPython()
        for b in (metrics["lower_bounds"][2], metrics["upper_bounds"][2])
        for i in [b.index(b"\x02\x01")]
    ]
    assert bounds == [{"$['a']": -7}, {"$['a']": 5}]


def test_orc_refuses_variants_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"column 'v' has type variant, .* to ORC"):
        written(cast(v=variants_from_objects([1])), "orc")
