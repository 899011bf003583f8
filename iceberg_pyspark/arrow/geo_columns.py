"""Geometry and geography columns in Arrow: WKB bytes that are marked as `geoarrow.wkb`.

Parquet's writer in Arrow gives such an extension type the logical type GEOMETRY or GEOGRAPHY, and
its chunks the statistics that bounds are made of. Elsewhere only the metadata of the field has the
mark, so that no type must be registered.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.bounding_boxes import BoundingBox

if TYPE_CHECKING:  # at run time with the clients of all stores
    import pyarrow.parquet as pq

_NAME = "geoarrow.wkb"
_NAME_KEY = b"ARROW:extension:name"
_METADATA_KEY = b"ARROW:extension:metadata"
_PLANAR = "planar"
_SRID = "srid"
EDGES_OF_ARROW = "spherical"
"""The only algorithm of geography that Arrow's writer of Parquet knows."""


class WkbType(pa.ExtensionType):  # type: ignore[misc]
    """The type of a column that is being written."""

    def __init__(self, metadata: str) -> None:
        self._metadata = metadata
        super().__init__(pa.binary(), _NAME)

    def __arrow_ext_serialize__(self) -> bytes:
        return self._metadata.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> WkbType:
        return cls(serialized.decode())


def wkb_type(type_: types.GeometryType | types.GeographyType) -> WkbType:
    """Return the Arrow type by which a column's logical type is written to Parquet."""
    return WkbType(_metadata(type_))


def geo_metadata(type_: types.Type) -> dict[bytes, bytes]:
    """Return the metadata of an Arrow field that marks its bytes as WKB; empty for other types."""
    if not isinstance(type_, types.GeometryType | types.GeographyType):
        return {}
    return {_NAME_KEY: _NAME.encode(), _METADATA_KEY: _metadata(type_).encode()}


def without_edges(field: pa.Field) -> pa.Field:
    """Return a field in which geographies, also inside structs, are plain bytes."""
    if pa.types.is_struct(field.type):
        return field.with_type(pa.struct([without_edges(f) for f in field.type]))
    metadata = field.metadata or {}
    is_geography = b'"edges"' in metadata.get(_METADATA_KEY, b"")
    return field.remove_metadata() if is_geography else field


def _metadata(type_: types.GeometryType | types.GeographyType) -> str:
    values = {"crs": type_.crs}
    if isinstance(type_, types.GeographyType):
        values["edges"] = type_.algorithm
    return json.dumps(values)


def geo_type_of(field: pa.Field) -> types.PrimitiveType | None:
    """Return the Iceberg type of an Arrow field that is marked as WKB, or None.

    Without a CRS the type has the default one.
    """
    text: Any
    if isinstance(field.type, pa.ExtensionType):
        name, text = field.type.extension_name, field.type.__arrow_ext_serialize__()
    else:
        metadata = field.metadata or {}
        name, text = metadata.get(_NAME_KEY, b"").decode(), metadata.get(_METADATA_KEY, b"")
    if name != _NAME:
        return None
    try:
        values = json.loads(text or "{}")
    except ValueError:
        values = {}
    crs, edges = values.get("crs"), values.get("edges", _PLANAR)
    if values.get("crs_type") == _SRID and crs is not None:
        crs = f"{_SRID}:{crs}"
    if not isinstance(crs, str):
        # a whole PROJJSON has its own identifier
        crs = _identifier(crs) or types.DEFAULT_CRS
    if edges == _PLANAR:
        return types.GeometryType(crs)
    return types.GeographyType(crs, str(edges))


def _identifier(projjson: Any) -> str | None:
    match projjson:
        case {"id": {"authority": str(authority), "code": code}}:
            return f"{authority}:{code}"
    return None


def box_of_chunk(chunk: pq.ColumnChunkMetaData) -> BoundingBox | None:
    """Return the box of a column chunk from its statistics, or None if it is unknown.

    The statistics of values without X, or without Y, leave out the other one too.
    """
    statistics = chunk.geo_statistics
    if statistics is None:
        return None
    box = BoundingBox()
    for i, name in enumerate("xyzm"):
        ends = (getattr(statistics, f"{name}min"), getattr(statistics, f"{name}max"))
        if None not in ends:
            box.add(i, ends)
    return box if (box.has(0) and box.has(1)) or not statistics.geospatial_types else None
