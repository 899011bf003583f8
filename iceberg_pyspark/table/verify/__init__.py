"""Checks a table against the specification, and reports every broken rule by its name.

`findings.py` defines the result, `rules.py` the rules by name, `verification.py` checks a table.
Rules of metadata are in `metadata_rules.py`; rules of manifests of all versions in
`manifest_rules.py`, and of the files in them in `live_files.py`; rules of root manifests in
`entry_rules.py` (one entry alone), `root_rules.py` (one root with its leaves), `leaf_columns.py`
(column summaries of leaves), `root_changes.py` and `row_id_walk.py` (a root compared with its
parent's).
"""
