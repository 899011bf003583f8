-- pyiceberg: no variants
-- generics: no class for variants in lists
-- versions: 3
-- filters: none
CREATE TABLE {t} (id INT, v VARIANT, l ARRAY<VARIANT>) USING iceberg
  TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read');
INSERT INTO {t} SELECT 1, parse_json('{"a": [1, null, "x"], "b": {"c": 1.5}}'), null;
INSERT INTO {t} SELECT 2, null, array(parse_json('1'), null, parse_json('null'));
INSERT INTO {t} SELECT 3, parse_json('"text"'), array();
DELETE FROM {t} WHERE id = 3;
