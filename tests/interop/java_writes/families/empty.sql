CREATE TABLE {t} (id INT, s STRUCT<a: INT>) USING iceberg PARTITIONED BY (bucket(2, id))
  TBLPROPERTIES ('format-version' = '{v}');
