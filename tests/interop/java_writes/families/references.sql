CREATE TABLE {t} (id INT, s STRING) USING iceberg
  TBLPROPERTIES ('format-version' = '{v}', 'write.metadata.compression-codec' = 'gzip');
INSERT INTO {t} VALUES (1, 'a'), (2, 'b');
ALTER TABLE {t} CREATE TAG `v1.0 ä` RETAIN 7 DAYS;
ALTER TABLE {t} CREATE BRANCH side WITH SNAPSHOT RETENTION 2 SNAPSHOTS;
ALTER TABLE {t} ADD COLUMN x DOUBLE FIRST;
INSERT INTO {t} VALUES (0.5, 3, 'c');
INSERT INTO {t}.branch_side VALUES (double('NaN'), 100, 'side');
DELETE FROM {t}.branch_side WHERE id = 1;
ALTER TABLE {t} RENAME COLUMN s TO text;
ALTER TABLE {t} CREATE OR REPLACE TAG latest;
ALTER TABLE {t} DROP COLUMN id;
ALTER TABLE {t} ADD COLUMN id STRING;
INSERT INTO {t} VALUES (1.5, 'd', 'text');
ALTER TABLE {t} CREATE BRANCH `from/tag`;
TRUNCATE TABLE {t};
INSERT INTO {t} VALUES (2.5, 'e', null);
