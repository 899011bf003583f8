"""Call the code that executors compile for reading deletes, without running a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from iceberg_pyspark.spark.bridge.java_modules import (
    DELETION_VECTORS,
    POSITION_DELETES,
    source_on_executors,
)


class ExecutorProbe:
    """The compiled code for one kind of delete; `broadcast_values` is what it reads."""

    def __init__(
        self, spark: SparkSession, module: str, broadcast_values: Mapping[str, Any]
    ) -> None:
        self._module = module
        jvm: Any = spark._jvm
        gateway: Any = spark.sparkContext._gateway
        session: Any = spark._jsparkSession
        self._jvm, self._gateway = jvm, gateway
        context = jvm.org.apache.spark.api.java.JavaSparkContext(session.sparkContext())
        options = jvm.org.apache.hadoop.conf.Configuration(
            session.sparkContext().hadoopConfiguration()
        )
        # Hadoop does not count bytes that are read by vectored IO.
        options.set("parquet.hadoop.vectored.io.enabled", "false")
        conf = jvm.org.apache.spark.util.SerializableConfiguration(options)
        broadcast = jvm.java.util.HashMap()
        broadcast.put("conf", conf)
        for name, value in broadcast_values.items():
            broadcast.put(name, self._array(value) if isinstance(value, list) else value)
        self._references = gateway.new_array(jvm.java.lang.Object, 1)
        self._references[0] = context.broadcast(broadcast)

    def task(self) -> Any:
        """Return one task's object: `applyAsLong(file, position)` is 1 if the row is deleted."""
        codegen = self._jvm.org.apache.spark.sql.catalyst.expressions.codegen
        nothing = getattr(getattr(self._jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()
        code = codegen.CodeAndComment(source_on_executors(self._module), nothing)
        return codegen.CodeGenerator.compile(code)._1().generate(self._references)

    def _array(self, values: list[Any]) -> Any:
        kinds = {str: self._jvm.java.lang.String, bool: self._jvm.boolean, int: self._jvm.long}
        created = self._gateway.new_array(kinds[type(values[0])], len(values))
        for i, value in enumerate(values):
            created[i] = value
        return created


def vector_probe(
    spark: SparkSession,
    file: Path,
    blobs: Sequence[bytes],
    cardinalities: Sequence[int],
    *,
    lasting: bool = False,
    sizes: Sequence[int] | None = None,
) -> ExecutorProbe:
    """Return a probe of deletion vectors stored one after another in a file, one per data file.

    `sizes` overrides the declared sizes of the blobs.
    """
    offsets, data = [], b""
    for blob in blobs:
        offsets.append(len(data))
        data += blob
    file.write_bytes(data)
    properties_sql = {
        "table": "t",
        "store": "store",
        "locations": [str(file)],
        "lasting": [lasting],
        "places": [0] * len(blobs),
        "offsets": offsets,
        "sizes": list(sizes or map(len, blobs)),
        "cardinalities": list(cardinalities),
    }
    return ExecutorProbe(spark, DELETION_VECTORS, properties_sql)


def position_probe(
    spark: SparkSession,
    files: Sequence[Path],
    paths: Sequence[str],
    *,
    lasting: bool = False,
    records: int = 1,
) -> ExecutorProbe:
    """Return a probe where each of the position delete files applies to every data file; `records`
    is the declared record count of each.
    """
    numbers = list(range(len(files)))
    properties_sql = {
        "table": "t",
        "store": "store",
        "verify": True,
        "locations": [str(file) for file in files],
        "lasting": [lasting] * len(files),
        "sizes": [1] * len(files),
        "records": [records] * len(files),
        "paths": list(paths),
        "ends": [len(files) * (i + 1) for i in range(len(paths))],
        "files": numbers * len(paths),
    }
    return ExecutorProbe(spark, POSITION_DELETES, properties_sql)
