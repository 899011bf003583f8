MODEL (
  name shop.customers,
  kind FULL,
  grain customer,
  description 'The customers'' totals'
);

SELECT o.customer, SUM(o.amount) AS total, COUNT(*) AS orders, c.city
FROM shop.orders AS o LEFT JOIN shop.cities AS c ON o.customer = c.customer
GROUP BY o.customer, c.city
