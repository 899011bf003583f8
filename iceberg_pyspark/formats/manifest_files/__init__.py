"""Manifests in Avro and in Parquet, as tables of entries."""
