MODEL (
  name shop.order_days,
  kind INCREMENTAL_BY_TIME_RANGE (time_column day)
);

SELECT id, amount, day FROM shop.orders WHERE day BETWEEN @start_date AND @end_date
