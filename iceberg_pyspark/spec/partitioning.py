"""Partition specs: how rows map to partition tuples.

Specification, "Partitioning" and Appendix C "Partition Specs". Spec evolution is in
`changes/spec_changes.py`. A partition tuple is a plain tuple of values in the order of the spec's
fields.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, TypeAlias
from urllib.parse import quote_plus

from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.spec import types as ice
from iceberg_pyspark.spec.json_fields import JsonObject, short_text
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import (
    IdentityTransform,
    Transform,
    UnknownTransform,
    VoidTransform,
    human_value,
    result_type,
    source_ids_from_json,
    source_ids_to_json,
    transform_from_json,
)

FIRST_PARTITION_FIELD_ID = 1000

PartitionKey: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionField:
    """One field of a partition spec.

    Only a transform with several arguments (v3) has several sources. Apart from `void`, no such
    transform is known, whatever its name: it becomes `UnknownTransform`, is never computed and
    never used to prune.
    """

    source_ids: tuple[int, ...]
    field_id: int
    name: str
    transform: Transform

    @property
    def source_id(self) -> int:
        """The field id of the only (or first) source column."""
        return self.source_ids[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSpec:
    """An immutable list of partition fields."""

    spec_id: int
    fields: tuple[PartitionField, ...] = ()

    @property
    def is_unpartitioned(self) -> bool:
        """Whether the spec has no field or only void fields, like Java (docs/conformance.md 23)."""
        return all(isinstance(f.transform, VoidTransform) for f in self.fields)

    def same_fields(self, other: PartitionSpec) -> bool:
        """Return whether both specs have equal fields apart from ids (docs/conformance.md 60)."""
        return [(f.source_ids, str(f.transform), f.name) for f in self.fields] == [
            (f.source_ids, str(f.transform), f.name) for f in other.fields
        ]


def source_type(field: PartitionField, schemas: Sequence[Schema]) -> ice.Type:
    """Return the source column's type from the first schema that has the column, or else `unknown`.

    Pass the current schema first and older schemas after it: a spec stays readable after its source
    column was dropped (docs/conformance.md 63).
    """
    for schema in schemas:
        source = schema.field_by_id.get(field.source_id)
        if source is not None:
            return source.type
    return ice.UnknownType()


def partition_type(spec: PartitionSpec, schemas: Sequence[Schema]) -> ice.StructType:
    """Return the struct type of the spec's partition tuples; all fields are optional.

    A field has type `unknown` where only a manifest can tell the type: the transform is unknown, or
    no schema has the source column. Values of type `unknown` are kept as they are.
    """
    return ice.StructType(
        tuple(
            ice.NestedField(
                field_id=f.field_id,
                name=f.name,
                type=result_type(f.transform, source_type(f, schemas)),
            )
            for f in spec.fields
        )
    )


def read_partition_type(spec: PartitionSpec, schemas: Sequence[Schema]) -> ice.StructType:
    """Return the `partition_type` for reading a snapshot with the first of the schemas.

    A replaced table may have given a column another type, which does not apply to manifests from
    before. A promotion applies: manifests may have been written before or after the promotion.
    """
    fields = []
    for f, of_first in zip(spec.fields, partition_type(spec, schemas).fields, strict=True):
        type_ = of_first.type
        # most of the schemas agree
        for source in dict.fromkeys(source_type(f, (schema,)) for schema in schemas[1:]):
            type_ = _wider(type_, result_type(f.transform, source)) or type_
        fields.append(replace(of_first, type=type_))
    return ice.StructType(tuple(fields))


def declared_partition_type(
    type_: ice.StructType, own_types: Mapping[int, ice.Type]
) -> ice.StructType:
    """Return the type of one manifest's tuples; `own_types` are its own types, by field id.

    They replace types to which they cannot be promoted, which a column got when the table was
    replaced.
    """
    fields = []
    for f in type_.fields:
        own = own_types.get(f.field_id, f.type)
        fields.append(replace(f, type=_wider(f.type, own) or own))
    return ice.StructType(tuple(fields))


def untyped_fields(spec: PartitionSpec, type_: ice.StructType) -> frozenset[int]:
    """Return the ids of the fields whose type only a manifest can tell.

    Void fields are excluded: they have no values.
    """
    return frozenset(
        f.field_id
        for f, type_field in zip(spec.fields, type_.fields, strict=True)
        if isinstance(type_field.type, ice.UnknownType)
        and not isinstance(f.transform, VoidTransform)
    )


def with_types_of(
    manifests: Sequence[Mapping[int, ice.Type]],
    untyped_ids: Collection[int],
    partition_type: ice.StructType,
) -> ice.StructType | None:
    """Return the partition type with types from manifests (by field id) for the untyped fields.

    Returns None if no single type can hold the values from all manifests.
    """
    fields = []
    for field in partition_type.fields:
        if field.field_id in untyped_ids:
            type_: ice.Type = field.type
            for types in manifests:
                wider = _wider(type_, types.get(field.field_id, ice.UnknownType()))
                if wider is None:
                    return None
                type_ = wider
            field = replace(field, type=type_)
        fields.append(field)
    return ice.StructType(tuple(fields))


def _wider(one: ice.Type, other: ice.Type) -> ice.Type | None:
    """Return the one of two types to which the other can be promoted, or None if neither can."""
    match one, other:
        case (_, ice.UnknownType()):
            return one
        case (ice.UnknownType(), _):
            return other
        case (ice.IntegerType() | ice.LongType(), ice.IntegerType() | ice.LongType()):
            return one if isinstance(one, ice.LongType) else other
        case (ice.FloatType() | ice.DoubleType(), ice.FloatType() | ice.DoubleType()):
            return one if isinstance(one, ice.DoubleType) else other
        case (ice.DecimalType(scale=scale), ice.DecimalType(scale=same)) if scale == same:
            return one if one.precision >= other.precision else other
        case _:
            return one if one == other else None


def partition_path(spec: PartitionSpec, schemas: Sequence[Schema], values: Sequence[Any]) -> str:
    """Return the folder of a partition, `name=value/name=value`, URL-encoded as in Java."""
    return "/".join(
        f"{java_url_encode(f.name)}="
        f"{java_url_encode(human_value(f.transform, source_type(f, schemas), value))}"
        for f, value in zip(spec.fields, values, strict=True)
    )


def java_url_encode(text: str) -> str:
    """Return a name or value URL-encoded for a partition folder."""
    # Java's URLEncoder keeps letters, digits and ".-*_", and writes a space as "+"
    return quote_plus(text, safe="*").replace("~", "%7E")


def partition_key(values: Sequence[Any]) -> PartitionKey:
    """Return a key that only equal partition tuples share: NaN equals NaN, 0.0 and -0.0 differ.

    >>> partition_key([float("nan")]) == partition_key([-float("nan")])
    True
    """
    return tuple(_float_key(v) if isinstance(v, float) else v for v in values)


def _float_key(value: float) -> tuple[str, str]:
    return ("float", "nan" if isnan(value) else value.hex())


def check_writable(spec: PartitionSpec) -> None:
    """Raise `InvalidRequestError` if the spec has a transform that cannot be computed."""
    for f in spec.fields:
        if isinstance(f.transform, UnknownTransform):
            of = f" of {len(f.source_ids)} columns" if len(f.source_ids) > 1 else ""
            raise InvalidRequestError(
                f"partition field '{f.name}' uses the unknown transform '{f.transform}'{of}; "
                "writing with this spec is refused, reading works"
            )


def identity_source_ids(spec: PartitionSpec) -> dict[int, int]:
    """Map the source id of each identity field to its tuple position (docs/conformance.md 62)."""
    return {
        f.source_id: i
        for i, f in enumerate(spec.fields)
        if isinstance(f.transform, IdentityTransform)
    }


def partition_field_to_json(f: PartitionField) -> dict[str, Any]:
    """Return a partition field as metadata JSON."""
    return {
        **source_ids_to_json(f.source_ids),
        "field-id": f.field_id,
        "name": f.name,
        "transform": str(f.transform),
    }


def spec_to_json(spec: PartitionSpec) -> dict[str, Any]:
    """Return a partition spec as metadata JSON."""
    return {
        "spec-id": spec.spec_id,
        "fields": [partition_field_to_json(f) for f in spec.fields],
    }


def fields_from_json(data: JsonObject, key: str) -> tuple[PartitionField, ...]:
    """Parse the list of partition fields under `key` of a JSON object.

    v1 fields without an id get 1000, 1001, ... by position.
    """
    fields = tuple(_field_from_json(item, i) for i, item in enumerate(data.objects(key)))
    path = data.path_of(key)
    _unique((f.field_id for f in fields), path, "field-id")
    _unique((f.name for f in fields), path, "name")
    return fields


def _unique(values: Iterable[Any], path: str, key: str) -> None:
    earlier_values: set[Any] = set()
    for value in values:
        if value in earlier_values:
            raise InvalidMetadataError(f"{path}: {key} {short_text(value)} occurs twice")
        earlier_values.add(value)


def _field_from_json(data: JsonObject, position: int) -> PartitionField:
    field_id = data.optional_int32("field-id", 0)
    return PartitionField(
        source_ids=source_ids_from_json(data),
        field_id=FIRST_PARTITION_FIELD_ID + position if field_id is None else field_id,
        name=data.string("name"),
        transform=transform_from_json(data),
    )


def spec_from_json(data: JsonObject) -> PartitionSpec:
    """Parse a partition spec; errors name the JSON path."""
    return PartitionSpec(
        spec_id=data.int32("spec-id"),
        fields=fields_from_json(data, "fields"),
    )


def unified_partition_type(
    specs: Sequence[PartitionSpec], schemas: Sequence[Schema]
) -> ice.StructType:
    """Return a struct with every partition field of all specs, in ascending order of field id.

    The newest spec determines a field's name; a void field takes the type that the field had before
    it was dropped (docs/conformance.md 61). Values of unknown transforms become strings, as in
    Java. If an older spec has another field of the same name, such as another number of buckets,
    the name of the older field ends with its id.
    """
    field_by_id: dict[int, ice.NestedField] = {}
    void: set[int] = set()
    for spec in sorted(specs, key=lambda s: -s.spec_id):
        for f in spec.fields:
            type_ = result_type(f.transform, source_type(f, schemas))
            if isinstance(f.transform, UnknownTransform):
                type_ = ice.StringType()
            is_void = isinstance(f.transform, VoidTransform)
            if f.field_id not in field_by_id:
                field_by_id[f.field_id] = ice.NestedField(
                    field_id=f.field_id, name=f.name, type=type_
                )
                if is_void:
                    void.add(f.field_id)
            elif f.field_id in void and not is_void:
                field_by_id[f.field_id] = replace(field_by_id[f.field_id], type=type_)
                void.discard(f.field_id)
    names: set[str] = set()
    for field_id, field in field_by_id.items():
        name = field.name
        while name in names:
            name = f"{name}_{field_id}"
        names.add(name)
        field_by_id[field_id] = replace(field, name=name)
    return ice.StructType(tuple(field_by_id[i] for i in sorted(field_by_id)))
