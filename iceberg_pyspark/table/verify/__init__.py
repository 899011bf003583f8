"""Whether a table is what the specification says: every rule that is broken, by its name.

`findings.py` has the result, `rules.py` the rules by name, `verification.py` goes through a table.
Rules of metadata are `metadata_rules.py`; of the manifests of all versions `manifest_rules.py`, and
of the files in them `live_files.py`; of root manifests `entry_rules.py` (one entry alone),
`root_rules.py` (one root with its leaves), `leaf_columns.py` (what it says of their columns),
`root_changes.py` and `row_id_walk.py` (a root beside its parent's).
"""
