{{ config(materialized='table', partition_by='customer') }}
select sum(amount) as total, {{ "'none'" if var('broken', false) else 'count(*)' }} as orders, customer
from {{ ref('orders') }} group by customer
