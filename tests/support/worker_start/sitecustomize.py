"""Python runs this at its start: Spark's daemons import once for all workers they fork.

Spark's workers import pyspark, pandas, pyarrow and this package after each fork, and each query of
the data source forks: a second of processor time, partly because `importlib.invalidate_caches`
makes them read pyspark's archives and Spark's jar again. The pyspark in use is the environment's.
"""

import gc
import importlib
import sys

if "pyspark.daemon" in sys.orig_argv:
    sys.path = [path for path in sys.path if not path.endswith((".zip", ".jar"))]
    worker = sys.orig_argv[-1]
    # A JVM looks data sources up only once.
    of_queries = (
        "pandas",
        "pyarrow.compute",
        "pyarrow.parquet",
        "iceberg_pyspark.spark.data_source.read_job",
        "iceberg_pyspark.spark.data_source.writer",
    )
    for module in (*(() if worker.endswith(".lookup_data_sources") else of_queries), worker):
        importlib.import_module(module)
    # Workers collect garbage after each task; imported objects would take most of a short task.
    gc.freeze()
