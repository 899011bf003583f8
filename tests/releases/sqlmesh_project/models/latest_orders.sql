MODEL (
  name shop.latest_orders,
  kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id)
);

SELECT id, customer, amount, day FROM shop.orders WHERE day BETWEEN @start_date AND @end_date
