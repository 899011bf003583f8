CREATE TABLE {t} (id INT, `p a/b` STRING, `ünï.cöde` STRING, b BINARY) USING iceberg
  PARTITIONED BY (`p a/b`, `ünï.cöde`, b) TBLPROPERTIES ('format-version' = '{v}');
INSERT INTO {t} VALUES (1, 'a/b', 'x=y', X'00FF'), (2, '', '日本', X''),
  (3, null, '__HIVE_DEFAULT_PARTITION__', null), (4, 'null', '..', X'2F'),
  (5, ' lead', 'trail ', X'61'), (6, '%', '%2F', X'80'), (7, '#?&', '"''', X'0A'),
  (8, 'a\tb', 'a\nb', X'7F'), (9, '😀', '\uFFFF', X'FFFF');
INSERT INTO {t} SELECT id + 10, `p a/b`, `ünï.cöde`, b FROM {t} WHERE id % 2 = 0;
DELETE FROM {t} WHERE `p a/b` = '%' AND id > 10;
