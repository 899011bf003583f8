CREATE TABLE {t} (id INT, s STRING, full STRING, short STRING, counted STRING, none STRING,
  b BINARY, n DECIMAL(38, 0), nulls INT, st STRUCT<x: STRING, y: DECIMAL(30, 5)>)
  USING iceberg TBLPROPERTIES ('format-version' = '{v}',
  'write.metadata.metrics.column.full' = 'full',
  'write.metadata.metrics.column.short' = 'truncate(2)',
  'write.metadata.metrics.column.counted' = 'counts',
  'write.metadata.metrics.column.none' = 'none');
INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(id AS INT), x, x, x, x, x, CAST(x AS BINARY),
  CAST(id AS DECIMAL(38, 0)) * 12345678901234567890123456789, null,
  named_struct('x', x, 'y', -CAST(id AS DECIMAL(30, 5))) FROM
  (SELECT id, concat(repeat('😀', CAST(id AS INT) % 3), 'prefix of sixteen and more', id) x
  FROM range(10));
INSERT INTO {t} VALUES (20, repeat('\U0010FFFF', 17), '\uD7FF', '\uD7FF\uD7FF\uD7FF', '', '', unhex(repeat('FF', 20)),
  -99999999999999999999999999999999999999, null, null);
INSERT INTO {t} VALUES (21, 'one', 'one', 'one', 'one', 'one', X'01', 127, 1, struct('', 0));
INSERT INTO {t} VALUES (22, null, null, null, null, null, null, null, null, struct(null, null));
DELETE FROM {t} WHERE id IN (3, 4);
