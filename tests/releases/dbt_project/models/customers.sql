{{ config(materialized='table', partition_by='customer') }}
select sum(amount) as total, count(*) as orders, customer from {{ ref('orders') }} group by customer
