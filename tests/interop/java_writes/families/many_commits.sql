-- versions: 2 3
CREATE TABLE {t} (id INT, v STRING) USING iceberg TBLPROPERTIES ('format-version' = '{v}',
  'commit.manifest.min-count-to-merge' = '3', 'write.delete.granularity' = 'partition',
  'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read');
INSERT INTO {t} SELECT CAST(id AS INT), 'n0' FROM range(0, 10);
DELETE FROM {t} WHERE id % 7 = 0 AND v <> 'n0';
INSERT INTO {t} SELECT CAST(id AS INT), 'n1' FROM range(5, 15);
DELETE FROM {t} WHERE id % 7 = 1 AND v <> 'n1';
INSERT INTO {t} SELECT CAST(id AS INT), 'n2' FROM range(10, 20);
DELETE FROM {t} WHERE id % 7 = 2 AND v <> 'n2';
INSERT INTO {t} SELECT CAST(id AS INT), 'n3' FROM range(15, 25);
DELETE FROM {t} WHERE id % 7 = 3 AND v <> 'n3';
INSERT INTO {t} SELECT CAST(id AS INT), 'n4' FROM range(20, 30);
DELETE FROM {t} WHERE id % 7 = 4 AND v <> 'n4';
INSERT INTO {t} SELECT CAST(id AS INT), 'n5' FROM range(25, 35);
DELETE FROM {t} WHERE id % 7 = 5 AND v <> 'n5';
