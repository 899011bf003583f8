"""A client of Spark Connect that changes a table; it may be killed at any time, and begin again.

Arguments: the server's address, a table of the catalog `lake`, and the catalog's options. Each line
of the input says what to do, and with what; each answer is a line of JSON, which may be an error.

`merge N` adds one to the column n of all rows, and inserts a row with the id N.
`stream FOLDER` does the same in each batch of a stream of the files in a folder, by two changes;
`named FOLDER` too, and each change has a transaction.
`race N` adds one to the same rows N times, and answers which of its merges were refused.
"""

from __future__ import annotations

import json
import sys
from typing import Any

if __name__ == "__main__":
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession

    import iceberg_pyspark as ice

    url, name, text = sys.argv[1:]
    options = json.loads(text)
    spark = SparkSession.builder.remote(url).getOrCreate()
    session = ice.install(spark)

    def change(batch: DataFrame, batch_id: int) -> None:
        table = ice.install(batch.sparkSession).table(name, catalog="lake", **options)
        table.update({"n": "n + 1"})
        table.upsert(batch, ["id"])

    def named_change(batch: DataFrame, batch_id: int) -> None:
        table = ice.install(batch.sparkSession).table(name, catalog="lake", **options)
        table.update({"n": "n + 1"}, transaction=("stream", 2 * batch_id))
        merge = table.merge_into(batch, "t.id = s.id", transaction=("stream", 2 * batch_id + 1))
        merge.whenNotMatched().insertAll().merge()

    def do(what: str, which: str) -> Any:
        if what in ("stream", "named"):
            rows = spark.readStream.schema("id long, n long").option("maxFilesPerTrigger", 1)
            stream = rows.parquet(f"{which}/in")
            writer = stream.writeStream.foreachBatch(change if what == "stream" else named_change)
            writer = writer.option("checkpointLocation", f"{which}/checkpoint")
            writer.trigger(availableNow=True).start().awaitTermination()
            return None
        table = session.table(name, catalog="lake", **options)
        if what == "merge":
            source = spark.range(int(which) + 1).selectExpr("id", "0L n")
            merge = table.merge_into(source, "t.id = s.id", transaction=("campaign", int(which)))
            merge = merge.whenMatched().update({"n": "t.n + 1"}).whenNotMatched().insertAll()
            return merge.merge().snapshot_id
        refused = []
        for _ in range(int(which)):
            race = table.merge_into(spark.range(3), "t.id = s.id").whenMatched()
            try:
                race.update({"n": "t.n + 1"}).merge()
            except ice.errors.IcebergError as e:
                refused.append(type(e).__name__)
        return refused

    for line in sys.stdin:
        answer: dict[str, Any] = {}
        try:
            answer["done"] = do(*line.split())
        except (PySparkException, ice.errors.IcebergError) as e:
            answer["error"] = f"{type(e).__name__}: {e}"
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
