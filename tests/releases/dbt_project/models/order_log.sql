{{ config(materialized='incremental', incremental_strategy='append', on_schema_change='append_new_columns') }}
select id, {% if var('changed', false) %}customer, {% endif %}amount from {{ ref('orders') }}
