-- pyiceberg: no equality deletes
-- versions: 2 3
CREATE TABLE {t} (id INT, p INT) USING iceberg PARTITIONED BY (p)
  TBLPROPERTIES ('format-version' = '{v}',
  'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read');
INSERT INTO {t} SELECT CAST(id AS INT), CAST(id % 2 AS INT) FROM range(10);
DELETE FROM {t} WHERE id IN (3, 4);
INSERT INTO {t} SELECT CAST(id AS INT), CAST(id % 2 AS INT) FROM range(10, 20);
equality id | (5,), (15,) | (1,);
CALL {c}.system.rewrite_data_files(table => '{t}', where => 'p = 0',
  options => map('rewrite-all', 'true'));
DELETE FROM {t} WHERE id = 16;
CALL {c}.system.rewrite_manifests('{t}');
CALL {c}.system.rewrite_position_delete_files(table => '{t}',
  options => map('rewrite-all', 'true'));
ALTER TABLE {t} ADD COLUMN x INT;
INSERT INTO {t} VALUES (30, 1, 5);
DELETE FROM {t} WHERE id = 11;
