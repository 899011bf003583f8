-- versions: 2 3
CREATE TABLE {t} (id INT, p STRING, x DOUBLE) USING iceberg PARTITIONED BY (p)
  TBLPROPERTIES ('format-version' = '{v}',
  'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read');
INSERT INTO {t} SELECT CAST(id AS INT), concat('p', id % 3), id / 3 FROM range(30);
CALL {c}.system.compute_table_stats('{t}');
CALL {c}.system.compute_partition_stats('{t}');
DELETE FROM {t} WHERE id % 10 = 4;
ALTER TABLE {t} ADD PARTITION FIELD bucket(2, id);
INSERT INTO {t} VALUES (100, 'q', null);
CALL {c}.system.compute_table_stats('{t}');
CALL {c}.system.compute_partition_stats('{t}');
INSERT INTO {t} VALUES (101, null, double('NaN'));
