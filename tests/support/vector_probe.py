"""What executors compile to read deletion vectors, called without a query."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from iceberg_pyspark.spark.bridge.lots import source_on_executors


class VectorProbe:
    """Deletion vectors that lie one behind the other in a file; each data file has one."""

    def __init__(
        self,
        spark: SparkSession,
        file: Path,
        blobs: Sequence[bytes],
        cardinalities: Sequence[int],
        *,
        lasting: bool = False,
        sizes: Sequence[int] | None = None,
    ) -> None:
        """`sizes` are what is said of the blobs, if not the truth."""
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._gateway: Any = spark.sparkContext._gateway
        offsets, data = [], b""
        for blob in blobs:
            offsets.append(len(data))
            data += blob
        file.write_bytes(data)
        context = self._jvm.org.apache.spark.api.java.JavaSparkContext(spark._jsc.sc())
        conf = self._jvm.org.apache.spark.util.SerializableConfiguration(
            spark._jsc.hadoopConfiguration()
        )
        said = self._jvm.java.util.HashMap()
        for name, value in {
            "conf": conf,
            "table": "t",
            "store": "store",
            "locations": self._array(self._jvm.java.lang.String, [str(file)]),
            "lasting": self._array(self._jvm.boolean, [lasting]),
            "places": self._longs([0] * len(blobs)),
            "offsets": self._longs(offsets),
            "sizes": self._longs(sizes or [len(blob) for blob in blobs]),
            "cardinalities": self._longs(cardinalities),
        }.items():
            said.put(name, value)
        self._references = self._array(self._jvm.java.lang.Object, [context.broadcast(said)])

    def task(self) -> Any:
        """What one task makes: `applyAsLong(file, position)` is 1 where the row is deleted."""
        codegen = self._jvm.org.apache.spark.sql.catalyst.expressions.codegen
        nothing = getattr(getattr(self._jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()
        code = codegen.CodeAndComment(source_on_executors(), nothing)
        return codegen.CodeGenerator.compile(code)._1().generate(self._references)

    def _longs(self, values: Sequence[int]) -> Any:
        return self._array(self._jvm.long, values)

    def _array(self, kind: Any, values: Sequence[Any]) -> Any:
        made = self._gateway.new_array(kind, len(values))
        for i, value in enumerate(values):
            made[i] = value
        return made
