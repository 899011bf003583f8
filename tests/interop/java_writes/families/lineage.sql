-- versions: 3
CREATE TABLE {t} (id INT, v STRING) USING iceberg PARTITIONED BY (bucket(2, id))
  TBLPROPERTIES ('format-version' = '2');
INSERT INTO {t} SELECT CAST(id AS INT), concat('v', id) FROM range(8);
ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3',
  'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read');
INSERT INTO {t} SELECT CAST(id AS INT), concat('w', id) FROM range(8, 14);
UPDATE {t} SET v = 'updated' WHERE id % 4 = 1;
ALTER TABLE {t} SET TBLPROPERTIES ('write.update.mode' = 'copy-on-write');
UPDATE {t} SET v = 'copied' WHERE id = 10;
MERGE INTO {t} t USING (SELECT CAST(id AS INT) id FROM range(12, 18)) u ON t.id = u.id
  WHEN MATCHED THEN UPDATE SET v = 'merged' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (u.id, 'in');
CALL {c}.system.rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'));
DELETE FROM {t} WHERE id = 0;
INSERT INTO {t} VALUES (100, 'last');
