-- pyiceberg: no equality deletes
-- versions: 2 3
CREATE TABLE {t} (id INT, p STRING, v DOUBLE) USING iceberg PARTITIONED BY (p)
  TBLPROPERTIES ('format-version' = '1');
INSERT INTO {t} SELECT CAST(id AS INT), concat('p', id % 3), id / 2 FROM range(9);
ALTER TABLE {t} DROP PARTITION FIELD p;
INSERT INTO {t} VALUES (20, 'p0', double('NaN')), (21, null, -0D);
ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '2',
  'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read');
DELETE FROM {t} WHERE id = 4;
UPDATE {t} SET v = 100 WHERE id = 20;
ALTER TABLE {t} ADD PARTITION FIELD bucket(2, id);
INSERT INTO {t} VALUES (30, 'x', 1), (31, 'y', null);
equality id | (5,) | (None,) | 1;
ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '{v}');
DELETE FROM {t} WHERE id IN (2, 30);
INSERT INTO {t} VALUES (40, 'z', 4);
DELETE FROM {t} WHERE id = 3;
