"""Plans scans: prunes manifests and files, matches deletes, splits and packs tasks."""
