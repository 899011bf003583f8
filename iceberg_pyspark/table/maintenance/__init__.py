"""Maintenance of tables: rewrites, removal of files, copies."""
