"""Implements metadata tables, such as `db.t.files`."""
