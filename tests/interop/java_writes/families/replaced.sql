CREATE TABLE {t} (id INT, s STRING) USING iceberg PARTITIONED BY (s)
  TBLPROPERTIES ('format-version' = '{v}');
INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, null);
REPLACE TABLE {t} USING iceberg PARTITIONED BY (bucket(2, s))
  TBLPROPERTIES ('format-version' = '{v}') AS SELECT concat('x', id) AS s, id * 1.5 AS n,
  array(id, null) AS li FROM {t};
INSERT OVERWRITE {t} SELECT s, n + 1, null FROM {t} WHERE s > 'x1';
INSERT INTO {t} VALUES ('new', -1.5, array());
REPLACE TABLE {t} USING iceberg TBLPROPERTIES ('format-version' = '{v}')
  AS SELECT map('k', n) AS m, s FROM {t};
