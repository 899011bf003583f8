-- pyiceberg: no equality deletes
-- versions: 2 3
CREATE TABLE {t} (id BIGINT, p INT, s STRING, d DATE) USING iceberg
  TBLPROPERTIES ('format-version' = '{v}',
  'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read');
INSERT INTO {t} SELECT id, CAST(id % 3 AS INT), concat('s', id % 4),
  DATE '1969-12-25' + CAST(id AS INT) FROM range(12);
ALTER TABLE {t} ADD PARTITION FIELD p;
INSERT INTO {t} SELECT id + 20, if(id = 2, null, CAST(id % 3 AS INT)), null,
  DATE '1970-01-01' FROM range(6);
DELETE FROM {t} WHERE id % 5 = 1;
equality id | (2,), (22,), (23,) | None | 0;
ALTER TABLE {t} ADD PARTITION FIELD bucket(4, id) AS shard;
INSERT INTO {t} SELECT id, 1, 'again', null FROM range(4);
UPDATE {t} SET s = 'changed' WHERE p = 1 AND id > 3;
ALTER TABLE {t} DROP PARTITION FIELD p;
ALTER TABLE {t} ADD PARTITION FIELD truncate(2, s);
MERGE INTO {t} t USING (SELECT id + 18 AS id FROM range(8)) u ON t.id = u.id
  WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET p = -1
  WHEN NOT MATCHED THEN INSERT (id, s) VALUES (u.id, 'new');
ALTER TABLE {t} DROP PARTITION FIELD shard;
ALTER TABLE {t} DROP PARTITION FIELD s_trunc_2;
DELETE FROM {t} WHERE s = 's1' OR id = 24;
