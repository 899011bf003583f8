-- pyiceberg: null lists and maps of a former schema are read as empty
CREATE TABLE {t} (id INT, st STRUCT<a: INT, b: STRING, c: STRUCT<x: INT, y: DOUBLE>>,
  li ARRAY<STRUCT<a: INT, b: STRING>>, ma MAP<STRING, STRUCT<a: INT, b: STRING>>)
  USING iceberg TBLPROPERTIES ('format-version' = '{v}');
INSERT INTO {t} VALUES
  (1, struct(1, 'one', struct(10, 0.5D)), array(struct(1, 'l'), null), map('k', struct(1, 'm'))),
  (2, null, array(), map()), (3, struct(null, null, null), null, null),
  (4, struct(4, null, struct(null, null)), array(struct(null, null)), map('n', null));
ALTER TABLE {t} RENAME COLUMN st.a TO renamed;
ALTER TABLE {t} ALTER COLUMN st.c FIRST;
ALTER TABLE {t} ADD COLUMN st.c.z BIGINT;
ALTER TABLE {t} ADD COLUMN li.element.c DATE;
ALTER TABLE {t} ADD COLUMN ma.value.c DECIMAL(38, 4);
INSERT INTO {t} VALUES (5, struct(struct(5, -0D, 50), 5, 'five'),
  array(struct(5, 'x', DATE '1969-07-20')),
  map('p', struct(5, 'y', 9999999999999999999999999999999999.9999)));
ALTER TABLE {t} DROP COLUMN st.b;
ALTER TABLE {t} ADD COLUMN st.b BOOLEAN AFTER c;
ALTER TABLE {t} DROP COLUMN li.element.a;
ALTER TABLE {t} ADD COLUMN li.element.a STRING FIRST;
ALTER TABLE {t} RENAME COLUMN ma.value.a TO key;
ALTER TABLE {t} ALTER COLUMN ma.value.b FIRST;
ALTER TABLE {t} ALTER COLUMN ma FIRST;
ALTER TABLE {t} ALTER COLUMN st.c.x TYPE BIGINT;
INSERT INTO {t} VALUES (map('q', struct('z', 6, 1.5BD)), 6,
  struct(struct(60000000000, 1D, null), true, 6), array(struct('text', 'w', null)));
UPDATE {t} SET st.renamed = 100 WHERE id = 1;
