-- pyiceberg: no equality deletes
-- versions: 3
CREATE TABLE {t} (id INT, st STRUCT<a: INT>, p STRING) USING iceberg PARTITIONED BY (p)
  TBLPROPERTIES ('format-version' = '3',
  'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read');
INSERT INTO {t} SELECT CAST(id AS INT), if(id = 2, null, struct(CAST(id AS INT))),
  concat('p', id % 2) FROM range(0, 8, 1, 1);
default n decimal(38, 4) '-1.5000';
default f float 1.5;
default d date '1969-07-20';
default st.b string 'é';
DELETE FROM {t} WHERE id = 1;
INSERT INTO {t} VALUES (20, struct(1, null), 'p0', null, null, null);
equality n | (None,) | ('p0',);
equality f | (1.5,) | ('p1',);
ALTER TABLE {t} RENAME COLUMN d TO day;
INSERT INTO {t} VALUES (21, struct(1, 'x'), 'p1', 2.5, 1.5, DATE '2024-02-29');
