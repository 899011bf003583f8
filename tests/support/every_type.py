"""Rows with every writable type, with extreme values, and with nulls at every level."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa

NAN = float("nan")
INF = float("inf")
# A quiet NaN with its sign and lowest bit set: a writer must keep the bits or treat all NaNs alike,
# and no reader may lose the row.
ODD_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]

_UUIDS = [
    uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes,
    uuid.UUID(int=0).bytes,
    uuid.UUID(int=2**128 - 1).bytes,
]
_DAY = 86_400_000_000

_COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "b": (pa.bool_(), [True, False, None, True]),
    "i": (pa.int32(), [2**31 - 1, -(2**31), None, 0]),
    "l": (pa.int64(), [2**63 - 1, -(2**63), None, -1]),
    "f": (pa.float32(), [NAN, -INF, None, -0.0]),
    "d": (pa.float64(), [NAN, INF, None, -0.0]),
    "zero": (pa.float64(), [0.0, -0.0, None, 0.0]),
    "nans": (pa.float64(), [NAN, ODD_NAN, None, NAN]),
    "s": (pa.string(), ["é𐍈\n'\"|", "", None, " "]),
    "bin": (pa.binary(), [b"\x00\xff", b"", None, b"\x00"]),
    "dt": (pa.date32(), [dt.date(9999, 12, 31), dt.date(1, 1, 1), None, dt.date(1969, 12, 31)]),
    "tm": (pa.time64("us"), [0, _DAY - 1, None, 1]),
    "ts": (pa.timestamp("us"), [253402300799999999, -62135510400000000, None, -1]),
    "tz": (pa.timestamp("us", tz="UTC"), [253402300799999999, -62135510400000000, None, -1]),
    "d1": (pa.decimal128(1, 0), [Decimal(9), Decimal(-9), None, Decimal(0)]),
    "d9": (pa.decimal128(9, 2), [Decimal("9999999.99"), Decimal("-9999999.99"), None, Decimal(0)]),
    "d10": (pa.decimal128(10, 2), [Decimal("99999999.99"), Decimal("-0.01"), None, Decimal(0)]),
    "d18": (pa.decimal128(18, 0), [Decimal(10**18 - 1), Decimal(1 - 10**18), None, Decimal(128)]),
    "d19": (
        pa.decimal128(19, 4),
        [Decimal(10**15 - 1), Decimal(1 - 10**15), None, Decimal("-0.0128")],
    ),
    "d38": (pa.decimal128(38, 10), [Decimal("9" * 28), -Decimal("9" * 28), None, Decimal("1e-10")]),
    "u": (pa.uuid(), [*_UUIDS[:2], None, _UUIDS[2]]),
    "fx": (pa.binary(3), [b"\x00\x00\x00", b"\xff\xff\xff", None, b"abc"]),
    "st": (
        pa.struct(
            [
                ("a", pa.int32()),
                ("b b", pa.struct([("c", pa.string()), ("d", pa.list_(pa.int32()))])),
            ]
        ),
        [
            {"a": 1, "b b": {"c": "c", "d": [1, None]}},
            {"a": None, "b b": {"c": None, "d": []}},
            None,
            {"a": 5, "b b": None},
        ],
    ),
    "li": (
        pa.list_(pa.struct([("x", pa.float64()), ("y", pa.list_(pa.string()))])),
        [
            [{"x": NAN, "y": ["a", None]}, None, {"x": None, "y": None}],
            [],
            None,
            [None, {"x": -0.0, "y": []}],
        ],
    ),
    "ma": (
        pa.map_(pa.string(), pa.struct([("v", pa.decimal128(10, 3)), ("w", pa.date32())])),
        [
            [("k", {"v": Decimal("1.500"), "w": dt.date(2020, 2, 29)})],
            [],
            None,
            [("", None), ("x", {"v": None, "w": None})],
        ],
    ),
    "mk": (
        pa.map_(pa.struct([("k", pa.int32()), ("n", pa.string())]), pa.list_(pa.float32())),
        [
            [({"k": 1, "n": "n"}, [NAN, None])],
            [],
            None,
            [({"k": None, "n": None}, None), ({"k": 2, "n": None}, [])],
        ],
    ),
}
_V3_COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "ns": (pa.timestamp("ns"), [2**63 - 1, -(2**63) + 1, None, -1]),
    "tzns": (pa.timestamp("ns", tz="UTC"), [2**63 - 1, -(2**63) + 1, None, -1]),
    "un": (pa.null(), [None] * 4),
}

SPARK_KNOWS_NOT = ("tm", "ns", "tzns")
"""Columns that Spark 4.1 with the Iceberg runtime cannot read."""


def every_type(format_version: int) -> pa.Table:
    """Return four rows with a column of each type that the format version has."""
    columns = {**_COLUMNS, **(_V3_COLUMNS if format_version >= 3 else {})}
    arrays = {name: pa.array(values, type_) for name, (type_, values) in columns.items()}
    return pa.table({"id": pa.array([1, 2, 3, 4], pa.int32()), **arrays})
