{{ config(materialized='table' if var('changed', false) else 'view') }}
select id, customer, amount from {{ ref('orders') }} where amount >= 20
