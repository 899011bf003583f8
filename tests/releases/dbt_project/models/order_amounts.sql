{{
  config(
    materialized='incremental',
    incremental_strategy='merge',
    unique_key='id',
    on_schema_change='sync_all_columns'
  )
}}
{% if var('broken', false) %}
select id from {{ ref('orders') }}
{% elif var('changed', false) %}
select id, amount, customer from {{ ref('orders') }}
{% else %}
select id, cast(amount as int) as amount from {{ ref('orders') }}
{% endif %}
