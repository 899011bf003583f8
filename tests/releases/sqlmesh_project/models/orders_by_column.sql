MODEL (
  name shop.orders_by_column,
  kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns [amount], invalidate_hard_deletes true)
);

SELECT id, customer, amount FROM shop.orders
