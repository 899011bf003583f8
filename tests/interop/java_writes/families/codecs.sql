-- pyiceberg: Unsupported file format
CREATE TABLE {t} (id INT, s STRING) USING iceberg PARTITIONED BY (bucket(2, id))
  TBLPROPERTIES ('format-version' = '{v}', 'write.metadata.compression-codec' = 'gzip',
  'write.avro.compression-codec' = 'uncompressed', 'write.parquet.compression-codec' = 'gzip',
  'commit.manifest-merge.enabled' = 'false');
INSERT INTO {t} SELECT CAST(id AS INT), concat('u', id) FROM range(5);
ALTER TABLE {t} SET TBLPROPERTIES ('write.avro.compression-codec' = 'snappy',
  'write.parquet.compression-codec' = 'snappy');
INSERT INTO {t} SELECT CAST(id AS INT), concat('s', id) FROM range(5, 10);
ALTER TABLE {t} SET TBLPROPERTIES ('write.avro.compression-codec' = 'zstd',
  'write.parquet.compression-codec' = 'zstd', 'write.metadata.compression-codec' = 'none');
INSERT INTO {t} SELECT CAST(id AS INT), concat('z', id) FROM range(10, 15);
ALTER TABLE {t} SET TBLPROPERTIES ('write.avro.compression-codec' = 'gzip',
  'write.parquet.compression-codec' = 'lz4', 'write.format.default' = 'avro');
INSERT INTO {t} SELECT CAST(id AS INT), concat('a', id) FROM range(15, 20);
ALTER TABLE {t} SET TBLPROPERTIES ('write.format.default' = 'orc',
  'write.orc.compression-codec' = 'zstd', 'commit.manifest-merge.enabled' = 'true',
  'commit.manifest.min-count-to-merge' = '2');
INSERT INTO {t} SELECT CAST(id AS INT), concat('o', id) FROM range(20, 25);
DELETE FROM {t} WHERE id % 7 = 3;
