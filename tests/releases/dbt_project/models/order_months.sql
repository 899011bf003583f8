{{
  config(
    materialized='incremental',
    incremental_strategy='microbatch',
    partition_by='month',
    event_time='changed_at',
    batch_size='month',
    begin='2026-01-01'
  )
}}
select *, date(date_trunc('month', changed_at)) as month from {{ ref('orders') }}
