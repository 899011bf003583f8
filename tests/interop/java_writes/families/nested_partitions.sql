CREATE TABLE {t} (id INT, st STRUCT<a: STRING, b: STRUCT<c: BIGINT, ts: TIMESTAMP>>)
  USING iceberg PARTITIONED BY (st.a, bucket(3, st.b.c), days(st.b.ts))
  TBLPROPERTIES ('format-version' = '{v}');
INSERT INTO {t} VALUES (1, struct('x', struct(1, TIMESTAMP '1969-12-31 23:00:00'))),
  (2, struct(null, struct(null, null))), (3, struct('y', null)), (4, null);
ALTER TABLE {t} RENAME COLUMN st.a TO key;
INSERT INTO {t} VALUES (5, struct('x', struct(5, TIMESTAMP '2024-02-29 12:00:00')));
DELETE FROM {t} WHERE st.key = 'x' AND id = 1;
