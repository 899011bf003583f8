"""What Python runs at its start in tests: Spark's daemons import for all workers that they fork.

Spark's workers import pyspark, pandas, pyarrow and this package after each fork, and for each query
of the data source there is such a fork: a second of processor time, of which pyspark's archives,
read anew by `importlib.invalidate_caches`, are a part. The pyspark of the environment is the same.
"""

import importlib
import sys

if "pyspark.daemon" in sys.orig_argv:
    sys.path = [path for path in sys.path if not path.endswith(".zip")]
    for module in (
        "pandas",
        "pyarrow.compute",
        "pyarrow.parquet",
        "iceberg_pyspark.spark.data_source.read_job",
        "iceberg_pyspark.spark.data_source.writer",
        sys.orig_argv[-1],
    ):
        importlib.import_module(module)
