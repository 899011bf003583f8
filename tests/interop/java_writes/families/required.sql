CREATE TABLE {t} (id BIGINT NOT NULL, s STRING NOT NULL,
  st STRUCT<a: INT NOT NULL, b: STRING> NOT NULL, o STRUCT<a: INT NOT NULL>) USING iceberg
  TBLPROPERTIES ('format-version' = '{v}');
ALTER TABLE {t} SET IDENTIFIER FIELDS id, s;
INSERT INTO {t} VALUES (1, 'a', named_struct('a', 1, 'b', null), null),
  (2, '', named_struct('a', 2, 'b', 'x'), named_struct('a', 5));
ALTER TABLE {t} DROP IDENTIFIER FIELDS s;
ALTER TABLE {t} ALTER COLUMN s DROP NOT NULL;
INSERT INTO {t} VALUES (3, null, named_struct('a', 3, 'b', 'y'), null);
DELETE FROM {t} WHERE id = 1;
