CREATE TABLE {t} (id INT, ll ARRAY<ARRAY<INT>>, mm MAP<STRING, MAP<INT, STRING>>,
  ml MAP<STRING, ARRAY<STRUCT<x: INT, y: ARRAY<STRING>>>>, mk MAP<STRUCT<a: INT, b: STRING>, INT>,
  s STRUCT<t: STRUCT<u: STRUCT<v: INT>>>) USING iceberg
  TBLPROPERTIES ('format-version' = '{v}');
INSERT INTO {t} VALUES
  (1, array(array(1, null), null, array()), map('a', map(1, 'x', 2, null), 'b', null),
  map('k', array(struct(1, array('p', null)), null)), map(struct(1, 'k'), 10, struct(2, null), null),
  struct(struct(struct(1)))),
  (2, array(), map(), map(), map(), struct(struct(struct(null)))),
  (3, null, null, null, null, struct(struct(null))), (4, array(null), map('c', map()),
  map('l', array()), null, struct(null)), (5, null, null, map('n', null), null, null);
ALTER TABLE {t} ADD COLUMN ml.value.element.z DOUBLE;
ALTER TABLE {t} ADD COLUMN s.t.u.w DATE FIRST;
ALTER TABLE {t} ALTER COLUMN ll.element.element TYPE BIGINT;
INSERT INTO {t} VALUES (6, array(array(5000000000)), null,
  map('m', array(struct(1, array(''), 0.5D))), null,
  struct(struct(struct(DATE '0002-01-01', 6))));
DELETE FROM {t} WHERE id = 2;
