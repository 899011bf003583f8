MODEL (
  name shop.cities,
  kind SEED (path '../seeds/cities.csv'),
  columns (customer STRING, city STRING)
);
