"""Spark 4.3's timestamps in nanoseconds, which PySpark 4.3 has no class for.

Importing this module adds one to PySpark, in this process: schemas with these types can be parsed,
and PySpark converts such columns from and to Arrow. Executors load this module. Spark offers the
types where `NANOS_ENABLED` is set.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import types as spark_types
from pyspark.sql.pandas import types as arrow_types

from iceberg_pyspark.spec import types as ice

NANOS_ENABLED = "spark.sql.timestampNanosTypes.enabled"
"""Spark's setting that offers the types; it is off by default."""

_NTZ, _LTZ = "timestamp_ntz", "timestamp_ltz"
_DIGITS = range(7, 10)


class TimestampNanosType(spark_types.DataType):
    """`timestamp_ntz` or `timestamp_ltz` with 7 to 9 digits of a second; Iceberg's have 9."""

    def __init__(self, name: str, digits: int = _DIGITS[-1]) -> None:
        """`name` is the type's name in SQL, without the digits."""
        self.name = name
        self.digits = digits

    def simpleString(self) -> str:
        """Return the type as SQL writes it."""
        return f"{self.name}({self.digits})"

    def jsonValue(self) -> str:
        """Return the type as schemas in JSON write it."""
        return self.simpleString()


def nanos_spark_type(type_: ice.Type) -> spark_types.DataType | None:
    """Return Spark's type of timestamps in nanoseconds; None for others and before Spark 4.3."""
    if not _HAS_TYPES:
        return None
    match type_:
        case ice.TimestampNsType():
            return TimestampNanosType(_NTZ)
        case ice.TimestamptzNsType():
            return TimestampNanosType(_LTZ)
    return None


def nanos_type_of(type_: spark_types.DataType) -> ice.PrimitiveType | None:
    """Return the Iceberg type of Spark's timestamps in nanoseconds; None for other types."""
    if not isinstance(type_, TimestampNanosType):
        return None
    return ice.TimestampNsType() if type_.name == _NTZ else ice.TimestamptzNsType()


def _add_to_pyspark() -> bool:
    """Return whether Spark has the types and PySpark can use them."""
    release = tuple(map(int, pyspark.__version__.split(".")[:2]))
    names = getattr(spark_types, "_all_mappable_types", None)
    if release < (4, 3) or names is None or hasattr(spark_types, "TimestampNTZNanosType"):
        # A newer PySpark with classes of its own needs another module; until then, none are shown.
        return False
    convert = arrow_types.to_arrow_type

    def to_arrow_type(dt: spark_types.DataType, **options: Any) -> pa.DataType:
        if not isinstance(dt, TimestampNanosType):
            return convert(dt, **options)
        return pa.timestamp("ns", options.get("timezone") if dt.name == _LTZ else None)

    for name in (_NTZ, _LTZ):
        for digits in _DIGITS:
            names[f"{name}({digits})"] = partial(TimestampNanosType, name, digits)
    arrow_types.to_arrow_type = to_arrow_type
    return True


_HAS_TYPES = _add_to_pyspark()
