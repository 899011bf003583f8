MODEL (
  name shop.orders_by_time,
  kind SCD_TYPE_2_BY_TIME (unique_key id, updated_at_name changed_at, invalidate_hard_deletes true)
);

SELECT id, amount, changed_at FROM shop.orders
