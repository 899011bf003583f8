"""The first metadata of a table: fresh ids, defaults, and what a format version refuses."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from iceberg_pyspark.changes.new_table import new_table_metadata
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import MAX_USER_FIELD_ID, Schema
from iceberg_pyspark.spec.sorting import SortOrder
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    Transform,
    UnknownTransform,
)
from iceberg_pyspark.spec.types import (
    DoubleType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    Type,
    UnknownType,
    VariantType,
)
from tests.support.sort_orders import ascending


def column(field_id: int, name: str, type_: Type, *, required: bool = False) -> NestedField:
    return NestedField(field_id=field_id, name=name, type=type_, required=required)


def struct(*fields: NestedField) -> StructType:
    return StructType(fields)


def create(
    schema: Schema,
    *,
    spec: PartitionSpec | None = None,
    order: SortOrder | None = None,
    properties: Mapping[str, str] | None = None,
    version: int | None = None,
) -> TableMetadata:
    return new_table_metadata(
        schema,
        spec,
        order,
        "s3://b/t/",
        properties or {},
        format_version=version,
        table_uuid="u",
        now_ms=5,
    )


def by(transform: Transform, source: int, name: str) -> PartitionField:
    return PartitionField(source_ids=(source,), field_id=7, name=name, transform=transform)


def test_ids_are_given_level_by_level() -> None:
    schema = Schema(
        fields=(
            column(10, "s", struct(column(11, "x", LongType()), column(12, "y", LongType()))),
            column(
                13,
                "m",
                MapType(
                    key_id=14,
                    key_type=struct(column(15, "k", StringType())),
                    value_id=16,
                    value_type=ListType(element_id=17, element_type=IntegerType()),
                ),
            ),
            column(
                18, "l", ListType(element_id=19, element_type=struct(column(20, "z", LongType())))
            ),
            column(21, "id", LongType(), required=True),
        ),
        identifier_field_ids=(21,),
    )
    metadata = create(schema)
    assert dict(metadata.current_schema.id_by_name) == {
        "s": 1,
        "m": 2,
        "l": 3,
        "id": 4,
        "s.x": 5,
        "s.y": 6,
        "m.key": 7,
        "m.value": 8,
        "m.key.k": 9,
        "m.value.element": 10,
        "l.element": 11,
        "l.element.z": 12,
    }
    assert metadata.last_column_id == 12
    assert metadata.current_schema.identifier_field_ids == (4,)


def test_partitioning_and_order_follow_the_new_ids() -> None:
    schema = Schema(fields=(column(100, "ts", TimestampType()), column(50, "id", LongType())))
    metadata = create(
        schema,
        spec=PartitionSpec(
            spec_id=3,
            fields=(by(DayTransform(), 100, "ts_day"), by(BucketTransform(4), 50, "id_bucket")),
        ),
        order=SortOrder(
            order_id=9,
            fields=(ascending(50),),
        ),
    )
    assert metadata.default_spec_id == 0
    assert [(f.source_id, f.field_id) for f in metadata.default_spec.fields] == [
        (1, 1000),
        (2, 1001),
    ]
    assert metadata.last_partition_id == 1001
    assert metadata.default_sort_order.order_id == 1
    assert metadata.default_sort_order.fields[0].source_id == 2


def test_an_unpartitioned_table_has_last_partition_id_999() -> None:
    """docs/conformance.md 59."""
    metadata = create(Schema(fields=(column(1, "a", LongType()),)))
    assert (metadata.last_partition_id, metadata.default_sort_order_id) == (999, 0)
    assert metadata.location == "s3://b/t"
    assert metadata.current_snapshot_id is None


def test_new_tables_compress_with_zstd_unless_told_otherwise() -> None:
    schema = Schema(fields=(column(1, "a", LongType()),))
    key = "write.parquet.compression-codec"
    assert create(schema).properties == {key: "zstd"}
    assert create(schema, properties={key: "gzip", "k": "v"}).properties == {key: "gzip", "k": "v"}


def test_the_format_version_comes_from_argument_property_or_default() -> None:
    schema = Schema(fields=(column(1, "a", LongType()),))
    assert create(schema).format_version == 2
    metadata = create(schema, properties={"format-version": "3"})
    assert metadata.format_version == 3
    assert "format-version" not in metadata.properties
    assert create(schema, properties={"format-version": "3"}, version=1).format_version == 1
    for wrong in ("5", "0", "two"):
        with pytest.raises(InvalidRequestError):
            create(schema, properties={"format-version": wrong})


def test_properties_that_no_commit_could_use_are_refused() -> None:
    schema = Schema(fields=(column(1, "a", LongType()),))
    with pytest.raises(InvalidRequestError, match=r"commit\.retry\.num-retries"):
        create(schema, properties={"commit.retry.num-retries": "many"})


@pytest.mark.parametrize(
    "type_", [TimestampNsType(), UnknownType(), VariantType(), GeometryType()], ids=str
)
def test_types_of_version_3_need_it(type_: Type) -> None:
    schema = Schema(fields=(column(1, "s", struct(column(2, "a", type_))),))
    with pytest.raises(InvalidRequestError, match=r"'s\.a'.*format version 3"):
        create(schema, version=2)
    assert create(schema, version=3).current_schema.field_by_id[2].type == type_


def test_defaults_need_version_3_and_a_type_that_has_them() -> None:
    """docs/conformance.md 70."""
    schema = Schema(fields=(NestedField(field_id=1, name="a", type=LongType(), write_default=1),))
    with pytest.raises(InvalidRequestError, match="default values need format version 3"):
        create(schema, version=2)
    assert create(schema, version=3).current_schema.fields[0].write_default == 1
    for type_ in (UnknownType(), VariantType(), GeometryType()):
        refused = Schema(
            fields=(NestedField(field_id=1, name="a", type=type_, initial_default=b"x"),)
        )
        with pytest.raises(InvalidRequestError, match="must default to null"):
            create(refused, version=3)
    filled = NestedField(
        field_id=1, name="a", type=struct(column(2, "b", LongType())), write_default={2: 1}
    )
    with pytest.raises(InvalidRequestError, match="struct defaults"):
        create(Schema(fields=(filled,)), version=3)


def test_unknown_columns_are_optional() -> None:
    with pytest.raises(InvalidRequestError, match="must be optional"):
        create(Schema(fields=(column(1, "a", UnknownType(), required=True),)), version=3)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (Schema(fields=(column(1, "a", LongType()),), identifier_field_ids=(1,)), "optional"),
        (
            Schema(
                fields=(column(1, "a", DoubleType(), required=True),), identifier_field_ids=(1,)
            ),
            "compared",
        ),
        (
            Schema(
                fields=(column(1, "s", struct(column(2, "a", LongType(), required=True))),),
                identifier_field_ids=(2,),
            ),
            "optional 's'",
        ),
        (
            Schema(
                fields=(
                    column(
                        1,
                        "l",
                        ListType(element_id=2, element_type=LongType(), element_required=True),
                        required=True,
                    ),
                ),
                identifier_field_ids=(2,),
            ),
            "list or map",
        ),
        (
            Schema(
                fields=(column(1, "s", struct(column(2, "a", LongType())), required=True),),
                identifier_field_ids=(1,),
            ),
            "primitive",
        ),
        (Schema(fields=(column(1, "a", LongType()),), identifier_field_ids=(9,)), "9"),
    ],
)
def test_identifier_fields_must_identify(schema: Schema, message: str) -> None:
    """docs/conformance.md 75."""
    with pytest.raises(InvalidRequestError, match=message):
        create(schema)


def test_an_identifier_may_be_nested_in_required_structs() -> None:
    """docs/conformance.md 75."""
    schema = Schema(
        fields=(column(1, "s", struct(column(2, "a", LongType(), required=True)), required=True),),
        identifier_field_ids=(2,),
    )
    assert create(schema).current_schema.identifier_field_ids == (2,)


def test_names_are_unique_also_across_levels() -> None:
    twice = Schema(fields=(column(1, "a", LongType()), column(2, "a", LongType())))
    with pytest.raises(InvalidRequestError, match="'a' occurs twice"):
        create(twice)
    dotted = Schema(
        fields=(column(1, "a.b", LongType()), column(2, "a", struct(column(3, "b", LongType()))))
    )
    with pytest.raises(InvalidRequestError, match=r"'a\.b' occurs twice"):
        create(dotted)


def test_reserved_ids_are_replaced_in_a_new_table() -> None:
    """docs/conformance.md 75."""
    schema = Schema(fields=(column(MAX_USER_FIELD_ID + 1, "a", LongType()),))
    assert create(schema).current_schema.fields[0].field_id == 1


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (by(HourTransform(), 2, "h"), "does not take 'id'"),
        (by(BucketTransform(4), 2, "ts"), "name of a column"),
        (by(IdentityTransform(), 2, "ts"), "name of a column"),
        (by(IdentityTransform(), 4, "e"), "list or map"),
        (by(IdentityTransform(), 99, "x"), "99"),
        (by(UnknownTransform("zorder"), 2, "z"), "unknown transform"),
        (by(IdentityTransform(), 2, ""), "needs a name"),
    ],
)
def test_partition_fields_must_fit_their_source(field: PartitionField, message: str) -> None:
    """docs/conformance.md 65."""
    schema = Schema(
        fields=(
            column(1, "ts", TimestampType()),
            column(2, "id", LongType()),
            column(3, "l", ListType(element_id=4, element_type=LongType())),
        )
    )
    with pytest.raises(InvalidRequestError, match=message):
        create(schema, spec=PartitionSpec(spec_id=0, fields=(field,)))


def test_partition_fields_are_not_redundant() -> None:
    schema = Schema(fields=(column(1, "ts", TimestampType()),))
    twice = PartitionSpec(
        spec_id=0, fields=(by(DayTransform(), 1, "d"), by(HourTransform(), 1, "h"))
    )
    with pytest.raises(InvalidRequestError, match="redundant with 'd'"):
        create(schema, spec=twice)
    same_name = PartitionSpec(
        spec_id=0, fields=(by(DayTransform(), 1, "d"), by(BucketTransform(2), 1, "d"))
    )
    with pytest.raises(InvalidRequestError, match="'d' occurs twice"):
        create(schema, spec=same_name)


def test_an_identity_field_may_have_the_name_of_its_column() -> None:
    """docs/conformance.md 65."""
    schema = Schema(fields=(column(1, "c", StringType()),))
    spec = PartitionSpec(spec_id=0, fields=(by(IdentityTransform(), 1, "c"),))
    assert create(schema, spec=spec).default_spec.fields[0].name == "c"
