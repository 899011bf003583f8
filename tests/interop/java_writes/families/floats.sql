CREATE TABLE {t} (id INT, f FLOAT, d DOUBLE, pf FLOAT, pd DOUBLE) USING iceberg
  PARTITIONED BY (pf, pd) TBLPROPERTIES ('format-version' = '{v}');
INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, CAST(x AS FLOAT), CAST(x AS DOUBLE),
  CAST(p AS FLOAT), CAST(p AS DOUBLE) FROM VALUES (1, 'NaN', 'NaN'), (2, '-0.0', '-0.0'),
  (3, '0.0', '0.0'), (4, 'Infinity', '1.5'), (5, '-Infinity', 'Infinity'),
  (6, '1.4E-45', '-Infinity'), (7, null, null) AS v(id, x, p);
INSERT INTO {t} VALUES (8, float('NaN'), double('NaN'), float('1.5'), 1.5D);
INSERT INTO {t} VALUES (9, float('-0.0'), double('-0.0'), null, 0D);
DELETE FROM {t} WHERE id = 6;
