-- values: Python shows variants as bytes, Spark as objects
-- pyiceberg: no variants
-- generics: no class for variants
-- versions: 3
-- filters: none
CREATE TABLE {t} (id INT, v VARIANT) USING iceberg
  TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read');
INSERT INTO {t} SELECT 1, parse_json('{"a": [1, null, "x"], "b": {"c": 1.5}}');
INSERT INTO {t} SELECT 2, null;
INSERT INTO {t} SELECT 4, parse_json('null');
INSERT INTO {t} SELECT 3, parse_json('"text"');
DELETE FROM {t} WHERE id = 3;
