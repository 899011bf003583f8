MODEL (
  name shop.orders,
  kind VIEW,
  audits (not_null(columns := (id)), unique_values(columns := (id))),
  column_descriptions (id = 'the order''s number')
);

SELECT id, customer, amount, changed_at, CAST(changed_at AS DATE) AS day FROM raw.orders
