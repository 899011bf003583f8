"""What the specification calls files of metadata: metadata files, manifests and their lists,
Puffin, roots.
"""
