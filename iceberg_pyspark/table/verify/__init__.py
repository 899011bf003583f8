"""Checks a table against the specification, and reports every broken rule by its name.

`findings.py` defines the result, `rules.py` the rules by name, `verification.py` checks a table.
Rules of metadata are in `metadata_rules.py`; rules of manifests of all versions in
`manifest_rules.py`, and of the files in them in `live_files.py`; rules of root manifests in
`table/verify/roots/entry_rules.py` (one entry alone), `table/verify/roots/root_rules.py` (one root
with its leaves), `roots/leaf_column_checks.py` (column summaries of leaves),
`table/verify/roots/root_changes.py` and `table/verify/roots/root_changes.py` (a root compared with
its parent's).
"""
