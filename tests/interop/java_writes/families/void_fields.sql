CREATE TABLE {t} (id INT, p STRING, q INT) USING iceberg PARTITIONED BY (p, q)
  TBLPROPERTIES ('format-version' = '{v}');
INSERT INTO {t} VALUES (1, 'a', 1), (2, null, 2), (3, 'b', null);
ALTER TABLE {t} DROP PARTITION FIELD p;
INSERT INTO {t} VALUES (4, 'a', 1), (5, 'c', 5);
ALTER TABLE {t} DROP PARTITION FIELD q;
INSERT INTO {t} VALUES (6, 'a', 1);
ALTER TABLE {t} ADD PARTITION FIELD p;
ALTER TABLE {t} RENAME COLUMN q TO r;
INSERT INTO {t} VALUES (7, 'a', 9), (8, null, null);
DELETE FROM {t} WHERE id IN (1, 5);
