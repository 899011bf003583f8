"""Metadata tables, `db.t.files` and its kind."""
