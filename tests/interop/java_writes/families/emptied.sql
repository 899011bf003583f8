CREATE TABLE {t} (id INT, s STRUCT<a: INT>) USING iceberg PARTITIONED BY (id)
  TBLPROPERTIES ('format-version' = '{v}');
INSERT INTO {t} SELECT * FROM {t} WHERE false;
INSERT INTO {t} VALUES (1, struct(1)), (2, null);
DELETE FROM {t} WHERE id = 1;
DELETE FROM {t};
INSERT OVERWRITE {t} SELECT * FROM {t} WHERE false;
ALTER TABLE {t} ADD COLUMN added INT;
INSERT INTO {t} SELECT * FROM {t} WHERE false;
