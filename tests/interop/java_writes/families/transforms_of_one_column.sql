CREATE TABLE {t} (id INT, ts TIMESTAMP, s STRING) USING iceberg
  PARTITIONED BY (days(ts), s) TBLPROPERTIES ('format-version' = '{v}');
ALTER TABLE {t} ADD PARTITION FIELD truncate(1, s);
ALTER TABLE {t} ADD PARTITION FIELD bucket(4, s);
INSERT INTO {t} SELECT id, TIMESTAMP '1969-12-30' + make_interval(0, 0, 0, 0, id * 7),
  if(id % 5 = 0, null, concat('v', id % 3)) FROM range(12);
ALTER TABLE {t} REPLACE PARTITION FIELD ts_day WITH hours(ts);
INSERT INTO {t} SELECT id + 20, if(id = 1, null, TIMESTAMP '1969-12-31 23:30:00'
  + make_interval(0, 0, 0, 0, 0, id * 20)), 'w' FROM range(6);
ALTER TABLE {t} DROP PARTITION FIELD s;
INSERT INTO {t} VALUES (40, null, null), (41, TIMESTAMP '1970-01-01 00:30:00', '');
DELETE FROM {t} WHERE ts < TIMESTAMP '1969-12-31 00:00:00';
