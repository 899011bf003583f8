-- pyiceberg: no equality deletes
-- versions: 2 3
CREATE TABLE {t} (id BIGINT, g INT, s STRING) USING iceberg PARTITIONED BY (g)
  TBLPROPERTIES ('format-version' = '{v}',
  'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read');
INSERT INTO {t} SELECT id, CAST(id % 2 AS INT), concat('s', id) FROM range(0, 20, 1, 1);
DELETE FROM {t} WHERE id IN (1, 2);
equality id | (3,), (4,), (99,) | (1,);
INSERT INTO {t} SELECT id, 1, 'later' FROM range(0, 6, 1, 1);
equality s,g | ('later', 1), (None, 1) | (1,);
INSERT INTO {t} VALUES (5, 1, null), (6, null, null);
equality s | (None,) | (None,);
DELETE FROM {t} WHERE id = 7 OR s = 's9';
ALTER TABLE {t} RENAME COLUMN s TO text;
UPDATE {t} SET text = 'x' WHERE id > 15;
ALTER TABLE {t} DROP PARTITION FIELD g;
INSERT INTO {t} VALUES (200, 0, 'whole');
equality id | (200,), (10,), (11,) | None;
DELETE FROM {t} WHERE id = 12;
