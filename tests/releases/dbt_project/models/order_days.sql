{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='changed_at') }}
select * from {{ ref('orders') }}
{% if is_incremental() %}
where changed_at >= date'2026-01-02'
{% endif %}
