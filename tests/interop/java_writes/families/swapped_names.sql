CREATE TABLE {t} (id INT, a STRING, b STRING, s STRUCT<a: INT, b: INT>) USING iceberg
  PARTITIONED BY (bucket(2, a)) TBLPROPERTIES ('format-version' = '{v}');
INSERT INTO {t} VALUES (1, 'a1', 'b1', struct(1, 2)), (2, null, 'b2', null);
ALTER TABLE {t} RENAME COLUMN a TO c;
ALTER TABLE {t} RENAME COLUMN b TO a;
ALTER TABLE {t} RENAME COLUMN c TO b;
ALTER TABLE {t} RENAME COLUMN s.a TO c;
ALTER TABLE {t} RENAME COLUMN s.b TO a;
ALTER TABLE {t} RENAME COLUMN s.c TO b;
INSERT INTO {t} VALUES (3, 'b3', 'a3', struct(3, 4));
DELETE FROM {t} WHERE a = 'b1' AND b = 'a1' AND id > 1;
