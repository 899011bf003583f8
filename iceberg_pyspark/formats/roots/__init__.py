"""Root manifests of version 4 (experimental): their files, entries and rules."""
