-- versions: 2 3
CREATE TABLE {t} (id BIGINT, s STRING, ts TIMESTAMP) USING iceberg
  PARTITIONED BY (truncate(1, s)) TBLPROPERTIES ('format-version' = '{v}',
  'write.parquet.row-group-size-bytes' = '1000', 'write.parquet.page-row-limit' = '7',
  'write.parquet.row-group-check-min-record-count' = '10',
  'write.parquet.row-group-check-max-record-count' = '10',
  'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read');
ALTER TABLE {t} WRITE ORDERED BY s DESC NULLS LAST, id;
INSERT INTO {t} SELECT id, if(id % 11 = 0, null, concat(chr(97 + id % 3), id % 7)),
  TIMESTAMP '1969-12-31' + make_interval(0, 0, 0, 0, id) FROM range(120);
ALTER TABLE {t} WRITE LOCALLY ORDERED BY bucket(4, id), ts;
INSERT INTO {t} SELECT id + 200, 'a', null FROM range(60);
DELETE FROM {t} WHERE id % 13 = 5;
ALTER TABLE {t} WRITE UNORDERED;
INSERT INTO {t} VALUES (500, 'zz', null);
DELETE FROM {t} WHERE id > 190 AND id < 225;
