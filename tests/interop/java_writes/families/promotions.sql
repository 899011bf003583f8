CREATE TABLE {t} (i INT, f FLOAT, n DECIMAL(9, 2), m DECIMAL(18, 2), st STRUCT<i: INT>,
  li ARRAY<FLOAT>, ma MAP<STRING, INT>, p INT, q DECIMAL(4, 1)) USING iceberg
  PARTITIONED BY (p, truncate(10, i), bucket(4, q))
  TBLPROPERTIES ('format-version' = '{v}');
INSERT INTO {t} VALUES
  (2147483647, float('3.4028235E38'), -9999999.99, 1, struct(1), array(float('0.1'), null),
  map('a', -1), 1, 99.9), (-2147483648, float('-0.0'), 0, null, null, array(), map(), null,
  null), (null, float('NaN'), null, -0.01, struct(null), null, null, -5, -0.1),
  (15, float('1.4E-45'), 1, 0, struct(7), array(float('Infinity')), map('b', null), 7, 0);
ALTER TABLE {t} ALTER COLUMN i TYPE BIGINT;
ALTER TABLE {t} ALTER COLUMN f TYPE DOUBLE;
ALTER TABLE {t} ALTER COLUMN n TYPE DECIMAL(12, 2);
ALTER TABLE {t} ALTER COLUMN m TYPE DECIMAL(38, 2);
ALTER TABLE {t} ALTER COLUMN st.i TYPE BIGINT;
ALTER TABLE {t} ALTER COLUMN li.element TYPE DOUBLE;
ALTER TABLE {t} ALTER COLUMN ma.value TYPE BIGINT;
ALTER TABLE {t} ALTER COLUMN p TYPE BIGINT;
ALTER TABLE {t} ALTER COLUMN q TYPE DECIMAL(20, 1);
INSERT INTO {t} VALUES (5000000000, 1e300, 1234567890.12,
  999999999999999999999999999999999999.99, struct(5000000000), array(1e-300D),
  map('c', 5000000000), 5000000000, 1234567890.5);
DELETE FROM {t} WHERE i = 15;
