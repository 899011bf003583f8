"""Checks a table against the specification, and reports every broken rule by its name.

`findings.py` defines the result, `rules.py` the rules by name, `verification.py` checks a table.
Rules of metadata and of manifests of all versions are in `metadata_rules.py`, those of the files in
manifests in `live_files.py`. Rules of root manifests are in `table/verify/roots/entry_rules.py`
(one entry alone), `table/verify/roots/root_rules.py` (one root with its leaves),
`roots/bound_checks.py` (column summaries of leaves) and `table/verify/roots/root_changes.py` (a
root compared with its parent's).
"""
